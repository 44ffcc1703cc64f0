"""The pattern of nearly the same meaning, for saves with ``dedupe`` SEMANTIC."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from lot_grpc.domain.pattern import DEFAULT_MERGE_SIMILARITY, Pattern, PatternContent, search_text
from lot_grpc.lexical.contrast import may_mean_the_same
from lot_grpc.ports import Condition, Equals, Missing, Not, Record, SearchQuery, Vector, VectorStore
from lot_grpc.services.records.collections import CODE_VECTOR, PATTERNS, TEXT_VECTOR
from lot_grpc.services.records.lineage import SUPERSEDED
from lot_grpc.services.records.origin import RECALLABLE
from lot_grpc.services.records.patterns import pattern_from_record

_LOOKED_AT = 10


@dataclass(frozen=True, slots=True)
class Near:
    """A pattern and its similarity: the smaller of the cosines of text and code."""

    pattern: Pattern
    similarity: float


class Nearest:
    """Finds the stored pattern nearest to a content."""

    def __init__(self, store: VectorStore, similarity: float = DEFAULT_MERGE_SIMILARITY) -> None:
        self._store = store
        self._similarity = similarity

    async def find(
        self, namespace: str, content: PatternContent, vectors: Mapping[str, Vector]
    ) -> Near | None:
        """The nearest pattern that the content may be merged with; ties are broken by id."""
        query = SearchQuery(
            TEXT_VECTOR,
            vectors[TEXT_VECTOR],
            _LOOKED_AT,
            _same_sort(content),
            min_score=self._similarity,
        )
        [scores] = (await self._store.search(PATTERNS, namespace, [query])).hits
        if not scores:
            return None
        records = await self._store.get(PATTERNS, namespace, list(scores), vectors=True)
        near = [
            Near(pattern_from_record(record), min(1.0, similarity))
            for point, record in records.items()
            if (similarity := min(scores[point], _code_similarity(record, vectors)))
            >= self._similarity
            and _may_be_merged(pattern_from_record(record).content, content)
        ]
        return min(near, key=lambda n: (-n.similarity, n.pattern.pattern_id), default=None)


def _same_sort(content: PatternContent) -> list[Condition]:
    language = Equals("language", content.language) if content.language else Missing("language")
    return [
        Equals("kind", content.kind.value),
        Equals("pattern_type", content.pattern_type.value),
        language,
        Not(Equals(SUPERSEDED, True)),
        RECALLABLE,  # else what is held back would swallow what is trusted
    ]


def _code_similarity(record: Record, vectors: Mapping[str, Vector]) -> float:
    """1 if neither has code, 0 if only one has."""
    stored, given = record.vectors.get(CODE_VECTOR), vectors.get(CODE_VECTOR)
    if stored is None or given is None:
        return 1.0 if stored is given else 0.0
    return float(np.dot(np.asarray(stored, np.float32), np.asarray(given, np.float32)))


def _may_be_merged(stored: PatternContent, given: PatternContent) -> bool:
    one, other = search_text(stored), search_text(given)
    return may_mean_the_same(one.text, other.text) and may_mean_the_same(one.code, other.code)
