"""In which order hits come: pure functions over candidates.

Relevance is the anchor (``domain.fusion``, on the scale of a cosine). What was learned reorders
near-ties only: hits whose relevance is within ``gate`` of the best one get
``weight * 2 * (chance - 1/2)`` added, so at most ``weight`` either way. The chance of a hit is told
from its outcomes on like queries (``domain.cells``), S successes in n trials, on top of two trials
at what is usual among the near-ties, though at least one half: ``(S + 2 * usual) / (n + 2)``.
BALANCED goes by that mean, EXPLORE by a sample, RELIABLE by the lower Wilson bound. Hits below the
gate learn nothing and stay behind all within it.

Things without outcomes that were given an importance are moved by it in the same way, by
``weight * 2 * (importance - 1/2)``, with ``IMPORTANCE`` as the weight.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from lot_grpc.domain.cells import Fading
from lot_grpc.domain.outcomes import wilson_lower_bound
from lot_grpc.domain.query import Ranking

POOL_FACTOR = 3
POOL_MINIMUM = 50

PRIOR_TRIALS = 2.0
"""How many trials what is usual counts for."""

IMPORTANCE = 0.05
"""The most that importance adds to a relevance or takes from it, of things that are given one."""

PRIOR_AT_LEAST = 0.5
"""What is usual is never taken for worse, or nothing new would be tried where all went wrong."""

_WEIGHT_SHARES = {Ranking.BALANCED: 1.0, Ranking.RELIABLE: 3.0, Ranking.EXPLORE: 0.375}
"""Of the weight of what was learned. A bound differs less between hits than a mean does, and a
sample more: measured by the replay (docs/learning.md)."""


@dataclass(frozen=True, slots=True)
class RankingWeights:
    """How much what was learned may do.

    ``gate``: how near to the best relevance counts as a near-tie. ``learned``: the most that what
    was learned adds to a score or takes from it; 0 turns it off. ``kernel_width``: how fast
    outcomes on other queries lose weight with their distance. ``fading``: how older outcomes do.
    """

    gate: float = 0.10
    learned: float = 0.16
    kernel_width: float = 0.08
    fading: Fading = field(default_factory=Fading)

    def weight_of(self, ranking: Ranking) -> float:
        """The most that what was learned adds or takes in a ranking."""
        return self.learned * _WEIGHT_SHARES.get(ranking, 0.0)


@dataclass(frozen=True, slots=True)
class ScorePart:
    """A component of a score; a score is the sum of value · weight over its parts."""

    name: str
    value: float
    weight: float


@dataclass(frozen=True, slots=True)
class Candidate:
    """A hit before ranking, with its outcomes on like queries: weighted, PARTIAL as ½.

    ``importance`` in [0, 1] is that of what was given one, which has no outcomes; ½ is neutral.
    """

    id: str
    relevance: float
    successes: float = 0.0
    trials: float = 0.0
    importance: float | None = None


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate with its score; ``parts`` are what came on top of its relevance."""

    candidate: Candidate
    score: float
    parts: tuple[ScorePart, ...]


def pool_size(limit: int) -> int:
    """How many candidates to fetch in order to give back ``limit``."""
    return max(POOL_FACTOR * limit, POOL_MINIMUM)


def within_gate(relevances: Sequence[float], ranking: Ranking, weights: RankingWeights) -> int:
    """How many of the best are near-ties, of which what was learned matters. Best first."""
    if not weights.weight_of(ranking) or not relevances:
        return 0
    floor = relevances[0] - weights.gate
    return sum(relevance >= floor for relevance in relevances)


def contenders(
    relevances: Sequence[float], ranking: Ranking, weights: RankingWeights, limit: int
) -> int:
    """How many of the best can come onto a page of ``limit``; of others nothing need be known.

    ``relevances`` best first. No hit below the gate passes one within it, so beyond the first
    ``limit`` only near-ties count.
    """
    return max(limit, within_gate(relevances, ranking, weights))


def rank(
    candidates: Sequence[Candidate],
    ranking: Ranking,
    weights: RankingWeights,
    limit: int,
    seed: int = 0,
) -> list[Ranked]:
    """The best ``limit`` candidates, best first; equal scores by relevance, then by id.

    At most half of them (rounded up) come from below relevance rank ``limit``. ``seed`` is that of
    EXPLORE: the same one gives the same sample for the same candidates.
    """
    by_relevance = sorted(candidates, key=lambda c: (-c.relevance, c.id))
    if not by_relevance:
        return []
    near = {candidate.id for candidate in by_relevance[:limit]}
    parts = _parts(by_relevance, ranking, weights, seed)
    scored = [
        (-(candidate.relevance + value * weight), place)
        for place, (candidate, (_, value, weight)) in enumerate(
            zip(by_relevance, parts, strict=True)
        )
    ]
    scored.sort()  # the place tells equal scores by relevance, then by id
    chosen: list[Ranked] = []
    places_from_below = (limit + 1) // 2
    for negated, place in scored:
        candidate = by_relevance[place]
        if candidate.id not in near:
            if not places_from_below:
                continue
            places_from_below -= 1
        told = (ScorePart(*parts[place]),) if parts[place] is not _NOTHING else ()
        chosen.append(Ranked(candidate, -negated, told))
        if len(chosen) == limit:
            break
    return chosen


_Part: TypeAlias = tuple[str, float, float]
"""Name, value and weight of what comes on top of a relevance."""

_NOTHING: Final[_Part] = ("", 0.0, 0.0)


def _parts(
    by_relevance: Sequence[Candidate], ranking: Ranking, weights: RankingWeights, seed: int
) -> list[_Part]:
    """What comes on top of each relevance."""
    weight = weights.weight_of(ranking)
    if not weight:
        return [_NOTHING] * len(by_relevance)
    near = within_gate([one.relevance for one in by_relevance], ranking, weights)
    prior, name = usual(by_relevance[:near]), _PART_NAMES[ranking]
    parts = [
        ("importance", 2.0 * (candidate.importance - 0.5), weight)
        if candidate.importance is not None
        else (name, 2.0 * (_chance(candidate, ranking, prior, seed) - 0.5), weight)
        for candidate in by_relevance[:near]
    ]
    return parts + [("below_gate", 1.0, -weight)] * (len(by_relevance) - near)


_PART_NAMES = {
    Ranking.BALANCED: "learned",
    Ranking.RELIABLE: "reliability",
    Ranking.EXPLORE: "explored",
}


def usual(near: Sequence[Candidate]) -> float:
    """The chance of success that is usual among near-ties, at least one half."""
    successes = math.fsum(candidate.successes for candidate in near)
    trials = math.fsum(candidate.trials for candidate in near)
    return max(PRIOR_AT_LEAST, (successes + 1.0) / (trials + 2.0))


def _chance(candidate: Candidate, ranking: Ranking, prior: float, seed: int) -> float:
    """The chance of success that a near-tie is ranked by, in [0, 1]."""
    successes = candidate.successes + PRIOR_TRIALS * prior
    trials = candidate.trials + PRIOR_TRIALS
    if ranking is Ranking.RELIABLE:
        return wilson_lower_bound(successes, trials)
    if ranking is Ranking.EXPLORE:
        # Its own for each candidate and seed, whatever others there are.
        chooser = random.Random(f"{seed}:{candidate.id}")  # noqa: S311 - no secret
        failures = max(trials - successes, 1e-9)
        return chooser.betavariate(successes, failures)
    return successes / trials
