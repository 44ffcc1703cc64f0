"""Turns texts into the vectors by which records are found."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from lot_grpc.domain.passages import MOST_PASSAGES, is_short, passages_of
from lot_grpc.domain.search_text import SearchText
from lot_grpc.lexical.bm25 import document_vector
from lot_grpc.ports import Embedder, Embedding, MultiVector, Record, SparseVector, Vector
from lot_grpc.services.records.collections import (
    CODE_VECTOR,
    PASSAGE_VECTORS,
    SOLVED_VECTOR,
    SPARSE_VECTOR,
    TEXT_VECTOR,
)
from lot_grpc.services.time_slice import ThreadTimeSlice

_LONG = 16_384
"""Characters from which on a text is prepared in a thread: a quarter of a million take 0.2 s."""

AT_ONCE = 64
"""Passages that are embedded at once: about 2,500 words, which take two cores 0.25 s."""

_EMBEDDED = 512
"""Texts embedded by one call: their vectors take 12 KB each until they are packed."""


@dataclass(frozen=True, slots=True)
class Indexed:
    """Vectors by name. The flags: the model did not read all of the text, the code, ``solved``.

    ``pending``: only the first passage is embedded so far; its vector is that of the text.
    """

    vectors: dict[str, Vector]
    text_truncated: bool = False
    code_truncated: bool = False
    solved_truncated: bool = False
    pending: bool = False


class Indexer:
    """Makes them: ``text`` always, ``code`` where there is code, ``bm25`` over both.

    ``solved`` is that of an error with its fix, or of a summary. What is long has ``passages``
    instead, one vector each, and for ``text`` their mean, in which the n-th counts one n-th: the
    beginning mostly says what a text is about.
    """

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    async def vectors(self, texts: Sequence[SearchText]) -> list[Indexed]:
        """The vectors of each, in order; as few calls of the embedder as may be."""
        return await self._vectors(texts, MOST_PASSAGES)

    async def first_vectors(self, texts: Sequence[SearchText]) -> list[Indexed]:
        """The same, but of a text of more than ``AT_ONCE`` passages only the first is embedded."""
        return await self._vectors(texts, AT_ONCE)

    async def _vectors(self, texts: Sequence[SearchText], most: int) -> list[Indexed]:
        prepared = [await _prepared(one, most) for one in texts]
        embeddings = iter(await self._embed([text for one in prepared for text in one.embedded]))
        return [_indexed(one, embeddings) for one in prepared]

    async def vectors_of(self, text: SearchText) -> Indexed:
        """The vectors of one text."""
        return (await self.vectors([text]))[0]

    async def passage_vectors(
        self, text: SearchText, is_current: Callable[[], bool]
    ) -> dict[str, Vector] | None:
        """The vectors that a ``pending`` text lacks; None if ``is_current`` becomes false."""
        spans = (await asyncio.to_thread(passages_of, text.long)).spans
        packed: list[_Packed] = []
        for start in range(0, len(spans), AT_ONCE):
            if not is_current():
                return None
            passages = [text.passage(*span) for span in spans[start : start + AT_ONCE]]
            packed += map(_packed, await self._embedder.embed_documents(passages))
        return _passage_vectors([one.vector for one in packed])

    async def vectors_after_edit(self, record: Record, old: SearchText, new: SearchText) -> Indexed:
        """The vectors of an edited record: those that it was read with, if its text is the same."""
        return Indexed(dict(record.vectors)) if new == old else await self.vectors_of(new)

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

    Its passages are embedded if it has several (``cut``: there is more text after them), else the
    text, and its code and ``solved`` if it has them. ``pending``: only its first passage is.
    """

    embedded: tuple[str, ...]
    terms: SparseVector
    several: bool = False
    cut: bool = False
    coded: bool = False
    solved: bool = False
    pending: bool = False


def _indexed(one: _Prepared, embeddings: Iterator[_Packed]) -> Indexed:
    first, *others = [next(embeddings) for _ in one.embedded]
    if one.several:
        vectors = _passage_vectors([first.vector, *(other.vector for other in others)])
        return Indexed({**vectors, SPARSE_VECTOR: one.terms}, one.cut)
    vectors = {TEXT_VECTOR: first.vector, SPARSE_VECTOR: one.terms}
    if one.pending:
        return Indexed(vectors, one.cut, pending=True)
    code = others.pop(0) if one.coded else None
    if code is not None:
        vectors[CODE_VECTOR] = code.vector
    solved = others.pop(0) if one.solved else None
    if solved is not None:
        vectors[SOLVED_VECTOR] = solved.vector
    return Indexed(
        vectors,
        first.truncated,
        code is not None and code.truncated,
        solved is not None and solved.truncated,
    )


def _passage_vectors(passages: Sequence[Sequence[float]]) -> dict[str, Vector]:
    return {TEXT_VECTOR: _mean(passages), PASSAGE_VECTORS: MultiVector(passages)}


def _mean(vectors: Sequence[Sequence[float]]) -> list[float]:
    """The weighted mean of vectors, as a unit vector; the first one if they cancel out."""
    weights = 1.0 / np.arange(1, len(vectors) + 1)
    total = weights @ np.asarray(vectors, np.float64)
    length = float(np.linalg.norm(total))
    return [float(value) for value in total / length] if length else list(vectors[0])


async def _prepared(one: SearchText, most: int) -> _Prepared:
    """Without holding the event loop: in a thread when long, else giving way after each."""
    if len(one.text) + len(one.code) + len(one.more) + len(one.solved) > _LONG:
        return await asyncio.to_thread(_prepare, one, most, ThreadTimeSlice().pause)
    prepared = _prepare(one, most)
    await asyncio.sleep(0)
    return prepared


def _prepare(one: SearchText, most: int, pause: Callable[[], object] = lambda: None) -> _Prepared:
    terms = document_vector(one.whole, pause)
    spans, cut = passages_of(one.long) if not is_short(one.long) else ((), False)
    if len(spans) > most:
        return _Prepared((one.passage(*spans[0]),), terms, cut=cut, pending=True)
    if len(spans) > 1:
        embedded = tuple(one.passage(*span) for span in spans)
        return _Prepared(embedded, terms, several=True, cut=cut)
    embedded = (one.meaning, *([one.spoken_code] if one.code else ()))
    if one.solved:
        embedded += (one.solved,)
    return _Prepared(embedded, terms, coded=bool(one.code), solved=bool(one.solved))
