"""The server about itself: state, readiness, counts and model."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from lot_grpc.domain.errors import CompactOfflineOnlyError, LotError
from lot_grpc.domain.ids import new_id
from lot_grpc.domain.query import EmbeddingUse
from lot_grpc.domain.search_text import SearchText
from lot_grpc.lexical.bm25 import TOKENIZER
from lot_grpc.ports import Embedder, Embedding, EmbeddingContract, StoreInfo
from lot_grpc.services.runtime import Runtime

_PROBE = "is the model there"


@dataclass(frozen=True, slots=True)
class ReadyCheck:
    """One check; ``detail`` of a failed one says what to do."""

    name: str
    ok: bool
    detail: str


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A text as the model reads it. ``cosines`` are with all texts of the call, in order.

    ``tokens`` None: the model does not tell.
    """

    embedding: Embedding
    cosines: list[float]
    tokens: int | None


class Admin:
    """The operator's calls."""

    def __init__(
        self, runtime: Runtime, checks: Sequence[Callable[[], Awaitable[ReadyCheck]]] = ()
    ) -> None:
        """``checks`` are additional checks. They may raise errors of the store."""
        self._checks = checks
        self._store = runtime.store
        self._registry = runtime.registry
        self._embedder = runtime.model

    @property
    def contract(self) -> EmbeddingContract:
        """What vectors are made with, and the terms that this version writes."""
        return replace(self._embedder.contract, tokenizer=TOKENIZER)

    @property
    def max_tokens(self) -> int:
        """Tokens that the model reads at once."""
        return self._embedder.max_tokens

    async def store_info(self) -> StoreInfo:
        """The state of the store."""
        return await self._store.info()

    def counts(self, info: StoreInfo) -> dict[str, int]:
        """How many records of each kind the store has, expired ones included."""
        return {
            kind: info.points.get(resource.collection.name, 0)
            for kind, resource in self._registry.resources.items()
        }

    async def ready_checks(self) -> list[ReadyCheck]:
        """Whether a write and a recall would succeed now."""
        checks = [await check_model(self._embedder), await self._writes()]
        with suppress(LotError):  # the check of the store reports it
            checks += [await check() for check in self._checks]
        return checks

    async def embed(self, items: Sequence[tuple[str, EmbeddingUse]]) -> list[Diagnosis]:
        """Each text as the model reads it for its use."""
        stored = [_stored(text, use) for text, use in items if use is not EmbeddingUse.QUERY]
        documents = await self._embedder.embed_documents(stored)
        queries = [text for text, use in items if use is EmbeddingUse.QUERY]
        searched = await asyncio.gather(*map(self._embedder.embed_query, queries))
        made = {True: iter(searched), False: iter(documents)}
        embeddings = [next(made[use is EmbeddingUse.QUERY]) for _, use in items]
        vectors = np.asarray([one.vector for one in embeddings])
        cosines = np.clip(vectors @ vectors.T, -1.0, 1.0).tolist()
        prefix = self.contract.query_prefix
        counts = await self._embedder.count_tokens(
            [
                prefix + text if use is EmbeddingUse.QUERY else _stored(text, use)
                for text, use in items
            ]
        )
        return [
            Diagnosis(embedding, cosines[n], counts[n] if counts is not None else None)
            for n, embedding in enumerate(embeddings)
        ]

    async def compact(self) -> tuple[bool, str]:
        """Whether anything changed, and a sentence. Raises CompactOfflineOnlyError."""
        info = await self._store.info()
        if self._store.exclusive:
            raise CompactOfflineOnlyError(info.backend)
        return await self._store.compact(), "a Qdrant server optimizes its collections by itself"

    async def _writes(self) -> ReadyCheck:
        try:
            await self._store.check()
            info = await self._store.info()
        except LotError as error:
            return ReadyCheck("store", ok=False, detail=error.message)
        return ReadyCheck("store", ok=True, detail=f"{info.backend} at {info.location}")


def _stored(text: str, use: EmbeddingUse) -> str:
    return SearchText("", text).spoken_code if use is EmbeddingUse.CODE else text


async def check_model(embedder: Embedder) -> ReadyCheck:
    """Whether the model embeds a text now."""
    try:
        # Another text each time: one from the cache would say nothing of a model that is away.
        embedding = await embedder.embed_query(f"{_PROBE} {new_id('c')}")
    except LotError as error:
        return ReadyCheck("model", ok=False, detail=error.message)
    contract = embedder.contract
    ok = len(embedding.vector) == contract.dimensions
    return ReadyCheck("model", ok, f"{contract.model}, {len(embedding.vector)} dimensions")
