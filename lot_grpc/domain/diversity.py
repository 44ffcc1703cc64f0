"""Diversity: a page without near-duplicates, by maximal marginal relevance.

Carbonell and Goldstein, "The Use of MMR, Diversity-Based Reranking" (SIGIR 1998). Each place goes
to the candidate with the largest ``relevance_weight`` times its relevance less the rest times its
likeness to the nearest one that is already chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import mul

RELEVANCE_WEIGHT = 0.7


def diverse(
    relevances: Sequence[float],
    vectors: Sequence[Sequence[float]],
    limit: int,
    relevance_weight: float = RELEVANCE_WEIGHT,
) -> list[int]:
    """Which candidates to show, as indices in the order to show them; equal ones as they came.

    Args:
        relevances: One for each candidate, on the scale of a cosine.
        vectors: Unit vectors of the candidates, one each.
        limit: Places, at least 0.
        relevance_weight: In [0, 1]. 1 is the order of relevance, 0 minds likeness alone.
    """
    left = list(range(len(relevances)))
    nearest = [0.0] * len(relevances)
    """Likeness to the nearest chosen one; a negative cosine counts as 0."""
    chosen: list[int] = []
    while left and len(chosen) < limit:
        best = max(
            left,
            key=lambda one: (
                relevance_weight * relevances[one] - (1.0 - relevance_weight) * nearest[one]
            ),
        )
        left.remove(best)
        chosen.append(best)
        for one in left:
            nearest[one] = max(nearest[one], _dot(vectors[one], vectors[best]))
    return chosen


def _dot(left: Sequence[float], right: Sequence[float]) -> float:
    return float(sum(map(mul, left, right)))
