"""Fuses two orders into one: meaning (cosine of vectors) and words (BM25). Pure functions.

Both are put on the scale of the cosine, so that a score reads as a similarity: the best lexical hit
gets the best cosine of the pool, one that shares no word the lowest, the others between them in
proportion to their BM25 score. The relevance is the weighted mean of both.

How much the words weigh depends on the best lexical hit. In prose both weigh about the same. If
the hit is nearly the same text (Dice's coefficient of both sets of terms), the words decide: among
tasks of the same form, "cheapest ... on this site", the form matters, while vectors focus on the
things named. If it is bare code, meaning leads, since code says in other words what a query says in
prose. And a single content word in common, in a query of several, is coincidence. Neither of the
last two applies if the hit has all content words of the query: then they were written to find
exactly that hit.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from lot_grpc.domain.ranking import ScorePart


@dataclass(frozen=True, slots=True)
class Overlap:
    """What a query and a text have in common.

    ``likeness``: Dice's coefficient of both sets of terms, in [0, 1]. ``telling``: how many of the
    terms that both have name something, as function words do not. ``complete``: whether the text
    has all telling terms of the query. In a query of function words alone those are telling.
    """

    likeness: float = 0.0
    telling: int = 0
    complete: bool = False


NO_OVERLAP: Final = Overlap()


@dataclass(frozen=True, slots=True)
class FusionWeights:
    """How much meaning weighs, by what the query and the best lexical hit have in common.

    ``prose``, or ``code`` if that hit is bare code; ``least`` from a likeness of ``like`` on, where
    meaning only orders what the words leave equal. The first two were fitted, with each set left
    out once (docs/retrieval.md); wrong texts rarely reach the third.
    """

    prose: float = 0.45
    code: float = 0.95
    like: float = 0.4
    least: float = 0.05

    def meaning(self, shared: Overlap, *, code: bool = False) -> float:
        """The weight of the cosine in [0, 1]; that of the words is the rest.

        ``code``: the hit is code that nothing describes.
        """
        if not shared.complete:
            if code:
                return self.code
            if shared.telling < _EVIDENCE:
                return 1.0
        return self.least if shared.likeness >= self.like else self.prose

    def words_decide(self, shared: Overlap, *, code: bool = False) -> bool:
        """Whether the hit is nearly the same text. Then function words are part of its form."""
        return self.meaning(shared, code=code) <= self.least


_EVIDENCE = 2
"""Telling terms in common. One is coincidence."""


SCALED_BY = 50
"""The best hits of the dense leg, whose cosines are the scale: as many however long the page is."""

LEAST_SPAN = 0.05
"""The best lexical hit is at least this much above one without a common word, however little the
cosines of the pool differ."""


@dataclass(slots=True)
class Relevance:
    """How well a record answers a query.

    ``value`` is the weighted mean of the others: ``similarity`` is the cosine; ``words`` (BM25) and
    ``reranked`` (the cross-encoder) are on its scale; ``weight`` is that of the similarity against
    the words, ``rerank_weight`` that of the cross-encoder against both; ``lifted`` was added
    because the resource declares itself relevant to such a query.
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
        """The parts that add up to the value, without those of weight 0."""
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


def boost(found: Sequence[Relevance], ids: Collection[str], margin: float) -> list[Relevance]:
    """The same, with those of ``ids`` brought up to ``margin`` below the best of the others.

    So they count as near-ties, and what leads by more than the margin stays first.
    """
    others = [one.value for one in found if one.id not in ids]
    if not ids or not others:
        return list(found)
    floor = max(others) - margin
    for one in found:
        if one.id in ids and one.value < floor:
            one.lifted = floor - one.value
            one.value = floor
    return sorted(found, key=lambda one: (-one.value, one.id))
