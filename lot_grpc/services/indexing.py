"""Texts to the vectors that things are found by."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from lot_grpc.domain.search_text import SearchText
from lot_grpc.lexical.bm25 import document_vector
from lot_grpc.ports import Embedder, Vector
from lot_grpc.services.records.collections import CODE_VECTOR, SPARSE_VECTOR, TEXT_VECTOR


@dataclass(frozen=True, slots=True)
class Indexed:
    """Vectors by name. The flags: the model did not read all of the text, of the code."""

    vectors: dict[str, Vector]
    text_truncated: bool = False
    code_truncated: bool = False


class Indexing:
    """Makes them: ``text`` always, ``code`` where there is code, ``bm25`` over both."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    async def vectors(self, texts: Sequence[SearchText]) -> list[Indexed]:
        """The vectors of each, in order; one call of the embedder for all."""
        wanted = [text for one in texts for text in _embedded(one)]
        embeddings = iter(await self._embedder.embed_documents(wanted))
        indexed = []
        for one in texts:
            text = next(embeddings)
            vectors: dict[str, Vector] = {TEXT_VECTOR: text.vector}
            code = next(embeddings) if one.code else None
            if code is not None:
                vectors[CODE_VECTOR] = code.vector
            vectors[SPARSE_VECTOR] = document_vector(one.whole)
            indexed.append(Indexed(vectors, text.truncated, code is not None and code.truncated))
            await asyncio.sleep(0)  # terms are made on the event loop, a long text's in 70 ms
        return indexed

    async def vectors_of(self, text: SearchText) -> Indexed:
        """The vectors of one."""
        return (await self.vectors([text]))[0]


def _embedded(one: SearchText) -> list[str]:
    return [one.text, one.spoken_code] if one.code else [one.text]
