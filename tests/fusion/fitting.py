"""Fitting the numbers of the fusion, with one set left out in turn.

A query's candidates, their cosines and their words depend on the numbers only in whether function
words count, and the order only in the weight besides. So each query is searched twice, its nDCG@10
is worked out for 21 weights each, and what any numbers give is interpolated.

Two of the numbers are those with the best nDCG@10. The likeness is none of them, since it matters
only where many tasks have one form: it is what a wrong text reaches in one query of twenty, in the
median of the sets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np

from lot_grpc.domain.fusion import NO_OVERLAP, FusionWeights, Overlap, Relevance
from lot_grpc.evaluation.dataset import EvalQuery
from lot_grpc.evaluation.metrics import ndcg

_STEPS = 20
_PROSES = (0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6)
_CODES = (0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0)
_LIKES = (0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6)
_CHANCE = 0.05
_STEP = 0.05
"""To which the likeness is rounded."""
_HARM, _GAIN = 0.01, 0.03
"""What a set counts for at most: in the worst, and in the mean."""


@dataclass(frozen=True, slots=True)
class Answered:
    """A query's nDCG@10 by weight of the meaning, and its best lexical hit.

    ``wrong``: that hit does not answer the query.
    """

    by_weight: Sequence[float]
    shared: Overlap = NO_OVERLAP
    code: bool = False
    wrong: bool = False

    def value(self, weight: float) -> float:
        """With any weight in [0, 1]."""
        below = min(int(weight * _STEPS), _STEPS - 1)
        share = weight * _STEPS - below
        return self.by_weight[below] * (1 - share) + self.by_weight[below + 1] * share


@dataclass(frozen=True)
class SearchedSet:
    """One set: its queries as answered with function words, and without."""

    name: str
    answered: Sequence[tuple[Answered, Answered]]

    def legs(self, weights: FusionWeights) -> tuple[float, float]:
        """Meaning alone and words alone."""
        return self._mean(weights, lambda _: 1.0), self._mean(weights, lambda _: 0.0)

    def hybrid(self, weights: FusionWeights) -> float:
        """The mean over the queries with these numbers."""
        return self._mean(weights, lambda it: weights.meaning(it.shared, code=it.code))

    @cached_property
    def better_leg(self) -> float:
        """The better of both, the words with the likeness that suits them best."""
        return max(max(self.legs(FusionWeights(like=like))) for like in _LIKES)

    @cached_property
    def chance(self) -> float | None:
        """The likeness that a wrong hit reaches in one query of twenty; None without such hits."""
        wrong = [form.shared.likeness for form, _ in self.answered if form.wrong]
        return float(np.quantile(wrong, 1 - _CHANCE)) if wrong else None

    def gap(self, weights: FusionWeights) -> float:
        """How far the hybrid is above its better leg."""
        return self.hybrid(weights) - self.better_leg

    def _mean(self, weights: FusionWeights, weight: Callable[[Answered], float]) -> float:
        values = []
        for form, telling in self.answered:
            decide = weights.words_decide(form.shared, code=form.code)
            it = form if decide else telling
            values.append(it.value(weight(it)))
        return float(np.mean(values))


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A set with the numbers that the others chose."""

    left_out: SearchedSet
    weights: FusionWeights


def by_weight(found: Sequence[tuple[str, Relevance]], query: EvalQuery) -> list[float]:
    """nDCG@10 of a query's candidates by the weight of the meaning, from 0 to 1."""
    counted = [(name, one) for name, one in found if name not in query.exclude]
    values = []
    for step in range(_STEPS + 1):
        weight = step / _STEPS
        ranked = sorted(
            counted, key=lambda it: -(weight * it[1].similarity + (1 - weight) * it[1].words)
        )
        values.append(ndcg([name for name, _ in ranked], query.judged))
    return values


def misleads(found: Sequence[tuple[str, Relevance]], query: EvalQuery) -> bool:
    """Whether the best lexical hit counts and does not answer the query."""
    best, _ = max(found, key=lambda it: it[1].words, default=("", None))
    return bool(best) and best not in query.exclude and query.judged.get(best, 0.0) <= 0


def fit(sets: Sequence[SearchedSet]) -> tuple[FusionWeights, list[LeftOut]]:
    """The numbers that are best for all sets, for the worst of them first; and for all but one."""
    left_out = [LeftOut(one, _best([it for it in sets if it is not one])) for one in sets]
    return _best(sets), left_out


def _best(sets: Sequence[SearchedSet]) -> FusionWeights:
    chances = [one.chance for one in sets if one.chance is not None] or [FusionWeights().like]
    like = round(round(float(np.median(chances)) / _STEP) * _STEP, 2)
    candidates = [FusionWeights(*both, like) for both in product(_PROSES, _CODES)]
    gaps = np.array([[one.gap(it) for one in sets] for it in candidates])
    worst, mean = np.minimum(gaps, _HARM).min(axis=1), np.minimum(gaps, _GAIN).mean(axis=1)
    return candidates[int(np.argmax(worst + 0.3 * mean))]
