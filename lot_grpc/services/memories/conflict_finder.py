"""Which stored memories a saved one contradicts.

The nearest by meaning are compared by their words (``lexical.conflicts``). It is a remark on a save
that has happened: looked up once everything is stored, so of two saved at the same time, or in one
batch, at least one meets the other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from lot_grpc.domain.memory import Memory, search_text
from lot_grpc.domain.passages import is_short
from lot_grpc.lexical.conflicts import contradiction
from lot_grpc.ports import Not, SearchQuery, Vector
from lot_grpc.services.memories.drafts import Conflict
from lot_grpc.services.records.collections import MEMORIES, TEXT_VECTOR
from lot_grpc.services.records.memories import memory_from_record, memory_point, over_at
from lot_grpc.services.records.origin import RECALLABLE
from lot_grpc.services.runtime import Runtime
from lot_grpc.services.time_slice import TimeSlice

_NEAREST: Final = 5
_LEAST_SIMILARITY: Final = 0.5
"""Memories that each is compared with. With the default model what a change is of is among the
three nearest of 250 short facts, at .70 or more (100 pairs)."""

_AT_ONCE: Final = 16
"""Searches of one call, which holds the embedded store."""


class ConflictFinder:
    """Finds contradictions among memories that say one thing: of one passage, and no code."""

    def __init__(self, runtime: Runtime) -> None:
        self._store = runtime.store
        self._time = runtime.time

    async def of(
        self, namespace: str, saved: Sequence[Memory], known: Mapping[str, Vector]
    ) -> list[tuple[Conflict, ...]]:
        """For each memory just stored, those that contradict it, the nearest first.

        ``known``: vectors of their texts, by id; others are read.
        """
        points = {
            memory_point(namespace, one.memory_id): one for one in saved if _says_one_thing(one)
        }
        found: dict[str, tuple[Conflict, ...]] = {}
        time_slice = TimeSlice()
        for start in range(0, len(points), _AT_ONCE):
            some = list(points)[start : start + _AT_ONCE]
            queries = await self._queries(namespace, {one: points[one] for one in some}, known)
            result = await self._store.search(MEMORIES, namespace, list(queries.values()))
            for point, hits in zip(queries, result.hits, strict=True):
                near = [memory_from_record(result.records[one]) for one in hits if one != point]
                found[points[point].memory_id] = _conflicts(points[point], near)
                await time_slice.give_way()
        return [found.get(one.memory_id, ()) for one in saved]

    async def _queries(
        self, namespace: str, points: Mapping[str, Memory], known: Mapping[str, Vector]
    ) -> dict[str, SearchQuery]:
        vectors = {point: known.get(memory.memory_id) for point, memory in points.items()}
        unknown = [point for point, vector in vectors.items() if vector is None]
        if unknown:  # a repeat of a request that stored them
            stored = await self._store.get(MEMORIES, namespace, unknown, vectors=True)
            vectors |= {point: one.vectors.get(TEXT_VECTOR) for point, one in stored.items()}
        return {one: self._query(vector) for one, vector in vectors.items() if vector is not None}

    def _query(self, vector: Vector) -> SearchQuery:
        # One more, since it finds itself.
        most = _NEAREST + 1
        where = [RECALLABLE, *(Not(one) for one in over_at(self._time.now()))]
        return SearchQuery(TEXT_VECTOR, vector, most, where, _LEAST_SIMILARITY, records=most)


def _conflicts(memory: Memory, near: Sequence[Memory]) -> tuple[Conflict, ...]:
    text = search_text(memory.content).text
    return tuple(
        Conflict(one.memory_id, found)
        for one in near
        if _says_one_thing(one) and _true_together(memory, one)
        if (found := contradiction(text, search_text(one.content).text))
    )


def _says_one_thing(memory: Memory) -> bool:
    return is_short(memory.content.content) and not search_text(memory.content).code


def _true_together(one: Memory, other: Memory) -> bool:
    """Whether they claim to be true of one thing at one time; labels may tell things apart."""
    if other.memory_id == one.content.supersedes or one.memory_id == other.content.supersedes:
        return False
    ours, theirs = one.content.labels, other.content.labels
    if any(theirs.get(key, value) != value for key, value in ours.items()):
        return False
    return one.begin < (other.end or math.inf) and other.begin < (one.end or math.inf)
