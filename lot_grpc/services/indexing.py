"""Texts to the vectors that things are found by."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lot_grpc.domain.passages import is_short, passages_of
from lot_grpc.domain.search_text import SearchText
from lot_grpc.lexical.bm25 import document_vector
from lot_grpc.ports import Embedder, Embedding, MultiVector, SparseVector, Vector
from lot_grpc.services.records.collections import (
    CODE_VECTOR,
    PASSAGE_VECTORS,
    SPARSE_VECTOR,
    TEXT_VECTOR,
)

_LONG = 16_384
"""Characters from which on a text is prepared in a thread: a quarter of a million take 0.2 s."""

_EMBEDDED = 512
"""Texts embedded by one call: their vectors take 12 KB each until they are packed."""


@dataclass(frozen=True, slots=True)
class Indexed:
    """Vectors by name. The flags: the model did not read all of the text, of the code."""

    vectors: dict[str, Vector]
    text_truncated: bool = False
    code_truncated: bool = False


class Indexing:
    """Makes them: ``text`` always, ``code`` where there is code, ``bm25`` over both.

    What is long has ``passages`` besides, one vector each; then the text counts as read as far as
    they go.
    """

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    async def vectors(self, texts: Sequence[SearchText]) -> list[Indexed]:
        """The vectors of each, in order; as few calls of the embedder as may be."""
        prepared = [await _prepared(one) for one in texts]
        embeddings = iter(await self._embed([text for one in prepared for text in one.embedded]))
        return [_indexed(one, embeddings) for one in prepared]

    async def vectors_of(self, text: SearchText) -> Indexed:
        """The vectors of one."""
        return (await self.vectors([text]))[0]

    async def _embed(self, texts: Sequence[str]) -> list[_Packed]:
        packed: list[_Packed] = []
        for start in range(0, len(texts), _EMBEDDED):
            embeddings = await self._embedder.embed_documents(texts[start : start + _EMBEDDED])
            if len(texts) <= _EMBEDDED:
                return [_Packed(one.vector, one.truncated) for one in embeddings]
            packed += map(_packed, embeddings)
        return packed


@dataclass(frozen=True, slots=True)
class _Packed:
    """An embedding that may be kept in little room."""

    vector: Sequence[float]
    truncated: bool


def _packed(embedding: Embedding) -> _Packed:
    return _Packed(array("f", embedding.vector), embedding.truncated)


@dataclass(frozen=True, slots=True)
class _Prepared:
    """What is embedded of a text, and its terms.

    Embedded are the text, its code if it has some (``coded``), and its passages if it has several;
    ``cut``: some of it lies behind them.
    """

    embedded: tuple[str, ...]
    coded: bool
    cut: bool
    terms: SparseVector

    @property
    def passages(self) -> int:
        """How many passages are embedded."""
        return len(self.embedded) - 1 - self.coded


def _indexed(one: _Prepared, embeddings: Iterator[_Packed]) -> Indexed:
    text = next(embeddings)
    vectors: dict[str, Vector] = {TEXT_VECTOR: text.vector}
    code = next(embeddings) if one.coded else None
    if code is not None:
        vectors[CODE_VECTOR] = code.vector
    if one.passages:
        several = [next(embeddings).vector for _ in range(one.passages)]
        vectors[PASSAGE_VECTORS] = MultiVector(several)
        vectors[SPARSE_VECTOR] = one.terms
        return Indexed(vectors, one.cut)
    vectors[SPARSE_VECTOR] = one.terms
    return Indexed(vectors, text.truncated, code is not None and code.truncated)


async def _prepared(one: SearchText) -> _Prepared:
    """Without holding the event loop: in a thread when long, else giving way after each."""
    if len(one.text) + len(one.code) + len(one.more) > _LONG:
        return await asyncio.to_thread(_prepare, one)
    prepared = _prepare(one)
    await asyncio.sleep(0)
    return prepared


def _prepare(one: SearchText) -> _Prepared:
    embedded = (one.text, one.spoken_code) if one.code else (one.text,)
    passages = () if is_short(one.long) else passages_of(one.long)
    spans, cut = passages or ((), False)
    if len(spans) > 1:
        embedded += tuple(one.passage(*span) for span in spans)
    return _Prepared(embedded, bool(one.code), cut, document_vector(one.whole))
