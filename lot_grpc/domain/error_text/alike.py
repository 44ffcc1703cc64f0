"""Whether two statements say the same although their names, or a clause, differ.

They do if one is the other with an added clause. Otherwise their words are aligned (``weighing``):
they must have enough in common, in the same order, compared with what only one of them says, and
must not contradict each other anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import takewhile
from operator import eq
from typing import Final

from lot_grpc.domain.error_text.weighing import (
    CODE,
    GENERIC_WEIGHT,
    NEGATIONS,
    NEGATIVE,
    TELLING,
    Word,
    bare,
    plain,
    weight_of,
    without_heads,
    words_in,
)

_LEAST: Final = 1.2
_STRANGERS: Final = 1.5
_BESIDES: Final = 2.0
_ENOUGH: Final = 2.2
"""Common weight required: the minimum, the minimum if different programs say it, and this much per
weight of additional text, up to a weight that is enough whatever else is said."""
OWN: Final = 1.2
"""Weight of a statement that is enough by itself, whichever program says it."""
_TELLING: Final = 2
"""Weight of a word from which at least one must be in common."""
_BEHIND: Final = 0.5
"""Additional text at the end weighs less: versions add details there."""
_CONFLICT: Final = 0.15
"""The maximum conflicting weight, as a share of the common weight."""
_FOR_A_NAME: Final = 0.35
"""Weight of a word at a place where the other text has a name."""
_COVERED: Final = 0.75
_WHOLE: Final = 0.5
"""Minimum shares in common, of the shorter and of the longer statement."""

_NO_REASON: Final = re.compile(
    r"(?:.*: )?(?:cannot (?!find|locate|resolve)|[Ee]rror [a-z]+ing\b)[^:]*"
)
"""A statement of what could not be done. What could not be found is already a reason."""
_NEXT_CLAUSE: Final = (",", ";", ". ", " - ", " -- ")


def alike(one: str, other: str) -> bool:
    """Whether two signatures say the same."""
    codes = [set(CODE.findall(text)) for text in (one, other)]
    if all(codes) and not codes[0] & codes[1]:
        return False
    if _contains(bare(one), without_heads(other)) or _contains(bare(other), without_heads(one)):
        return True
    a, b = sorted((words_in(one), words_in(other)))  # a matcher is not symmetric
    others = {word.word for word in b}
    if sum(word.is_telling and word.word in others for word in a) < _TELLING:
        return False
    if _unlike_causes(a, b) or _unlike_reasons(bare(one), bare(other)):
        return False
    common = conflict = 0.0
    telling, jargon, besides, least = 0, False, [0.0, 0.0], _LEAST
    for same, left, right, last in _aligned(a, b):
        if same:
            shared = [min(word.weight for word in pair) for pair in zip(left, right, strict=True)]
            common += sum(shared)
            telling += sum(weight >= TELLING for weight in shared)
            jargon = jargon or any(word.jargon for word in left)
            continue
        if all(any(word.jargon and not word.counts for word in words) for words in (left, right)):
            least = _STRANGERS
        alone = not (left and right)
        share = _BEHIND if alone and (last or all(word.added for word in (*left, *right))) else 1.0
        weights = [_besides(words) * share for words in (left, right)]
        if min(weights) == 0.0 < max(weights):
            weights = [
                one or sum(w.weight for w in words)
                for one, words in zip(weights, (left, right), strict=True)
            ]
        besides = [sum(weight) for weight in zip(besides, weights, strict=True)]
        conflict += min(weights) + (_negated(left, right) and max(weights) <= TELLING)
    return (
        telling + jargon >= _TELLING
        and common >= min(_ENOUGH, least + _BESIDES * sum(besides))
        and conflict <= _CONFLICT * common
        and common >= _COVERED * (common + min(besides))
        and common >= _WHOLE * (common + max(besides))
    )


def overlap(one: str, other: str) -> float:
    """The share of two statements that they have in common, in [0, 1]."""
    a, b = sorted((words_in(one), words_in(other)))
    if _unlike_causes(a, b):
        return 0.0
    common, besides = _shares(a, b)
    return common / (common + max(besides)) if common else 0.0


def _shares(one: Sequence[Word], other: Sequence[Word]) -> tuple[float, list[float]]:
    """The weight of what two statements have in common, and of what only each one says."""
    common, besides = 0.0, [0.0, 0.0]
    for same, left, right, _ in _aligned(one, other):
        if same:
            common += sum(min(w.weight for w in pair) for pair in zip(left, right, strict=True))
        else:
            besides = [
                all_ + _besides(words) for all_, words in zip(besides, (left, right), strict=True)
            ]
    return common, besides


def states_no_reason(text: str) -> bool:
    """Whether a statement says only what could not be done, not why."""
    return _NO_REASON.fullmatch(plain(text)) is not None


def _says_enough(text: str) -> bool:
    """Whether a statement is enough by itself, whichever program says it."""
    words = words_in(text)
    parts = sum(word.weight >= TELLING for word in words)
    parts += "<name>" in text or any(word.jargon for word in words)
    return parts >= _TELLING and weight_of(text) >= OWN


def _aligned(
    one: Sequence[Word], other: Sequence[Word]
) -> Iterator[tuple[bool, Sequence[Word], Sequence[Word], bool]]:
    """Runs of words: whether they are the same, those of either, whether they are the last.

    A word in place of a name in the other text is most likely a name too, and weighs little.
    """
    left, right = ([word.word for word in words[:-1]] for words in (one, other))
    for tag, i, j, k, n in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        same, a, b = tag == "equal", one[i:j], other[k:n]
        if not same:
            names = _names_between(one, i, j), _names_between(other, k, n)
            if names[0] == 0 and _name_for(a, names[1], b):
                a = [word._replace(weight=_FOR_A_NAME) for word in a]
            elif names[1] == 0 and _name_for(b, names[0], a):
                b = [word._replace(weight=_FOR_A_NAME) for word in b]
        yield same, a, b, j == len(left) and n == len(right)


def _names_between(words: Sequence[Word], start: int, end: int) -> int:
    """The number of names within a run of words and up to the words around it."""
    before = words[start - 1].names if start else 0
    return words[end].names - before


def _name_for(words: Sequence[Word], names: int, other: Sequence[Word]) -> bool:
    """Whether a single word is in place of a name in the other text, with only jargon besides."""
    return (
        len(words) == 1
        and all(word.jargon for word in other)
        and names > 0
        and all(word.alone and word.word not in NEGATIVE for word in words)
    )


def _unlike_causes(one: Sequence[Word], other: Sequence[Word]) -> bool:
    """Whether both have a phrase that systems use for any failure, but none in common."""
    left, right = ({word.word for word in words if " " in word.word} for words in (one, other))
    return bool(left and right) and not left & right


def _unlike_reasons(one: str, other: str) -> bool:
    """Whether both begin with the same clauses, but each gives a reason of its own."""
    left, right = one.split(": "), other.split(": ")
    same = sum(1 for _ in takewhile(lambda pair: eq(*pair), zip(left, right, strict=False)))
    common, besides = _shares(*sorted(words_in(": ".join(each[same:])) for each in (left, right)))
    return same > 0 and common < _COVERED * (common + min(besides))


def _besides(words: Sequence[Word]) -> float:
    """The weight of additional words, without generic words and names."""
    return sum(
        word.weight * word.counts
        for word in words
        if not word.jargon and word.weight > GENERIC_WEIGHT
    )


def _negated(one: Sequence[Word], other: Sequence[Word]) -> bool:
    """Whether one is negated and the other is not."""
    left, right = ({word.word for word in words} for words in (one, other))
    return bool(
        (left & NEGATIONS and not right & NEGATIVE) or (right & NEGATIONS and not left & NEGATIVE)
    )


def _contains(whole: str, part: str) -> bool:
    """Whether a statement is another one with a clause added at either end."""
    at = whole.find(part) if part else -1
    return (
        at >= 0
        and (at == 0 or whole[:at].endswith(": "))
        and whole[at + len(part) :].startswith(_NEXT_CLAUSE if at + len(part) < len(whole) else "")
        and _says_enough(part)
    )
