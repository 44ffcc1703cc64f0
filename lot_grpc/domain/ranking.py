"""In which order hits come: pure functions over candidates.

Relevance is the anchor (``domain.fusion``, on the scale of a cosine). What was learned reorders
near-ties only: hits whose relevance is within ``gate`` of the best one get
``weight * 2 * (chance - 1/2)`` added, so at most ``weight`` either way. The chance of a hit is told
from its outcomes on like queries (``domain.cells``), S successes in n trials, on top of two trials
at what is usual among the near-ties, though at least one half: ``(S + 2 * usual) / (n + 2)``.
BALANCED goes by that mean, EXPLORE by a sample, RELIABLE by the lower Wilson bound. Hits below the
gate learn nothing and stay behind all within it.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from lot_grpc.domain.cells import Fading
from lot_grpc.domain.outcomes import wilson_lower_bound
from lot_grpc.domain.query import Ranking

POOL_FACTOR = 3
POOL_MINIMUM = 50

PRIOR_TRIALS = 2.0
"""How many trials what is usual counts for."""

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
    """A hit before ranking, with its outcomes on like queries: weighted, PARTIAL as ½."""

    id: str
    relevance: float
    successes: float = 0.0
    trials: float = 0.0


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
    if ranking is Ranking.SIMILARITY or not weights.learned or not relevances:
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
    scored = _scored(by_relevance, ranking, weights, seed)
    scored.sort(key=lambda one: (-one.score, -one.candidate.relevance, one.candidate.id))
    chosen: list[Ranked] = []
    places_from_below = (limit + 1) // 2
    for one in scored:
        if one.candidate.id not in near:
            if not places_from_below:
                continue
            places_from_below -= 1
        chosen.append(one)
        if len(chosen) == limit:
            break
    return chosen


def _scored(
    by_relevance: Sequence[Candidate], ranking: Ranking, weights: RankingWeights, seed: int
) -> list[Ranked]:
    weight = weights.weight_of(ranking)
    if not weight:
        return [Ranked(candidate, candidate.relevance, ()) for candidate in by_relevance]
    near = within_gate([one.relevance for one in by_relevance], ranking, weights)
    prior = usual(by_relevance[:near])
    scored = []
    for place, candidate in enumerate(by_relevance):
        part = ScorePart("below_gate", 1.0, -weight)
        if place < near:
            chance = _chance(candidate, ranking, prior, seed)
            part = ScorePart(_PART_NAMES[ranking], 2.0 * (chance - 0.5), weight)
        score = candidate.relevance + part.value * part.weight
        scored.append(Ranked(candidate, score, (part,)))
    return scored


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
