"""In which order hits come: pure functions over candidates.

Similarity is the anchor. What was learned reorders near-ties only: hits whose similarity is within
``gate`` of the best one get ``weight * 2 * (beta mean - 1/2)`` added, so at most ``weight`` either
way. Hits below the gate learn nothing and lose ``weight``, so that none climbs over a near-tie.
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

    ``gate``: how near to the best similarity counts as a near-tie. ``learned``: the most that what
    was learned adds to a score or takes from it; 0 turns it off.
    """

    gate: float = 0.08
    learned: float = 0.08


@dataclass(frozen=True, slots=True)
class Candidate:
    """A hit before ranking. ``similarity`` in [0, 1]; counts with PARTIAL as ½."""

    id: str
    similarity: float
    successes: float = 0.0
    trials: int = 0


@dataclass(frozen=True, slots=True)
class ScorePart:
    """A component of a score; a score is the sum of value · weight over its parts."""

    name: str
    value: float
    weight: float


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate with its score and how it came about."""

    candidate: Candidate
    score: float
    parts: tuple[ScorePart, ...]


def pool_size(limit: int) -> int:
    """How many candidates to fetch in order to give back ``limit``."""
    return max(POOL_FACTOR * limit, POOL_MINIMUM)


def contenders(
    similarities: Sequence[float], ranking: Ranking, weights: RankingWeights, limit: int
) -> int:
    """How many of the nearest can come onto a page of ``limit``; of others nothing need be known.

    ``similarities`` best first. No hit below the gate passes one within it, so beyond the first
    ``limit`` only near-ties count.
    """
    if ranking is Ranking.SIMILARITY or not weights.learned or not similarities:
        return limit
    floor = similarities[0] - weights.gate
    return max(limit, sum(similarity >= floor for similarity in similarities))


def _part(candidate: Candidate, gate_floor: float, weight: float) -> tuple[str, float, float]:
    """What comes on top of the similarity: name, value, weight."""
    if candidate.similarity < gate_floor:
        return "below_gate", 1.0, -weight
    return "learned", 2.0 * (beta_mean(candidate.successes, candidate.trials) - 0.5), weight


def _score(candidate: Candidate, gate_floor: float, weight: float) -> float:
    if not weight:
        return candidate.similarity
    _, value, weight = _part(candidate, gate_floor, weight)
    return candidate.similarity + value * weight


def _ranked(candidate: Candidate, score: float, gate_floor: float, weight: float) -> Ranked:
    parts = [ScorePart("similarity", candidate.similarity, 1.0)]
    if weight:
        parts.append(ScorePart(*_part(candidate, gate_floor, weight)))
    return Ranked(candidate, score, tuple(parts))


def rank(
    candidates: Sequence[Candidate], ranking: Ranking, weights: RankingWeights, limit: int
) -> list[Ranked]:
    """The best ``limit`` candidates, best first; equal scores by id.

    At most half of them (rounded up) come from below similarity rank ``limit``.
    """
    by_similarity = sorted(candidates, key=lambda c: (-c.similarity, c.id))
    if not by_similarity:
        return []
    learned = 0.0 if ranking is Ranking.SIMILARITY else weights.learned
    floor = by_similarity[0].similarity - weights.gate
    near = {candidate.id for candidate in by_similarity[:limit]}
    scored = [(_score(candidate, floor, learned), candidate) for candidate in by_similarity]
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
