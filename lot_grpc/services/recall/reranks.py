"""Reranking: the cross-encoder reads the best candidates, limited in number and time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from lot_grpc.domain.errors import LotError, ModelUnavailableError, RerankerUnavailableError
from lot_grpc.domain.fusion import Relevance
from lot_grpc.domain.reranking import DEFAULT_CANDIDATES, DEFAULT_SECONDS, blend
from lot_grpc.domain.search_text import SearchText, joined, spoken
from lot_grpc.domain.text_form import normal_form
from lot_grpc.ports import Record, Reranker, VectorStore
from lot_grpc.services.recall.search_fields import SearchFields
from lot_grpc.telemetry.metrics import RERANK_DURATION, RERANKS
from lot_grpc.telemetry.spans import span

_CODE_CHARACTERS = 4_096
"""Characters of a candidate's code given to the cross-encoder: more than its 512 tokens hold."""


Excerpts: TypeAlias = Callable[[Sequence[Record]], Awaitable[Sequence[str]]]
"""For each record, the part of a long text to read instead of its beginning, or ""."""


@dataclass(frozen=True, slots=True)
class RerankBounds:
    """The maximum number of candidates that are read, best first, and for how long."""

    candidates: int = DEFAULT_CANDIDATES
    seconds: float = DEFAULT_SECONDS


@dataclass(frozen=True, slots=True)
class Reranked:
    """Candidates in their new order. ``records``: by id, of the candidates to rerank.

    ``unreached``: how many of those there was no time to read.
    """

    found: Sequence[Relevance]
    unreached: int = 0
    records: Mapping[str, Record] = field(default_factory=dict)


class Reranks:
    """Reranks candidates of any kind."""

    def __init__(self, store: VectorStore, reranker: Reranker, bounds: RerankBounds) -> None:
        self._store = store
        self._reranker = reranker
        self._bounds = bounds

    async def rerank(
        self,
        namespace: str,
        searched: SearchFields,
        query: str,
        found: Sequence[Relevance],
        excerpts: Excerpts | None = None,
    ) -> Reranked:
        """All candidates in their new order.

        Raises EmbeddingFailedError, RerankerUnavailableError.
        """
        best = found[: self._bounds.candidates]
        records = await self._store.get(searched.collection, namespace, [one.id for one in best])
        read = [one for one in best if one.id in records]
        texts = [_as_read(searched.text_of(records[one.id])) for one in read]
        if excerpts is not None:
            parts = await excerpts([records[one.id] for one in read])
            texts = [part or text for part, text in zip(parts, texts, strict=True)]
        try:
            query, texts = normal_form(query), [normal_form(text) for text in texts]
            with RERANK_DURATION.time(), span("rerank", {"lot.texts": len(texts)}):
                scores = await self._reranker.score(query, texts, seconds=self._bounds.seconds)
        except LotError as error:
            RERANKS.add("failed")
            if isinstance(error, ModelUnavailableError):
                raise RerankerUnavailableError from error
            raise
        behind = found[len(best) :]
        unreached = sum(score is None for score in scores)
        RERANKS.add("partial" if unreached else "complete")
        return Reranked(blend([*read, *behind], scores), unreached, records)


def _as_read(text: SearchText) -> str:
    if text.code_in_text:
        return text.text
    return joined(text.text, spoken(text.code[:_CODE_CHARACTERS]))
