"""One order out of two: meaning (cosine of vectors) and words (BM25). Pure functions.

Both are put on the scale of the cosine, so that a score reads as a similarity: the best lexical hit
gets the best cosine of the pool, one that shares no word the lowest, the others between them in
proportion to their BM25 score. The relevance is the weighted mean of both.

How much the words weigh depends on the best lexical hit. If it has most of the query's words, they
weigh more. If it is nearly the same text besides (Dice's coefficient of both sets of terms), they
decide: among tasks of one form, "cheapest ... on this site", the form is what matters, and vectors
mind the things named instead. If it has few, meaning leads: a request in other words, code asked
for in prose. And a word or two in common, in a query of several, is mostly coincidence.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from lot_grpc.domain.ranking import ScorePart


@dataclass(frozen=True, slots=True)
class FusionWeights:
    """How much meaning weighs: ``most``, less ``coverage`` and ``likeness`` times their ramps.

    The rest is the weight of the words, in full where the best lexical hit shares ``enough`` terms
    with the query, or nearly all that the query has; else in proportion.
    A ramp is 0 up to its first bound, 1 from the second on, straight between. The numbers were
    fitted once, for all kinds of data together (docs/retrieval.md).
    """

    most: float = 0.62
    coverage: float = 0.2
    coverage_from: float = 0.2
    coverage_to: float = 0.6
    likeness: float = 0.5
    likeness_from: float = 0.3
    likeness_to: float = 0.5
    least: float = 0.05
    enough: int = 4
    nearly_all_from: float = 0.6
    nearly_all_to: float = 0.9

    def meaning(self, coverage: float, likeness: float, common: int) -> float:
        """The weight of the cosine in [0, 1]; that of the words is the rest."""
        less = self.coverage * _ramp(coverage, self.coverage_from, self.coverage_to)
        less += self.likeness * _ramp(likeness, self.likeness_from, self.likeness_to)
        nearly_all = _ramp(coverage, self.nearly_all_from, self.nearly_all_to)
        evidence = max(min(1.0, common / self.enough), nearly_all)
        return 1.0 - evidence * (1.0 - max(self.least, self.most - less))


def _ramp(value: float, start: float, end: float) -> float:
    return min(1.0, max(0.0, (value - start) / (end - start)))


SCALED_BY = 50
"""The best hits of the dense leg, whose cosines are the scale: as many however long the page is."""

LEAST_SPAN = 0.05
"""The best lexical hit stands at least this much above one without a common word, however little
the cosines of the pool differ."""


@dataclass(slots=True)
class Relevance:
    """How well a thing answers a query.

    ``value`` is the weighted mean of the others: ``similarity`` is the cosine; ``words`` (BM25) and
    ``reranked`` (the cross-encoder) are on its scale; ``weight`` is that of the similarity against
    the words, ``rerank_weight`` that of the cross-encoder against both; ``lifted`` was added since
    the thing says itself that it is for such a query.
    """

    id: str
    value: float
    similarity: float
    words: float
    weight: float
    reranked: float = 0.0
    rerank_weight: float = 0.0
    lifted: float = 0.0

    @property
    def parts(self) -> tuple[ScorePart, ...]:
        """What adds up to the value; a part without weight is left out."""
        kept = 1.0 - self.rerank_weight
        parts = (
            ScorePart("similarity", self.similarity, self.weight * kept),
            ScorePart("bm25", self.words, (1.0 - self.weight) * kept),
            ScorePart("rerank", self.reranked, self.rerank_weight),
            ScorePart("task_type_pattern", self.lifted, 1.0 if self.lifted else 0.0),
        )
        return tuple(part for part in parts if part.weight)


def fuse(
    similar: Mapping[str, float],
    others: Mapping[str, float],
    lexical: Mapping[str, float],
    weight: float,
) -> list[Relevance]:
    """Both legs in one list, best first, equal ones by id.

    Args:
        similar: Cosines of the dense leg's hits, of which the best ``SCALED_BY`` are the scale.
        others: Cosines of lexical hits that the dense leg did not bring.
        lexical: BM25 scores of the lexical leg's hits.
        weight: Of the cosine, in [0, 1]. Without lexical hits it is 1.
    """
    if not lexical:
        weight = 1.0
    scale = sorted((similar or others).values(), reverse=True)[:SCALED_BY] or [0.0]
    highest = scale[0]
    span = max(highest - scale[-1], LEAST_SPAN)
    per_score = span / (max(lexical.values(), default=0.0) or 1.0)
    lowest = max(0.0, highest - span)
    rated = []
    for cosines in (similar, others):
        for point, cosine in cosines.items():
            words = lowest + per_score * lexical.get(point, 0.0)
            rated.append((-(weight * cosine + (1.0 - weight) * words), point, cosine, words))
    rated.sort()
    return [
        Relevance(point, -negated, cosine, words, weight) for negated, point, cosine, words in rated
    ]


def lift(found: Sequence[Relevance], ids: Collection[str], gate: float) -> list[Relevance]:
    """The same, with those of ``ids`` brought up to ``gate`` below the best of the others.

    So they count as near-ties, and what leads by more than the gate stays first.
    """
    others = [one.value for one in found if one.id not in ids]
    if not ids or not others:
        return list(found)
    floor = max(others) - gate
    for one in found:
        if one.id in ids and one.value < floor:
            one.lifted = floor - one.value
            one.value = floor
    return sorted(found, key=lambda one: (-one.value, one.id))
