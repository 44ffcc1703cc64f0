"""Derives a reward from a user's words, without a language model.

Graded words and phrases, clause by clause. A phrase counts its grade, more or less after a word of
strength; a negation within four words before it turns it round and weakens it; in a question, an
order, a wish or a condition it counts little; what stands before a word of contrast counts less
than what comes after. Grades are summed up and brought into (-1, 1) by s / √(s² + 0.6), the form of
VADER (Hutto and Gilbert 2014). Unsure is 0: nothing that judges, hardly anything, or praise and
complaint of like weight. Sarcasm is taken at its word.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lot_grpc.domain.judging_words import (
    CONTRASTS,
    EXCESS,
    FILLERS,
    GRADES,
    IMPERATIVES,
    LONGEST,
    NEGATIONS,
    NEGATIONS_AFTER,
    OPEN,
    STRENGTHS,
)
from lot_grpc.domain.text_form import without_breaks

_READ_WORDS = 1000
"""Words that are read of a text; a judgement that comes later is not a short one's."""

_NEGATED = -0.7
_SCOPE = 4
_OPEN_WEIGHT = 0.2
_BEFORE_CONTRAST = 0.35
_EXCESS_GRADE = -0.5
_SOFTENING = 0.6
_SURE_FROM = 0.45
_MIXED_FROM = 0.5
"""Share of the weaker side in the stronger from which on a judgement is mixed."""

_TOKEN = re.compile(r"\w+(?:['\u2019]\w+)*|[.!?;,:\n…¿¡]|[^\w\s]\ufe0f?")
_SENTENCE_END = frozenset(".!?;\n…")
_CLAUSE_END = frozenset(",:")


@dataclass(frozen=True, slots=True)
class Judgement:
    """A reward in [-1, 1]. Not ``conclusive``: unclear, and the reward is 0."""

    reward: float
    conclusive: bool


UNSURE = Judgement(0.0, conclusive=False)


def judge(text: str) -> Judgement:
    """Judge a text in English, German or Spanish. Deterministic."""
    grades = [grade for sentence in _sentences(text) for grade in _sentence_grades(sentence)]
    praise = sum(grade for grade in grades if grade > 0)
    complaint = -sum(grade for grade in grades if grade < 0)
    stronger, weaker = max(praise, complaint), min(praise, complaint)
    if not stronger or weaker / stronger >= _MIXED_FROM:
        return UNSURE
    total = praise - complaint
    reward = total / math.sqrt(total * total + _SOFTENING)
    return Judgement(reward, conclusive=True) if abs(reward) >= _SURE_FROM else UNSURE


def only_praises(text: str) -> bool:
    """Whether a text judges or thanks without a word of what it likes: "thanks, great!".

    An empty text does not praise.
    """
    words = [token for sentence in _sentences(text) for token in sentence if token[0].isalnum()]
    at = 0
    while at < len(words):
        length, grade = _phrase(words, at)
        if grade < 0 or not (length or words[at] in STRENGTHS or words[at] in FILLERS):
            return False
        at += max(1, length)
    return bool(text.strip())


def _sentences(text: str) -> Iterator[list[str]]:
    """The sentences as words and punctuation, each with the mark that ends it."""
    sentence: list[str] = []
    for number, found in enumerate(_TOKEN.finditer(without_breaks(text))):
        if number >= _READ_WORDS:
            break
        token = found[0].casefold().replace("'", "").replace("\u2019", "")
        sentence.append(token)
        if token in _SENTENCE_END:
            yield sentence
            sentence = []
    if sentence:
        yield sentence


def _sentence_grades(sentence: Sequence[str]) -> list[float]:
    """The weighted grades of a sentence."""
    requested = sentence[-1] == "?"
    before: list[float] = []
    grades: list[float] = []
    for clause, contrasts in _clauses(sentence):
        if contrasts:
            before += grades
            grades = []
        weight = _OPEN_WEIGHT if requested or _orders(clause) else 1.0
        grades += [weight * grade for grade in _clause_grades(clause)]
    return [_BEFORE_CONTRAST * grade for grade in before] + grades


def _orders(clause: Sequence[str]) -> bool:
    """Whether a clause says what to do next, not how it went."""
    return bool(clause) and clause[0] in IMPERATIVES and _phrase(clause, 0)[1] == 0


def _clauses(sentence: Sequence[str]) -> Iterator[tuple[list[str], bool]]:
    """The clauses, and whether each comes after a word of contrast."""
    clause: list[str] = []
    contrasts = False
    for token in sentence:
        if token in _CLAUSE_END or token in CONTRASTS:
            yield clause, contrasts
            clause, contrasts = [], token in CONTRASTS
        elif token not in _SENTENCE_END:
            clause.append(token)
    yield clause, contrasts


def _clause_grades(clause: Sequence[str]) -> Iterator[float]:
    at = floor = 0
    is_open = False
    while at < len(clause):
        length, grade = _phrase(clause, at)
        is_open = is_open or any(word in OPEN for word in clause[at : at + max(1, length)])
        if length == 0 and clause[at] in EXCESS and at + 1 < len(clause):
            length, grade = 2, _EXCESS_GRADE
        if grade:
            grade *= STRENGTHS.get(clause[at - 1], 1.0) if at else 1.0
            grade *= _NEGATED if _negated(clause, floor, at, at + length) else 1.0
            yield grade * (_OPEN_WEIGHT if is_open else 1.0)
        at += max(1, length)
        floor = at if length > 1 else floor


def _phrase(clause: Sequence[str], at: int) -> tuple[int, float]:
    """The longest phrase that begins here: how many words, and its grade; 0 words for none."""
    for length in range(min(LONGEST, len(clause) - at), 0, -1):
        grade = GRADES.get(tuple(clause[at : at + length]))
        if grade is not None:
            return length, grade
    return 0, 0.0


def _negated(clause: Sequence[str], floor: int, begin: int, end: int) -> bool:
    """Whether a negation reaches the words from ``begin`` to ``end``; two make none.

    Those before ``floor`` belong to another phrase; a picture is never turned round.
    """
    if not clause[begin][0].isalnum():
        return False
    ahead = sum(word in NEGATIONS for word in clause[max(floor, begin - _SCOPE) : begin])
    behind = sum(word in NEGATIONS_AFTER for word in clause[end : end + _SCOPE])
    return (ahead + behind) % 2 == 1
