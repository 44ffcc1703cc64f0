"""Tests whether a sign is associated with winning beyond chance.

Episodes are bits of integers: ``won`` has a one for each that won, a sign's column one for each
that shows it. So counts are a bitwise and, and a count of ones.

- Fisher's exact test (Fisher, "The Design of Experiments", 1935), two-sided by doubling.
- Many signs are tried: the false discovery rate is held at ``FALSE_DISCOVERIES`` by Benjamini and
  Hochberg (1995), over those signs alone whose counts could reach that level, whatever the split.
  Tarone (1990) and Gilbert (2005) tell why the others need not be paid for.
- Whether a sign says more than others that were found: the Mantel-Haenszel test over the strata
  that these form (Mantel and Haenszel, 1959), with its continuity correction.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

FALSE_DISCOVERIES: Final = 0.02
"""Share of false ones among all signs found that is put up with, in expectation."""

_NEGLIGIBLE = 1e-12


@lru_cache(maxsize=65_536)
def fisher(shown_won: int, shown: int, won: int, total: int) -> float:
    """Two-sided p: how likely ``shown_won`` or a rarer split is if the sign meant nothing.

    Of ``total`` episodes ``won`` won, and ``shown`` show the sign.
    """
    tail = min(
        _tail(shown_won, shown, won, total, +1),
        _tail(shown_won, shown, won, total, -1),
    )
    return min(1.0, 2 * tail)


@lru_cache(maxsize=65_536)
def smallest_possible(shown: int, won: int, total: int) -> float:
    """The least p that a sign shown so often can reach, whatever the split."""
    most, least = min(shown, won), max(0, shown - (total - won))
    return min(fisher(most, shown, won, total), fisher(least, shown, won, total))


def threshold(values: Sequence[float], tried: int, found: int, level: float) -> float:
    """The p up to which signs count as found, of ``tried`` ones; 0 when none is.

    ``values`` are those of the signs still in question, ``found`` how many were found before them.
    """
    limit = 0.0
    for rank, value in enumerate(sorted(values), 1):
        if value <= level * (found + rank) / max(1, tried):
            limit = value
    return limit


def given(sign: int, won: int, strata: Iterable[int]) -> float:
    """Two-sided p of a sign within strata of the episodes; 1 where they leave nothing to tell."""
    apart = spread = 0.0
    for stratum in strata:
        n = stratum.bit_count()
        if n < 2:
            continue
        shown, wins = (sign & stratum).bit_count(), (won & stratum).bit_count()
        apart += (sign & won & stratum).bit_count() - shown * wins / n
        spread += shown * wins * (n - shown) * (n - wins) / (n * n * (n - 1))
    if spread <= _NEGLIGIBLE:
        return 1.0
    distance = max(0.0, abs(apart) - 0.5) / math.sqrt(spread)
    return math.erfc(distance / math.sqrt(2))


def strata_of(everyone: int, signs: Iterable[int]) -> list[int]:
    """The episodes, apart by which of the signs they show."""
    strata = [everyone]
    for sign in signs:
        strata = [part for one in strata for part in (one & sign, one & ~sign) if part]
    return strata


def _tail(at: int, shown: int, won: int, total: int, step: int) -> float:
    """Sum of the hypergeometric chances from ``at`` on, upwards or downwards."""
    least, most = max(0, shown - (total - won)), min(shown, won)
    chance = math.exp(
        _log_choose(won, at) + _log_choose(total - won, shown - at) - _log_choose(total, shown)
    )
    tail, count = 0.0, at
    while least <= count <= most:
        tail += chance
        if step > 0:
            chance *= (won - count) * (shown - count)
            chance /= (count + 1) * (total - won - shown + count + 1)
        else:
            chance *= count * (total - won - shown + count)
            chance /= (won - count + 1) * (shown - count + 1)
        count += step
        if chance < tail * _NEGLIGIBLE:
            break
    return tail


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
