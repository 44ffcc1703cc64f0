"""The passage of a long memory that answers a query best; looked up only for hits on the page."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lot_grpc.domain.memory import Memory
from lot_grpc.domain.passages import Span, is_short, passages_of
from lot_grpc.domain.search_text import joined
from lot_grpc.ports import MultiVector, Record, VectorStore
from lot_grpc.services.records.collections import MEMORIES, PASSAGE_VECTORS
from lot_grpc.services.records.memories import memory_from_record, memory_point
from lot_grpc.services.time_slice import TimeSlice

_LONG = 16_384
"""Characters from which on a text is split in a thread: a megabyte takes 0.1 s."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a content, and its position in Unicode characters."""

    text: str
    span: Span


class PassageMatcher:
    """Finds passages by their stored vectors."""

    def __init__(self, store: VectorStore) -> None:
        self._store = store

    async def of(self, memories: Sequence[Memory], vector: Sequence[float]) -> list[Passage | None]:
        """The passage nearest to the query's vector, for each memory with several."""
        time_slice = TimeSlice()
        found: list[Passage | None] = []
        for memory in memories:
            if is_short(memory.content.content):
                found.append(None)
                continue
            found.append(await self._of(memory, vector))
            await time_slice.give_way()
        return found

    async def excerpts(self, vector: Sequence[float], records: Sequence[Record]) -> list[str]:
        """The title and the passage nearest to the query, for each that has several; else ""."""
        memories = [memory_from_record(record) for record in records]
        return [
            joined(memory.content.title, passage.text) if passage else ""
            for memory, passage in zip(memories, await self.of(memories, vector), strict=True)
        ]

    async def _of(self, memory: Memory, vector: Sequence[float]) -> Passage | None:
        point = memory_point(memory.namespace, memory.memory_id)
        there = await self._store.get(MEMORIES, memory.namespace, [point], vectors=True)
        record = there.get(point)
        if record is None or record.payload["revision"] != memory.revision:
            return None  # it was edited a moment ago: these are the vectors of another text
        several = record.vectors.get(PASSAGE_VECTORS)
        if not isinstance(several, MultiVector):
            return None
        text = memory.content.content
        if len(text) > _LONG:
            spans = (await asyncio.to_thread(passages_of, text)).spans
        else:
            spans = passages_of(text).spans
        if len(spans) < 2 or len(spans) != len(several.vectors):
            return None
        span = spans[_nearest(several, vector)]
        return Passage(text[span.start : span.end], span)


def _nearest(several: MultiVector, vector: Sequence[float]) -> int:
    return int(np.argmax(np.asarray(several.vectors, np.float32) @ np.asarray(vector, np.float32)))
