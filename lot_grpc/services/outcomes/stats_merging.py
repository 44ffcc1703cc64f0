"""Merges the context stats with the nearest queries when a resource has too many.

Stats are deleted only with their resource. So the point of a query always leads to the one record
that counts for it, and whoever repeats an outcome in another process finds it counted there.

A merge (a) freezes the younger stats: they name the older ones and never change again; (b) adds
their sums and pending outcomes to the stats they lead to, by a conditional write that lists them in
``taken_in`` there; (c) empties them to a reference. Whoever follows frozen stats completes (b) and
(c) first. References lead to older stats only, so there are no cycles.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from lot_grpc.domain.context_stats import Fading
from lot_grpc.kernel.compare_and_set import (
    ConflictError,
    as_read,
    compare_and_set,
    replace_as_read,
    update_as_read,
)
from lot_grpc.kernel.intents import Journal, Mark, recover
from lot_grpc.ports import Condition, Equals, IdIn, Missing, Record, SearchQuery, VectorStore
from lot_grpc.services.records.collections import CONTEXT_STATS, QUERY_VECTOR, SORT_KEY
from lot_grpc.services.records.context_stats import (
    HASHED,
    MERGED_INTO,
    MERGING,
    PENDING,
    REVISION,
    TAKEN_IN,
    context_stats_from_payload,
    context_stats_payload,
    merged_stats_record,
)
from lot_grpc.services.records.resource_refs import RESOURCE, resource_of
from lot_grpc.services.time_slice import TimeSlice

_MERGED_AT_ONCE = 8
"""How many are merged at once: reading all stats of a resource costs more than merging them."""


class StatsMerger:
    """Merges context stats, and finds those that others were merged into."""

    def __init__(self, store: VectorStore, fading: Fading) -> None:
        self._store = store
        self._fading = fading
        self._merging = Journal(store, CONTEXT_STATS, Mark(MERGING, open=True, done=False))

    async def resolve_all(self, namespace: str, points: Sequence[str]) -> dict[str, Record]:
        """The stats that count for each point; points with a merge in progress are left out."""
        found = await self._store.get(CONTEXT_STATS, namespace, points)
        references = {
            point: record.payload[MERGED_INTO]
            for point, record in found.items()
            if record.payload.get(MERGING) is False
        }
        targets = (
            await self.resolve_all(namespace, list({*references.values()})) if references else {}
        )
        found = {point: one for point, one in found.items() if MERGED_INTO not in one.payload}
        return found | {
            point: targets[into] for point, into in references.items() if into in targets
        }

    async def resolve(self, namespace: str, point: str) -> Record | None:
        """The stats that count for a point, once the merges on the way there are complete.

        None if there are none yet, or their resource is being deleted. Raises ConflictError.
        """
        record = (await self._store.get(CONTEXT_STATS, namespace, [point])).get(point)
        if record is None or MERGED_INTO not in record.payload:
            return record
        into = await self.resolve(namespace, record.payload[MERGED_INTO])
        if into is None:  # its resource was deleted; this was written too late
            gone = [IdIn((point,)), *as_read(record, REVISION)]
            await self._store.delete(CONTEXT_STATS, namespace, gone)
        elif record.payload[MERGING]:
            return await self._absorb(into, record)
        return into

    async def nearest(
        self, namespace: str, resource: str, vector: Sequence[float], *, hashed: bool
    ) -> Record | None:
        """The stats of a resource, by its point, on the query that is nearest to a vector.

        ``hashed``: among those of hashed queries; else among those of which the text is known.
        """
        sort = Equals(HASHED, True) if hashed else Missing(HASHED)
        search = SearchQuery(QUERY_VECTOR, vector, 1, [*_counting(resource), sort], records=1)
        found = await self._store.search(CONTEXT_STATS, namespace, [search])
        return next(iter(found.records.values()), None)

    async def merge_surplus(self, namespace: str, resource: str, most: int) -> None:
        """Merge stats of a resource if it has more than ``most``. Raises ContentionError."""
        theirs = _counting(resource)
        if await self._store.count(CONTEXT_STATS, namespace, theirs) <= most:
            return
        records = await self._store.scroll(
            CONTEXT_STATS, namespace, theirs, limit=2 * most, vectors=True
        )
        if not records:  # their resource was deleted meanwhile
            return
        time_slice = TimeSlice()
        for older, younger in _nearest_pairs(records, len(records) - most + _MERGED_AT_ONCE):
            with suppress(ConflictError):  # it changed meanwhile
                frozen = {MERGED_INTO: older.id, MERGING: True}
                await update_as_read(self._store, CONTEXT_STATS, younger, frozen, REVISION)
                await self._finish(younger)
            await time_slice.give_way()

    async def finish_merges(self, before: int) -> int:
        """Finish merges in progress and return how many.

        Also those of live processes: finishing them twice does no harm, so ``before`` is ignored.
        """
        return await recover(self._store, CONTEXT_STATS, Equals(MERGING, True), self._finish)

    async def _finish(self, frozen: Record) -> None:
        async def attempt() -> None:
            await self.resolve(frozen.namespace, frozen.id)

        resource = resource_of(frozen.payload)
        await compare_and_set(f"context stats of {resource.kind}", resource.id, attempt)

    async def _absorb(self, into: Record, frozen: Record) -> Record:
        """Add frozen stats to those they lead to, unless done; return the new state of these.

        Raises ConflictError if either has changed.
        """
        namespace, points = into.namespace, (into.id, frozen.id)
        # After ``into`` was read: whoever added them since has changed its revision.
        found = await self._store.get(CONTEXT_STATS, namespace, points, vectors=True)
        if len(found) < len(points) or not found[frozen.id].payload.get(MERGING):
            raise ConflictError
        payload = into.payload
        if frozen.id not in payload.get(TAKEN_IN, ()):
            one = context_stats_from_payload(payload)
            other = context_stats_from_payload(frozen.payload)
            names = [*payload.get(TAKEN_IN, ()), *frozen.payload.get(TAKEN_IN, ())]
            done = await self._merging.done(namespace, names)
            changed = {
                **payload,
                **context_stats_payload(one.merge(other, self._fading)),
                REVISION: payload[REVISION] + 1,
                PENDING: [*payload[PENDING], *frozen.payload[PENDING]],
                TAKEN_IN: [*(name for name in names if name not in done), frozen.id],
            }
            first, second = (_vector_of(found[point]) for point in points)
            vector = _between(first, one.trials, second, other.trials)
            new = Record(into.id, namespace, changed, {QUERY_VECTOR: vector})
            await replace_as_read(self._store, CONTEXT_STATS, into, new, REVISION)
            into = new
        emptied = merged_stats_record(
            namespace,
            frozen.id,
            resource_of(frozen.payload),
            frozen.payload[MERGED_INTO],
            frozen.payload[SORT_KEY],
            frozen.payload[REVISION] + 1,
        )
        await self._store.replace(CONTEXT_STATS, emptied, as_read(frozen, REVISION))
        return into


def _counting(resource: str) -> list[Condition]:
    """The conditions on the stats of a resource that are not merged into others."""
    return [Equals(RESOURCE, resource), Missing(MERGED_INTO)]


def _vector_of(record: Record) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.asarray(record.vectors[QUERY_VECTOR], np.float32)


def _between(
    one: np.ndarray[Any, np.dtype[np.float32]],
    weight: float,
    other: np.ndarray[Any, np.dtype[np.float32]],
    other_weight: float,
) -> list[float]:
    """The mean direction of two vectors, weighted by their trials."""
    mean = one * max(weight, 1e-6) + other * max(other_weight, 1e-6)
    length = float(np.linalg.norm(mean))
    vector: list[float] = (mean / length if length else one).tolist()
    return vector


def _nearest_pairs(records: Sequence[Record], count: int) -> list[tuple[Record, Record]]:
    """Pairs of the nearest queries, each record in at most one pair; the older one first.

    Both are hashed, or neither is: a switch of the model deletes what hashed queries taught.
    """
    ordered = sorted(records, key=lambda stats: (stats.payload["sort_key"], stats.id))
    vectors = np.stack([_vector_of(stats) for stats in ordered])
    cosines = vectors @ vectors.T
    hashed = np.array([HASHED in stats.payload for stats in ordered])
    rows, columns = np.nonzero(np.triu(hashed[:, None] == hashed, k=1))
    pairs: list[tuple[Record, Record]] = []
    used: set[int] = set()
    for place in np.argsort(-cosines[rows, columns], kind="stable"):
        one, other = int(rows[place]), int(columns[place])
        if one in used or other in used:
            continue
        used.update((one, other))
        pairs.append((ordered[one], ordered[other]))
        if len(pairs) == count:
            break
    return pairs
