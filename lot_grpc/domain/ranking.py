"""The order of hits: pure functions over candidates.

Relevance is the anchor (``domain.fusion``, on the scale of a cosine). Learning reorders only
near-ties: hits whose relevance is within ``reorder_margin`` of the best one. Their relevance
changes by ``weight`` times the distance of the log-odds of their chance from those of an untried
near-tie, divided by ``SURE`` and at most ``weight`` either way. So untried hits neither gain nor
lose.

The chance of an untried near-tie starts at ``neutral``. Its odds are multiplied by how often the
near-ties tried on this very query worked, compared with how often that was expected from their
relevance. If few work, failed ones are tried again before far less relevant ones; if many work,
others are tried. Outcomes on similar queries (``domain.context_stats``), S successes in n trials,
shift the log-odds of a hit's chance by the distance of those of ``(S + 4 * neutral) / (n + 4)``
from those of ``neutral``, which gives c. Outcomes on the query itself count in full: ``(S + 2 * c)
/ (n + 2)``. BALANCED uses that mean. RELIABLE uses the lower Wilson bound if that is above the
chance of untried hits, and the mean if that is below. EXPLORE uses the mean moved towards a sample,
further the more trials there are. Hits outside the margin are not affected and stay after all those
within it. docs/learning.md and the contract (OutcomeEvidence) have the formula.

Near-ties with an importance are moved by it too, by ``IMPORTANCE * 2 * (importance - 1/2)``.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from lot_grpc.domain.context_stats import Fading
from lot_grpc.domain.outcomes import wilson_lower_bound
from lot_grpc.domain.query import Ranking

POOL_FACTOR = 3
POOL_MINIMUM = 50

PRIOR_TRIALS = 2.0
"""Trials that are added to the outcomes on the query itself, at the chance they start from (c)."""

OTHER_PRIOR_TRIALS = 4.0
"""Trials at ``neutral`` that are added to the outcomes on like queries."""

SURE = 3.0
"""The distance in log-odds at which what was learned counts in full: from .3 to a chance of .9.
This and the numbers around it were chosen by the replay of docs/learning.md, which names the data.
"""

EXPLORED = 0.3
"""How far EXPLORE goes from the mean to a sample if there are many trials."""

PROVEN_Z = 1.2815515655446004
"""90 % quantile of the normal distribution: the confidence that RELIABLE needs. With 97.5 %, one
failure after eight successes would undo all of them."""

IMPORTANCE = 0.05
"""The maximum change of the relevance of a resource by its importance."""


@dataclass(frozen=True, slots=True)
class RankingWeights:
    """How much learning may change the order.

    ``reorder_margin``: how near to the best relevance counts as a near-tie. ``learned``: the most
    that what was learned adds to a score or takes from it; 0 turns it off. ``kernel_width``: how
    fast outcomes on other queries lose weight with their distance. ``fading``: how older outcomes
    do. ``importance``: the most that an importance adds or takes, 0 for kinds that have none.
    ``neutral``: the chance of a near-tie never tried, as long as nothing was tried on a query;
    ``expected_tried``: how many near-ties that did as expected are added to those tried on it.
    """

    reorder_margin: float = 0.15
    learned: float = 0.2
    kernel_width: float = 0.06
    fading: Fading = field(default_factory=Fading)
    neutral: float = 0.45
    expected_tried: float = 5.0
    importance: float = 0.0

    def weight_of(self, ranking: Ranking) -> float:
        """The most that learning adds or subtracts in a ranking."""
        return self.learned if ranking in _PART_NAMES else 0.0

    def most(self, ranking: Ranking) -> float:
        """The most that learning and importance add or subtract together in a ranking."""
        return self.learned + self.importance if ranking in _PART_NAMES else 0.0


@dataclass(frozen=True, slots=True)
class ScorePart:
    """A component of a score; a score is the sum of value · weight over its parts."""

    name: str
    value: float
    weight: float


@dataclass(slots=True)
class Candidate:
    """A hit before ranking, with its outcomes: PARTIAL as ½, older ones faded.

    ``successes`` and ``trials`` are those on the query itself, ``other_successes`` and
    ``other_trials`` those on like queries, weighted. ``importance`` in [0, 1], for kinds that have
    one; ½ is neutral.
    """

    id: str
    relevance: float
    successes: float = 0.0
    trials: float = 0.0
    other_successes: float = 0.0
    other_trials: float = 0.0
    importance: float | None = None

    @property
    def tried(self) -> bool:
        """Whether it has any outcomes."""
        ours, others = self.trials or self.successes, self.other_trials or self.other_successes
        return bool(ours or others)


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate with its score; ``parts`` were added to its relevance."""

    candidate: Candidate
    score: float
    parts: tuple[ScorePart, ...]


