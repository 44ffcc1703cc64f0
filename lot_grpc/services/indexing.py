"""Texts to the vectors that things are found by."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from lot_grpc.domain.search_text import SearchText
from lot_grpc.lexical.bm25 import document_vector
from lot_grpc.ports import Embedder, SparseVector, Vector
from lot_grpc.services.records.collections import (
    CODE_VECTOR,
    SOLVED_VECTOR,
    SPARSE_VECTOR,
    TEXT_VECTOR,
)

_LONG = 16_384
"""Characters from which on a text is prepared in a thread: a quarter of a million take 0.2 s."""


@dataclass(frozen=True, slots=True)
class Indexed:
    """Vectors by name. The flags: the model did not read all of the text, of the code."""

    vectors: dict[str, Vector]
    text_truncated: bool = False
    code_truncated: bool = False


class Indexing:
    """Makes them: ``text`` always, ``code`` where there is code, ``bm25`` over both.

    ``solved`` is that of an error with its fix.
    """

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    async def vectors(self, texts: Sequence[SearchText]) -> list[Indexed]:
        """The vectors of each, in order; one call of the embedder for all."""
        prepared = [await _prepared(one) for one in texts]
        wanted = [text for one in prepared for text in one.embedded]
        embeddings = iter(await self._embedder.embed_documents(wanted))
        indexed = []
        for one in prepared:
            text = next(embeddings)
            vectors: dict[str, Vector] = {TEXT_VECTOR: text.vector}
            code = next(embeddings) if one.coded else None
            if code is not None:
                vectors[CODE_VECTOR] = code.vector
            if one.solved:
                vectors[SOLVED_VECTOR] = next(embeddings).vector
            vectors[SPARSE_VECTOR] = one.terms
            indexed.append(Indexed(vectors, text.truncated, code is not None and code.truncated))
        return indexed

    async def vectors_of(self, text: SearchText) -> Indexed:
        """The vectors of one."""
        return (await self.vectors([text]))[0]


@dataclass(frozen=True, slots=True)
class _Prepared:
    """What is embedded of a text, and its terms: the text, code and ``solved`` if there are."""

    embedded: tuple[str, ...]
    coded: bool
    solved: bool
    terms: SparseVector


async def _prepared(one: SearchText) -> _Prepared:
    """Without holding the event loop: in a thread when long, else giving way after each."""
    if len(one.text) + len(one.code) + len(one.more) + len(one.solved) > _LONG:
        return await asyncio.to_thread(_prepare, one)
    prepared = _prepare(one)
    await asyncio.sleep(0)
    return prepared


def _prepare(one: SearchText) -> _Prepared:
    embedded: tuple[str, ...] = (one.text, one.spoken_code) if one.code else (one.text,)
    if one.solved:
        embedded += (one.solved,)
    return _Prepared(embedded, bool(one.code), bool(one.solved), document_vector(one.whole))
