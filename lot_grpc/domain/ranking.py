"""In which order hits come: pure functions over candidates.

Relevance is the anchor (``domain.fusion``, on the scale of a cosine). What was learned reorders
near-ties only: hits whose relevance is within ``gate`` of the best one get
``weight * 2 * (beta mean - 1/2)`` added, so at most ``weight`` either way. Hits below the gate
learn nothing and lose ``weight``, so that none climbs over a near-tie.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lot_grpc.domain.outcomes import beta_mean
from lot_grpc.domain.query import Ranking

POOL_FACTOR = 3
POOL_MINIMUM = 50


@dataclass(frozen=True, slots=True)
class RankingWeights:
    """How much what was learned may do.

    ``gate``: how near to the best relevance counts as a near-tie. ``learned``: the most that what
    was learned adds to a score or takes from it; 0 turns it off.
    """

    gate: float = 0.08
    learned: float = 0.08


@dataclass(frozen=True, slots=True)
class ScorePart:
    """A component of a score; a score is the sum of value · weight over its parts."""

    name: str
    value: float
    weight: float


@dataclass(frozen=True, slots=True)
class Candidate:
    """A hit before ranking. Counts with PARTIAL as ½."""

    id: str
    relevance: float
    successes: float = 0.0
    trials: int = 0


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate with its score; ``parts`` are what came on top of its relevance."""

    candidate: Candidate
    score: float
    parts: tuple[ScorePart, ...]


def pool_size(limit: int) -> int:
    """How many candidates to fetch in order to give back ``limit``."""
    return max(POOL_FACTOR * limit, POOL_MINIMUM)


def contenders(
    relevances: Sequence[float], ranking: Ranking, weights: RankingWeights, limit: int
) -> int:
    """How many of the best can come onto a page of ``limit``; of others nothing need be known.

    ``relevances`` best first. No hit below the gate passes one within it, so beyond the first
    ``limit`` only near-ties count.
    """
    if ranking is Ranking.SIMILARITY or not weights.learned or not relevances:
        return limit
    floor = relevances[0] - weights.gate
    return max(limit, sum(relevance >= floor for relevance in relevances))


def _part(candidate: Candidate, gate_floor: float, weight: float) -> tuple[str, float, float]:
    """What comes on top of the relevance: name, value, weight."""
    if candidate.relevance < gate_floor:
        return "below_gate", 1.0, -weight
    return "learned", 2.0 * (beta_mean(candidate.successes, candidate.trials) - 0.5), weight


def _score(candidate: Candidate, gate_floor: float, weight: float) -> float:
    if not weight:
        return candidate.relevance
    _, value, weight = _part(candidate, gate_floor, weight)
    return candidate.relevance + value * weight


def _ranked(candidate: Candidate, score: float, gate_floor: float, weight: float) -> Ranked:
    parts = (ScorePart(*_part(candidate, gate_floor, weight)),) if weight else ()
    return Ranked(candidate, score, parts)


def rank(
    candidates: Sequence[Candidate], ranking: Ranking, weights: RankingWeights, limit: int
) -> list[Ranked]:
    """The best ``limit`` candidates, best first; equal scores by id.

    At most half of them (rounded up) come from below relevance rank ``limit``.
    """
    by_relevance = sorted(candidates, key=lambda c: (-c.relevance, c.id))
    if not by_relevance:
        return []
    learned = 0.0 if ranking is Ranking.SIMILARITY else weights.learned
    floor = by_relevance[0].relevance - weights.gate
    near = {candidate.id for candidate in by_relevance[:limit]}
    scored = [(_score(candidate, floor, learned), candidate) for candidate in by_relevance]
    scored.sort(key=lambda item: (-item[0], item[1].id))
    chosen: list[Ranked] = []
    places_from_below = (limit + 1) // 2
    for score, candidate in scored:
        if candidate.id not in near:
            if not places_from_below:
                continue
            places_from_below -= 1
        chosen.append(_ranked(candidate, score, floor, learned))
        if len(chosen) == limit:
            break
    return chosen