def pool_size(limit: int) -> int:
    """How many candidates to fetch to return ``limit``."""
    return max(POOL_FACTOR * limit, POOL_MINIMUM)


def within_margin(relevances: Sequence[float], ranking: Ranking, weights: RankingWeights) -> int:
    """How many of the best are near-ties, which anything else may reorder. Best first."""
    if not weights.most(ranking) or not relevances:
        return 0
    floor = relevances[0] - weights.reorder_margin
    return sum(relevance >= floor for relevance in relevances)


def contenders(
    relevances: Sequence[float], ranking: Ranking, weights: RankingWeights, limit: int
) -> int:
    """How many of the best can come onto a page of ``limit``; of others nothing need be known.

    ``relevances`` best first. No hit outside the margin passes one within it, so beyond the first
    ``limit`` only near-ties count.
    """
    return max(limit, within_margin(relevances, ranking, weights))


def places_from_below(limit: int) -> int:
    """How many of the best ``limit`` may come from below that rank by relevance."""
    return (limit + 1) // 2


def rank(
    candidates: Sequence[Candidate],
    ranking: Ranking,
    weights: RankingWeights,
    limit: int,
    seed: int = 0,
    reserved: Collection[str] = (),
) -> list[Ranked]:
    """The best ``limit`` candidates, best first; equal scores by relevance, then by id.

    At most half of them (rounded up) come from below relevance rank ``limit``. ``seed`` is that of
    EXPLORE: the same one gives the same sample for the same candidates. Of several places one at
    least is for the best of ``reserved``, ids, whatever its score.
    """
    by_relevance = sorted(candidates, key=lambda c: (-c.relevance, c.id))
    if not by_relevance:
        return []
    near = {candidate.id for candidate in by_relevance[:limit]}
    parts = _parts(by_relevance, ranking, weights, seed)
    scored = [
        (-_score(candidate, its_parts), place)
        for place, (candidate, its_parts) in enumerate(zip(by_relevance, parts, strict=True))
    ]
    scored.sort()  # the place tells equal scores by relevance, then by id
    chosen: list[tuple[float, int]] = []
    left = places_from_below(limit)
    for one in scored:
        if by_relevance[one[1]].id not in near:
            if not left:
                continue
            left -= 1
        chosen.append(one)
        if len(chosen) == limit:
            break
    held = [one for one in scored if by_relevance[one[1]].id in reserved]
    if limit > 1 and held and not set(held) & set(chosen):
        chosen = sorted([*chosen[:-1], held[0]])
    return [
        Ranked(by_relevance[place], -negated, tuple(ScorePart(*part) for part in parts[place]))
        for negated, place in chosen
    ]


_Part: TypeAlias = tuple[str, float, float]
"""Name, value and weight of what comes on top of a relevance."""


def before_importance(
    by_relevance: Sequence[Candidate], ranking: Ranking, weights: RankingWeights, seed: int
) -> list[float]:
    """The scores of candidates, best relevance first, without what their importance adds."""
    plain = replace(weights, importance=0.0)
    parts = _parts(by_relevance, ranking, plain, seed)
    return [_score(one, its_parts) for one, its_parts in zip(by_relevance, parts, strict=True)]


