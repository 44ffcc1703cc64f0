"""Fitting the numbers of the fusion, with one set left out in turn.

A query's candidates, their cosines and their words depend on the numbers only in whether function
words count, and the order only in the weight besides. So each query is searched twice, its nDCG@10
is worked out for 21 weights each, and what any numbers give is interpolated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from lot_grpc.domain.fusion import NO_OVERLAP, FusionWeights, Overlap, Relevance
from lot_grpc.evaluation.dataset import EvalQuery
from lot_grpc.evaluation.metrics import ndcg

_STEPS = 20
_LIKES = (0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6)
_HARM, _GAIN = 0.01, 0.03
"""What a set counts for at most: in the worst, and in the mean."""
_TIE = 0.001
"""Numbers that differ by less are as good. Of those the lowest likeness is taken: where the sets do
not tell, the words of a text that is much the same decide."""


@dataclass(frozen=True, slots=True)
class Answered:
    """A query's nDCG@10 by weight of the meaning, and its best lexical hit."""

    by_weight: Sequence[float]
    shared: Overlap = NO_OVERLAP
    code: bool = False

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


def tried() -> Iterator[FusionWeights]:
    """The numbers that are tried."""
    proses, codes = (0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6), (0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0)
    for prose, code, like in product(proses, codes, _LIKES):
        yield FusionWeights(prose, code, like)


def fit(sets: Sequence[SearchedSet]) -> tuple[FusionWeights, list[LeftOut]]:
    """The numbers that are best for all sets, for the worst of them first; and for all but one."""
    candidates = list(tried())
    gaps = np.array([[one.gap(it) for one in sets] for it in candidates])
    chosen = [
        LeftOut(one, _best(candidates, np.delete(gaps, number, axis=1)))
        for number, one in enumerate(sets)
    ]
    return _best(candidates, gaps), chosen


def _best(candidates: Sequence[FusionWeights], gaps: NDArray[np.float64]) -> FusionWeights:
    worst, mean = np.minimum(gaps, _HARM).min(axis=1), np.minimum(gaps, _GAIN).mean(axis=1)
    merits = worst + 0.3 * mean
    good = [number for number, merit in enumerate(merits) if merit >= merits.max() - _TIE]
    return candidates[min(good, key=lambda number: (candidates[number].like, -merits[number]))]
