"""The patterns of a context: similar and proven ones that differ from each other.

Of twice as many hits as have a place those are chosen that are relevant and unlike each other
(``domain.diversity``). One place at least is for a LEARNED pattern whose own regular expression
matches, if there is one and more than one place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from lot_grpc.domain.diversity import diverse
from lot_grpc.domain.match_probability import NONE_LEFT_OUT, LeftOut
from lot_grpc.domain.pattern import Pattern
from lot_grpc.ports import IdIn, MultiVector, SparseVector, VectorStore
from lot_grpc.services.recall.recall import Hit, Recall, RecallRequest
from lot_grpc.services.records.collections import PATTERNS, TEXT_VECTOR
from lot_grpc.services.records.patterns import pattern_point

_CANDIDATES: Final = 2
"""For each place."""


@dataclass(frozen=True, slots=True)
class ContextPatterns:
    """The chosen patterns, best first, and the ids of those that matched by regular expression."""

    hits: list[Hit[Pattern]]
    matched: tuple[str, ...]
    truncated: bool = False
    wordless: bool = False
    left_out: LeftOut = NONE_LEFT_OUT


class PatternChooser:
    """Chooses the patterns of a context."""

    def __init__(self, store: VectorStore, recall: Recall[Pattern]) -> None:
        self._store = store
        self._recall = recall

    async def choose(self, namespace: str, request: RecallRequest) -> ContextPatterns:
        """At most ``request.limit``; ``request.self_matched`` matched by themselves."""
        self_matched, limit = request.self_matched or frozenset(), request.limit
        answer = await self._recall.find(namespace, replace(request, limit=_CANDIDATES * limit))
        candidates = answer.hits
        matching = [hit for hit in candidates if _point(hit) in self_matched]
        if self_matched and not matching and limit > 1:
            matching = await self._best(namespace, request, self_matched)
        chosen = await self._diverse(namespace, candidates, limit)
        if limit > 1 and matching and not any(_point(hit) in self_matched for hit in chosen):
            chosen = [*chosen[: limit - 1], matching[0]]
        matched = tuple(hit.thing.pattern_id for hit in chosen if _point(hit) in self_matched)
        return ContextPatterns(chosen, matched, answer.truncated, answer.wordless, answer.left_out)

    async def _best(
        self, namespace: str, request: RecallRequest, self_matched: frozenset[str]
    ) -> list[Hit[Pattern]]:
        """The best of those that match, however unlike their texts; none is a candidate."""
        only = {**request.filters, "self_matched": [IdIn(tuple(sorted(self_matched)))]}
        answer = await self._recall.find(
            namespace,
            replace(request, filters=only, limit=1, min_similarity=0.0, min_match=None),
        )
        return answer.hits

    async def _diverse(
        self, namespace: str, candidates: Sequence[Hit[Pattern]], limit: int
    ) -> list[Hit[Pattern]]:
        """The relevant ones that are unlike each other. One deleted since is left out."""
        if len(candidates) <= limit:
            return list(candidates)
        points = [_point(hit) for hit in candidates]
        found = await self._store.scroll(  # `get` would also read the payloads
            PATTERNS,
            namespace,
            [IdIn(tuple(points))],
            limit=len(points),
            payload=(),
            vectors=True,
        )
        records = {record.id: record for record in found}
        there = [hit for hit in candidates if _point(hit) in records]
        vectors = []
        for hit in there:
            vector = records[_point(hit)].vectors[TEXT_VECTOR]
            if isinstance(vector, SparseVector | MultiVector):
                raise TypeError(f"{TEXT_VECTOR} is a dense vector")
            vectors.append(vector)
        return [there[one] for one in diverse([hit.score for hit in there], vectors, limit)]


def _point(hit: Hit[Pattern]) -> str:
    return pattern_point(hit.thing.namespace, hit.thing.pattern_id)
