"""How two texts differ in what is to be done: by their words, opposites and negations.

Two texts with nearly the same words may ask for opposite things ("enable", "disable"), which a
vector hardly shows: it captures what both are about. Opposites and negations are those of English;
in other languages only the words in common are compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile
from typing import Final

from lot_grpc.domain.opposites import bases, opposites_of
from lot_grpc.lexical.terms import FUNCTION_TERMS, word_terms

_CHARACTERS: Final = 1_000
"""Of a text that are read. What is to be done mostly stands at its beginning; longer texts that
begin alike are read from shortly before they differ."""

_PHRASES: Final = {
    ("on", "turn switch power"): "enable",
    ("off", "turn switch power"): "disable",
    ("in into on", "log sign"): "login",
    ("out off", "log sign"): "logout",
    ("up", "scale turn move roll scroll"): "increase",
    ("down", "scale turn move roll scroll"): "decrease",
}
"""Verbs whose particle says what they mean, and one word for it."""
_MEANING: Final = {
    (verb, particle): meaning
    for (particles, verbs), meaning in _PHRASES.items()
    for verb in verbs.split()
    for particle in particles.split()
}
_PHRASE: Final = re.compile(
    r"\b(turn|switch|power|log|sign|scale|move|roll|scroll)(?:g?ed|d|s|g?ing)? "
    r"(?:\w+ ){0,3}?(on|off|in|into|out|up|down)\b",
    re.IGNORECASE,
)

_TOKEN: Final = re.compile(
    r"(?P<stop>[.;:!?\n]+(?=\s|$)|,)|(?P<slot>\{\w+\})|(?P<quoted>\"[^\"\n]*\"|`[^`\n]*`|(?<!\w)'[^'\n]+'(?!\w))"
    r"|(?P<word>\w+(?:['\u2019]\w+)?)"
)
_NEGATION: Final = re.compile(
    r"not|no|never|without|cannot|neither|nor|none|avoid|\w+n['\u2019]t|(?:do|does|did|is|wo|ca)nt",
    re.IGNORECASE,
)
_REACH: Final = 4
"""Words behind a negation that it denies, within its part of the sentence."""

_TOWARDS: Final = frozenset({"to", "into", "by"})
_BESIDE: Final = 2
"""Words on each side of such a word that it may stand between."""

_VALUE: Final = re.compile(r"\d")


@dataclass(frozen=True, slots=True)
class Contrast:
    """What two texts have in common, and whether they contradict each other.

    ``opposed``: one has the opposite of a word of the other, denies what the other says, or names
    the same two things the other way round ("from A to B").
    ``likeness``: Dice's coefficient of both sets of words, without function words and without
    values (numbers, names, quotations), in which tasks of one form differ.
    """

    likeness: float
    opposed: bool


@dataclass(slots=True)
class _Read:
    """A text as it is compared.

    ``words`` and ``negated`` are terms, ``said`` and ``denied`` the words as they stand.
    ``moves``: what stands before and behind a "to".
    """

    words: frozenset[str]
    form: frozenset[str]
    negated: frozenset[str]
    said: frozenset[str]
    denied: frozenset[str]
    moves: frozenset[tuple[str, str]]


def contrast(one: str, other: str) -> Contrast:
    """Compare two texts."""
    start = 0
    if max(len(one), len(other)) > _CHARACTERS:
        alike = takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
        start = max(0, sum(1 for _ in alike) - _CHARACTERS // 5)
    ours, theirs = (_read(text[start : start + _CHARACTERS]) for text in (one, other))
    return Contrast(
        2 * len(ours.form & theirs.form) / (len(ours.form) + len(theirs.form) or 1),
        _opposed(ours, theirs),
    )


def _opposed(one: _Read, other: _Read) -> bool:
    """Whether they contradict each other."""
    return (
        _has_opposite(_one_sided(one) - other.said, _one_sided(other) - one.said)
        or _denies(one, other)
        or _denies(other, one)
        or any((end, start) in other.moves for start, end in one.moves - other.moves)
    )


def _has_opposite(ours: frozenset[str], theirs: frozenset[str]) -> bool:
    found = {base for word in theirs for base in bases(word)}
    return any(not found.isdisjoint(opposites_of(word)) for word in ours)


def _one_sided(one: _Read) -> frozenset[str]:
    """Its words without those whose opposite it has as well ("speed up the slow query")."""
    return frozenset(word for word in one.said if not _has_opposite(frozenset({word}), one.said))


def _denies(one: _Read, other: _Read) -> bool:
    """Whether one denies what the other says, but for "not show" beside "hide"."""
    explained = _has_opposite(one.denied, other.said) or _has_opposite(other.denied, one.said)
    return not explained and bool(one.negated & (other.words - other.negated))


@lru_cache(maxsize=512)
def _read(text: str) -> _Read:
    words: set[str] = set()
    values: set[str] = set()
    negated: set[str] = set()
    said: set[str] = set()
    denied: set[str] = set()
    moves: set[tuple[str, str]] = set()
    before: list[str] = []
    towards: list[str] = []
    reach = after = 0
    for term, kind, word in _tokens(text):
        if kind == "stop":
            before, towards, reach = [], [], 0
        elif kind == "negation":
            reach = _REACH
        elif term in _TOWARDS:
            towards, after = before, _BESIDE
        elif kind == "value" or term not in FUNCTION_TERMS:
            (values if kind == "value" else words).add(term)
            (denied if reach else said).add(word)
            if reach:
                negated.add(term)
                reach -= 1
            if after:
                moves |= {(one, term) for one in towards}
                after -= 1
            before = [*before, term][-_BESIDE:]
    return _Read(
        frozenset(words | values),
        frozenset(words - values),
        frozenset(negated),
        frozenset(said),
        frozenset(denied),
        frozenset(moves),
    )


def _tokens(text: str) -> Iterator[tuple[str, str, str]]:
    """Terms in order, each with what it is and the word it is of."""
    text = _PHRASE.sub(_in_one_word, text)
    starts = True
    for found in _TOKEN.finditer(text):
        kind, word = found.lastgroup or "", found.group()
        if kind == "stop":
            starts = word != ","
            yield "", "stop", ""
            continue
        if kind == "slot":
            continue
        if kind == "quoted":
            for part in word.strip("\"'`").split():
                yield from ((term, "value", part.lower()) for term in word_terms(part))
        elif _NEGATION.fullmatch(word):
            yield word.lower(), "negation", ""
        elif _VALUE.search(word) or (word[0].isupper() and not starts):
            yield from ((term, "value", word.lower()) for term in word_terms(word))
        else:
            yield from ((term, "word", word.lower()) for term in word_terms(word))
        starts = False


def _in_one_word(found: re.Match[str]) -> str:
    """The phrase with the one word for it; the words between stay."""
    word = _MEANING.get((found[1].lower(), found[2].lower()))
    between = found[0].split()[1:-1]
    return " ".join([word, *between]) if word else found[0]
