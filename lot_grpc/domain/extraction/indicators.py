"""The terms, tools and steps that separate the episodes that won from those that lost."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from lot_grpc.domain.extraction.digest import Digest
from lot_grpc.domain.extraction.signs import Sign, SignKind, distinct, signs_of
from lot_grpc.domain.extraction.statistics import (
    FALSE_DISCOVERIES,
    fisher,
    given,
    smallest_possible,
    strata_of,
    threshold,
)

MOST: Final = 20
"""Maximum number of indicators per side, the most certain first."""

LEAST_DIFFERENCE: Final = 0.1
"""Minimum difference between the shares of winners and losers with a sign: less is of no use,
however certain."""

BESIDE: Final = 0.05
"""False discovery rate of signs tested together with others, which finds those that others hide."""

ENTRY: Final = 0.2
"""Share of false ones among the signs that are tried together before the strict test."""

RELATIVE_LEVEL: Final = 0.001
"""p up to which a sequence says more than its parts, or a part more than the sequence."""

_LONGEST_LABEL = 1_024
_HOPELESS = 0.2
"""A sign with this p or more alone is not tested together with others."""


@dataclass(frozen=True, slots=True)
class Indicator:
    """A significant sign: the episodes that show it, by side, and its p."""

    label: str
    shown_won: int
    shown_lost: int
    p: float


@dataclass(frozen=True, slots=True)
class Indicators:
    """The signs of winning and of losing, the most certain first.

    ``tried`` is how many signs could have been found.
    """

    winning: tuple[Indicator, ...] = ()
    losing: tuple[Indicator, ...] = ()
    tried: int = 0


def indicators(
    digests: Sequence[Digest], won: Sequence[bool], pause: Callable[[], None] = lambda: None
) -> Indicators:
    """What separates those that won. ``pause`` is called between pieces.

    A sign is found if it is certain alone or together with others (``_found``), its p within the
    threshold (``statistics``), and its shares differ by ``LEAST_DIFFERENCE``.
    """
    total, wins = len(digests), _bits(won)
    if not 0 < wins.bit_count() < total:
        return Indicators()
    signs = distinct(signs_of(digests, pause))
    won_count = wins.bit_count()
    for sign in signs:
        sign.p = fisher((sign.column & wins).bit_count(), sign.column.bit_count(), won_count, total)
        pause()
    able = [
        sign
        for sign in signs
        if smallest_possible(sign.column.bit_count(), won_count, total) <= FALSE_DISCOVERIES
    ]
    retained = _found(able, wins, total, pause)
    words = _words(digests)
    scored = [
        (s, _indicator(s, wins, words)) for s in sorted(retained, key=lambda s: (s.p, s.name))
    ]
    ahead = [one for sign, one in scored if _share_apart(sign, wins, total) > 0]
    behind = [one for sign, one in scored if _share_apart(sign, wins, total) < 0]
    return Indicators(tuple(ahead[:MOST]), tuple(behind[:MOST]), len(able))


def _bits(flags: Iterable[bool]) -> int:
    return sum(1 << number for number, flag in enumerate(flags) if flag)


# --- which of them are found ------------------------------------------------------------------


def _found(signs: Sequence[Sign], wins: int, total: int, pause: Callable[[], None]) -> list[Sign]:
    """Signs certain alone, and those certain together with others; only the needed relatives.

    Relatives are a sequence, its parts, and sequences that share a part. The most certain goes
    first; one that adds nothing within the strata of its relatives is omitted, and one that makes
    a relative redundant replaces it.
    """
    useful = [sign for sign in signs if abs(_share_apart(sign, wins, total)) >= LEAST_DIFFERENCE]
    limit = threshold([sign.p for sign in useful], len(signs), 0, FALSE_DISCOVERIES)
    beside = {sign.name for sign in _beside_others(useful, len(signs), wins, total, pause)}
    everyone = (1 << total) - 1
    retained: list[Sign] = []
    for sign in sorted(useful, key=lambda sign: (sign.p, sign.name)):
        if sign.p > limit and sign.name not in beside:
            continue
        pause()
        relatives = [one for one in retained if sign.related(one)]
        strata = strata_of(everyone, [one.column for one in relatives])
        if relatives and given(sign.column, wins, strata) > RELATIVE_LEVEL:
            continue
        apart = strata_of(everyone, [sign.column])
        retained = [
            one
            for one in retained
            if one not in relatives or given(one.column, wins, apart) <= RELATIVE_LEVEL
        ]
        retained.append(sign)
    return retained


def _beside_others(
    useful: Sequence[Sign], tried: int, wins: int, total: int, pause: Callable[[], None]
) -> list[Sign]:
    """Signs that others hide: certain among episodes that are alike in the other signs.

    The most certain is selected, then the most certain given that one, and so on, each tested
    within strata of episodes with the same number of winning minus losing signs among those
    selected. A looser level suffices for selection; to stay, each must hold at the strict level
    within the strata of all the others.
    """
    left = [sign for sign in useful if sign.p <= _HOPELESS]
    taken: list[Sign] = []
    at = {sign.name: sign.p for sign in left}
    while left and len(taken) < 2 * MOST:
        left.sort(key=lambda sign: (at[sign.name], sign.name))
        limit = threshold([at[sign.name] for sign in left], tried, len(taken), ENTRY)
        if at[left[0].name] > limit:
            break
        taken.append(left.pop(0))
        strata = _strata(taken, wins, total)
        for sign in left:
            at[sign.name] = given(sign.column, wins, strata)
            pause()
    while len(taken) > 1:
        for sign in taken:
            others = [one for one in taken if one is not sign]
            at[sign.name] = given(sign.column, wins, _strata(others, wins, total))
            pause()
        worst = max(taken, key=lambda sign: (at[sign.name], sign.name))
        if at[worst.name] <= BESIDE * len(taken) / tried:
            return taken
        taken.remove(worst)
    return []


def _strata(retained: Sequence[Sign], wins: int, total: int) -> list[int]:
    """The episodes, by their number of winning minus losing signs."""
    strata = {0: (1 << total) - 1}
    for sign in retained:
        step = 1 if _share_apart(sign, wins, total) > 0 else -1
        moved: dict[int, int] = defaultdict(int)
        for score, part in strata.items():
            moved[score + step] |= part & sign.column
            moved[score] |= part & ~sign.column
        strata = {score: part for score, part in moved.items() if part}
    return [strata[score] for score in sorted(strata)]


def _share_apart(sign: Sign, wins: int, total: int) -> float:
    ahead = (sign.column & wins).bit_count() / wins.bit_count()
    behind = (sign.column & ~wins).bit_count() / (total - wins.bit_count())
    return ahead - behind


# --- descriptions -------------------------------------------------------------------------------


def _words(digests: Sequence[Digest]) -> dict[str, str]:
    """The most common word for each term."""
    words: dict[str, Counter[str]] = defaultdict(Counter)
    for digest in digests:
        for term, word in digest.terms.items():
            words[term][word] += 1
    return {term: min(seen, key=lambda w: (-seen[w], w)) for term, seen in words.items()}


def _indicator(sign: Sign, wins: int, words: dict[str, str]) -> Indicator:
    if sign.kind is SignKind.TERM:
        label = f"term: {words[sign.parts[0]]}"
    elif sign.kind in (SignKind.TWO_STEPS, SignKind.THREE_STEPS):
        label = f"steps: {' → '.join(sign.parts)}"
    else:
        label = f"{sign.kind.name.lower()}: {sign.parts[0]}"
    shown_won = (sign.column & wins).bit_count()
    encoded = label.encode()[:_LONGEST_LABEL].decode(errors="ignore")
    return Indicator(encoded, shown_won, sign.column.bit_count() - shown_won, sign.p)
