"""How two texts differ in what is to be done: by their words, opposites and negations.

Two texts with nearly the same words may mean the opposite ("enable", "disable"), which a vector
hardly shows: it captures the topic of both. Opposites and negations are English only; in other
languages only the words in common are compared.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import takewhile
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lot_grpc.domain.opposites import PAIRED, PARTICLES, one_word, opposites_among
from lot_grpc.domain.text_form import word_form
from lot_grpc.domain.tokens import TOKEN
from lot_grpc.lexical.terms import FUNCTION_TERMS, FUNCTION_WORDS, parts_of, stem_of

_CHARACTERS: Final = 1_000
"""Characters of a text that are read. The instruction is mostly at the beginning; longer texts that
begin alike are read from shortly before they differ."""

_PHRASES: Final = {
    ("on", "turn switch power"): "enable",
    ("off", "turn switch power"): "disable",
    ("in into on", "log sign"): "login",
    ("out off", "log sign"): "logout",
    ("in", "opt"): "optin",
    ("out", "opt"): "optout",
    ("up", "scal turn mov roll scroll"): "increase",
    ("down", "scal turn mov roll scroll"): "decrease",
    ("in out", "fill"): "fill",
}
"""Verb stems whose meaning depends on the particle, and one word for that meaning."""
_MEANING: Final = {
    (verb, particle): meaning
    for (particles, verbs), meaning in _PHRASES.items()
    for verb in verbs.split()
    for particle in particles.split()
}
_PHRASE: Final = re.compile(
    r"\b(turn|switch|power|log|sign|opt|scal|mov|roll|scroll|fill)(?:[egt]?(?:s|d|ed|ing)?)"
    r"(?:[ -](on|off|into|in|out|up|down)\b"
    r"|((?: (?!(?:and|or|then) )[\w'-]+){1,15}?) (on|off|in|out|up|down)"
    r"(?=\s*(?:[.,;:!?\n]|$)| (?:again|and|after|before|by|during|for|from|in|if|once|or|so|then"
    r"|to|until|when|while|with)\b))",
    re.IGNORECASE,
)
"""The particle directly follows the verb, or its object."""

_SUSPENDED: Final = re.compile(
    rf"\b({'|'.join(one for one, _ in PAIRED)})-(?:/| and | or )({'|'.join(b for _, b in PAIRED)})"
    r"(\w+)",
    re.IGNORECASE,
)
"""Two words that share their second part: "up-/downgrade", "in- and outbound"."""

_TOKEN: Final = re.compile(
    r"(?P<stop>[.;:!?\n]+(?=\s|$)|,)|(?P<slot>\{\w+\})|(?P<quoted>\"[^\"\n]*\"|`[^`\n]*`|(?<!\w)'[^'\n]+'(?!\w))"
    r"|(?P<word>\w+(?:[-'\u2019]\w+)*)"
)
_NEGATION: Final = re.compile(
    r"not|no|never|without|cannot|neither|nor|none|avoid|\w+n['\u2019]t|(?:do|does|did|is|wo|ca)nt",
    re.IGNORECASE,
)
_REACH: Final = 4
"""How many words after a negation it negates, within its part of the sentence."""

_TOWARDS: Final = frozenset({"to", "into", "by"})
_BESIDE: Final = 2
"""Words on each side of such a word that are considered."""

_WORDS_KEPT: Final = 8_192
_FEW: Final = 3
"""Two texts differ little if each has at most this many words that the other lacks."""

_VALUE: Final = re.compile(r"\d")
_LITERAL: Final = re.compile(r"[\d/@\"`“']")

_NOWHERE: Final = np.zeros(0, dtype=np.intp)

Opposites: TypeAlias = Mapping[str, AbstractSet[str]]


@dataclass(frozen=True, slots=True)
class Contrast:
    """What two texts have in common, and whether they contradict each other.

    ``opposed``: one has the opposite of a word of the other, negates what the other says, or names
    the same two ends the other way round ("from A to B").
    ``likeness``: Dice's coefficient of both sets of words, without function words and without
    values (numbers, names, quotations), in which tasks of the same form differ.
    ``differ``: each has such a word that the other lacks.
    """

    likeness: float
    differ: bool
    opposed: bool


@dataclass(frozen=True, slots=True)
class Reading:
    """A text prepared for comparison.

    ``words`` and ``negated`` are terms, ``affirmed`` and ``denied`` the words as written.
    ``form``: ``words`` without values (numbers, names, quotations). ``particles``: function words
    and ``PARTICLES``, each with the number of earlier occurrences. ``moves``: the words before and
    after a "to". ``all_words``: all words that may have known opposites.
    """

    words: frozenset[str]
    form: frozenset[str]
    negated: frozenset[str]
    affirmed: frozenset[str]
    denied: frozenset[str]
    particles: frozenset[tuple[str, int]]
    moves: frozenset[tuple[str, str]]
    all_words: frozenset[str]


def contrast(one: str, other: str) -> Contrast:
    """Compare two texts."""
    start = 0
    if max(len(one), len(other)) > _CHARACTERS:
        alike = takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
        start = max(0, sum(1 for _ in alike) - _CHARACTERS // 5)
    ours, theirs = (read(text[start : start + _CHARACTERS]) for text in (one, other))
    return Contrast(
        2 * len(ours.form & theirs.form) / (len(ours.form) + len(theirs.form) or 1),
        not (ours.form <= theirs.form or theirs.form <= ours.form),
        opposed(ours, theirs),
    )


def opposed(one: Reading, other: Reading, known: Opposites | None = None) -> bool:
    """Whether they contradict each other. ``known``: opposites among the words of both and more."""
    if known is None:
        known = opposites_among(one.all_words | other.all_words)
    if _denies(one, other, known) or _denies(other, one, known):
        return True
    if any((end, start) in other.moves for start, end in one.moves - other.moves):
        return True
    if not known:
        return False
    ours = _one_sided(one.affirmed - other.affirmed, known)
    theirs = _one_sided(other.affirmed - one.affirmed, known)
    return _opposite(ours, theirs, known) or _differ_in_particles(one, other, known)


def _opposite(ours: AbstractSet[str], theirs: AbstractSet[str], known: Opposites) -> bool:
    return any(word in known and not known[word].isdisjoint(theirs) for word in ours)


def _one_sided(words: AbstractSet[str], known: Opposites) -> AbstractSet[str]:
    """Words with known opposites that are not among them too ("speed up the slow query")."""
    return {word for word in words if word in known and known[word].isdisjoint(words)}


def _denies(one: Reading, other: Reading, known: Opposites) -> bool:
    """Whether one negates what the other says, except "not show" and "hide"."""
    if not one.negated:
        return False
    return not one.negated.isdisjoint(other.words - other.negated) and not (
        _opposite(one.denied, other.affirmed, known) or _opposite(other.denied, one.affirmed, known)
    )


def _differ_in_particles(one: Reading, other: Reading, known: Opposites) -> bool:
    """Whether they differ in little except words such as "on" and "off"."""
    ours, theirs = one.particles - other.particles, other.particles - one.particles
    return (
        _opposite({word for word, _ in ours}, {word for word, _ in theirs}, known)
        and len(ours) + len(one.words - other.words) <= _FEW
        and len(theirs) + len(other.words - one.words) <= _FEW
    )


class Contradictions:
    """Which of many texts contradict each other (``opposed``), without comparing every pair."""

    def __init__(self, texts: Sequence[Reading]) -> None:
        self._known = opposites_among({word for one in texts for word in one.all_words})
        self._texts = [replace(one, affirmed=one.affirmed & self._known.keys()) for one in texts]
        self._affirmed_at = _places(one.affirmed for one in self._texts)
        self._negated = _places(one.negated for one in texts)
        self._moves = _places(one.moves for one in texts)
        self._tokens = _places(one.words | one.particles for one in texts)
        self._sizes = np.array([len(one.words) + len(one.particles) for one in texts])

    def of_each(self, places: Iterable[int]) -> Iterator[tuple[int, list[int]]]:
        """The texts at ``places``, each with all that contradict it, as positions."""
        later = np.ones(len(self._texts), dtype=np.bool_)
        known: dict[int, list[int]] = {}
        for at in places:
            later[at] = False
            found = [
                other
                for other in np.flatnonzero(later & self._near(at)).tolist()
                if opposed(self._texts[at], self._texts[other], self._known)
            ]
            for other in found:
                known.setdefault(other, []).append(at)
            yield at, found + known.pop(at, [])

    def _near(self, at: int) -> NDArray[np.bool_]:
        """Which texts may contradict the one at a position; others cannot."""
        one = self._texts[at]
        near = np.zeros(len(self._texts), dtype=np.bool_)
        for word in one.affirmed:
            for other in self._known[word]:
                near[self._affirmed_at.get(other, _NOWHERE)] = True
        for term in one.negated:
            near[self._tokens[term]] = True
        for term in one.words:
            near[self._negated.get(term, _NOWHERE)] = True
        for start, end in one.moves:
            near[self._moves.get((end, start), _NOWHERE)] = True
        places = [self._tokens[token] for token in one.words | one.particles]
        shared = np.bincount(np.concatenate([_NOWHERE, *places]), minlength=len(self._texts))
        few: NDArray[np.bool_] = np.maximum(self._sizes, self._sizes[at]) - shared <= _FEW
        return near | few


def _places(texts: Iterable[AbstractSet[Any]]) -> dict[Any, NDArray[np.intp]]:
    """The positions of the texts that contain each item."""
    places: dict[Any, list[int]] = {}
    for at, things in enumerate(texts):
        for thing in things:
            places.setdefault(thing, []).append(at)
    return {thing: np.array(found, dtype=np.intp) for thing, found in places.items()}


# --- the same meaning in other words ----------------------------------------------------------


def may_mean_the_same(one: str, other: str) -> bool:
    """Whether two texts may mean the same, judged by what an embedding hardly captures.

    They may not if they contradict each other, if their literals (numbers, quotations, URLs,
    addresses, paths, versions) differ or are in another order, or if they have the same words in
    another order ("from Paris to Rome").
    """
    first, second = _sequence(one), _sequence(other)
    if first == second:
        return True
    return (
        _literals(first) == _literals(second)
        and sorted(first) != sorted(second)
        and not contrast(one, other).opposed
    )


def _sequence(text: str) -> list[str]:
    found = (match[0].casefold() for match in TOKEN.finditer(word_form(text)))
    return [token for token in found if len(token) > 1 or token.isalnum()]


def _literals(tokens: list[str]) -> list[str]:
    return [token for token in tokens if _LITERAL.search(token.replace("'s", ""))]


# --- reading ----------------------------------------------------------------------------------


@lru_cache(maxsize=512)
def read(text: str) -> Reading:
    """Read a text, or the beginning of a long one."""
    words: set[str] = set()
    values: set[str] = set()
    negated: set[str] = set()
    affirmed: set[str] = set()
    denied: set[str] = set()
    particles: set[tuple[str, int]] = set()
    occurrences: Counter[str] = Counter()
    moves: set[tuple[str, str]] = set()
    before: list[str] = []
    towards: list[str] = []
    reach = after = 0
    for term, kind, word in _tokens(word_form(text[:_CHARACTERS])):
        if kind == "stop":
            before, towards, reach = [], [], 0
            continue
        if kind == "negation":
            reach = _REACH
            continue
        if term in FUNCTION_TERMS or word in PARTICLES:
            particles.add((word, occurrences[word]))
            occurrences[word] += 1
        if term in _TOWARDS:
            towards, after = before, _BESIDE
        elif kind == "value" or term not in FUNCTION_TERMS:
            (values if kind == "value" else words).add(term)
            (denied if reach else affirmed).add(word)
            if reach:
                negated.add(term)
                reach -= 1
            if after:
                moves |= {(one, term) for one in towards}
                after -= 1
            before = [*before, term][-_BESIDE:]
    affirmed, denied = affirmed - PARTICLES, denied - PARTICLES
    return Reading(
        frozenset(words | values),
        frozenset(words - values),
        frozenset(negated),
        frozenset(affirmed),
        frozenset(denied),
        frozenset(particles),
        frozenset(moves),
        frozenset(affirmed).union(denied, (word for word, _ in particles)),
    )


def _tokens(text: str) -> Iterator[tuple[str, str, str]]:
    """Terms in order, each with its type and the word it comes from."""
    if "-" in text:
        text = _SUSPENDED.sub(r"\1\3 \2\3", text)
    starts = True
    for found in _TOKEN.finditer(_PHRASE.sub(_in_one_word, text)):
        kind, word = found.lastgroup, found.group()
        if kind == "word":
            yield from _word(word, starts)
        elif kind == "stop":
            starts = word != ","
            yield "", "stop", ""
            continue
        elif kind == "quoted":
            for part in word.strip("\"'`").split():
                yield from _parts("value", part)
        else:
            continue
        starts = False


@lru_cache(maxsize=_WORDS_KEPT)
def _word(word: str, starts: bool) -> tuple[tuple[str, str, str], ...]:
    """The terms of a word. ``starts``: it begins a sentence, so its capital means nothing."""
    if _NEGATION.fullmatch(word):
        return ((word.lower(), "negation", ""),)
    capital = word[0].isupper() and not starts and word.lower() not in FUNCTION_WORDS
    return _parts("value" if capital or _VALUE.search(word) else "word", word)


@lru_cache(maxsize=_WORDS_KEPT)
def _parts(kind: str, word: str) -> tuple[tuple[str, str, str], ...]:
    parts = parts_of(word)
    whole = one_word(parts) if parts else ""
    return tuple((stem_of(part), kind, whole or part) for part in parts)


def _in_one_word(found: re.Match[str]) -> str:
    """The phrase replaced by its single word; the words in between stay."""
    particle = (found[2] or found[4]).lower()
    word = _MEANING.get((found[1].lower(), particle))
    return word + (found[3] or "") if word else found[0]