def _score(candidate: Candidate, parts: Sequence[_Part]) -> float:
    score = candidate.relevance
    for _, value, weight in parts:
        score += value * weight
    return score


def _parts(
    by_relevance: Sequence[Candidate], ranking: Ranking, weights: RankingWeights, seed: int
) -> list[tuple[_Part, ...]]:
    """The parts added to each relevance."""
    near = within_margin([one.relevance for one in by_relevance], ranking, weights)
    if not near:
        return [()] * len(by_relevance)
    untried = _untried(by_relevance[:near], weights)

    def learned(candidate: Candidate) -> tuple[_Part, ...]:
        if not weights.learned:
            return ()
        value = _learned(candidate, untried, ranking, weights.neutral, seed)
        return ((_PART_NAMES[ranking], value, weights.learned),)

    nothing = learned(Candidate("", 0.0))  # most near-ties have no outcomes
    parts = []
    for candidate in by_relevance[:near]:
        its_parts = learned(candidate) if candidate.tried else nothing
        if candidate.importance is not None and weights.importance:
            value = from_importance(candidate.importance)
            its_parts = (*its_parts, ("importance", value, weights.importance))
        parts.append(its_parts)
    outside: _Part = ("outside_reorder_margin", 1.0, -weights.most(ranking))
    return parts + [(outside,)] * (len(by_relevance) - near)


def from_importance(importance: float) -> float:
    """What an importance in [0, 1] adds to relevance, as a share of its weight: -1 to 1."""
    return 2.0 * (importance - 0.5)


_PART_NAMES = {
    Ranking.BALANCED: "learned",
    Ranking.RELIABLE: "reliability",
    Ranking.EXPLORE: "explored",
}


def _untried(near_ties: Sequence[Candidate], weights: RankingWeights) -> float:
    """The log-odds of the chance of a near-tie never tried, by what was tried on the query."""
    best, neutral = near_ties[0].relevance, _log_odds(weights.neutral)
    worked = expected = weights.expected_tried * weights.neutral
    for one in near_ties:
        if one.trials and weights.learned:
            sure = one.trials / (one.trials + 1.0)
            behind = (best - one.relevance) * SURE / weights.learned
            worked += sure * one.successes / one.trials
            expected += sure * _chance(neutral - behind)
    return neutral + math.log(worked / expected)


def _learned(
    candidate: Candidate, untried: float, ranking: Ranking, neutral: float, seed: int
) -> float:
    """The learned adjustment of a near-tie, in [-1, 1]; 0 without outcomes."""
    others = (candidate.other_successes + OTHER_PRIOR_TRIALS * neutral) / (
        candidate.other_trials + OTHER_PRIOR_TRIALS
    )
    before = _chance(untried + _log_odds(others) - _log_odds(neutral))
    successes = candidate.successes + PRIOR_TRIALS * before
    trials = candidate.trials + PRIOR_TRIALS
    chance = successes / trials
    if ranking is Ranking.RELIABLE:
        bound = wilson_lower_bound(successes, trials, PROVEN_Z)
        chance = statistics.median((chance, _chance(untried), bound))
    log_odds = _log_odds(chance)
    if ranking is Ranking.EXPLORE and candidate.trials:
        # Its own for each candidate and seed, whatever others there are.
        chooser = random.Random(f"{seed}:{candidate.id}")  # noqa: S311 - no secret
        sample = _log_odds(chooser.betavariate(successes, trials - successes))
        log_odds += EXPLORED * candidate.trials / trials * (sample - log_odds)
    return min(1.0, max(-1.0, (log_odds - untried) / SURE))


def _log_odds(chance: float) -> float:
    chance = min(1.0 - 1e-9, max(1e-9, chance))  # a sample may be 0 or 1
    return math.log(chance / (1.0 - chance))


def _chance(log_odds: float) -> float:
    return 1.0 / (1.0 + math.exp(min(700.0, -log_odds)))
