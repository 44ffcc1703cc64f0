"""Stores context stats: one record a pattern and query, at most ``MAX_CONTEXT_STATS`` a pattern.

Stats count an outcome as other targets do (``kernel.apply_once``), except that any stats of the
pattern may have it. If a pattern has too many, the two with the nearest queries are merged: (a) one
is frozen: it names the other and counts nothing any more; (b) a conditional write adds its sums to
the other and names it in ``taken_in`` there; (c) the frozen one is deleted. Whoever finds frozen
stats completes the merge first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from lot_grpc.domain.context_stats import MAX_CONTEXT_STATS, ContextStats
from lot_grpc.kernel.apply_once import NewChanges, apply_new
from lot_grpc.kernel.compare_and_set import (
    ConflictError,
    as_read,
    compare_and_set,
    insert_new,
    replace_as_read,
    update_as_read,
)
from lot_grpc.kernel.intents import recover
from lot_grpc.ports import (
    AnyOf,
    Condition,
    Equals,
    IdIn,
    Missing,
    Not,
    Payload,
    Record,
    SearchQuery,
)
from lot_grpc.services.outcomes.history import History
from lot_grpc.services.outcomes.pending_outcomes import PendingOutcomes
from lot_grpc.services.outcomes.query_vectors import QueryVectors
from lot_grpc.services.records.collections import CONTEXT_STATS, QUERY_VECTOR, SORT_KEY
from lot_grpc.services.records.context_stats import (
    MERGING,
    PENDING,
    REVISION,
    TAKEN_IN,
    context_stats_from_payload,
    context_stats_payload,
    context_stats_point,
    context_stats_record,
)
from lot_grpc.services.records.outcomes import RecordedOutcome
from lot_grpc.services.runtime import Runtime
from lot_grpc.services.time_slice import TimeSlice

_MERGED_AT_ONCE = 8
"""How many are merged at once: reading all stats of a pattern costs more than merging them."""


class ContextStatsStore:
    """The context stats of all namespaces."""

    def __init__(
        self,
        runtime: Runtime,
        pending: PendingOutcomes,
        history: History,
        vectors: QueryVectors,
    ) -> None:
        self._store = runtime.store
        self._time = runtime.time
        self._pending = pending
        self._history = history
        self._vectors = vectors
        self._fading = runtime.settings.weights.fading

    async def before(self, outcomes: Iterable[RecordedOutcome]) -> dict[str, Record]:
        """The stats of the queries of outcomes that are about to be written, by point."""
        by_namespace: dict[str, set[str]] = {}
        for one in outcomes:
            if one.in_context:
                by_namespace.setdefault(one.namespace, set()).add(_point_of(one))
        found: dict[str, Record] = {}
        for namespace, points in by_namespace.items():
            found |= await self._store.get(CONTEXT_STATS, namespace, list(points))
        return found

    async def take_in_new(
        self,
        outcomes: Mapping[str, tuple[RecordedOutcome, Sequence[float] | None]],
        before: Mapping[str, Record],
    ) -> set[str]:
        """Add new outcomes, given by their names, to the stats of their queries.

        Each comes with the vector of its query, if known. ``before`` is what ``before`` returned
        before they were written: a repeat at the same time may have added them to stats that are
        read later. Returns the ids of patterns that now have too many stats: call
        ``merge_surplus`` for these. Raises ContentionError.
        """
        by_namespace: dict[str, dict[str, dict[str, RecordedOutcome]]] = {}
        vectors: dict[str, Sequence[float] | None] = {}
        for name, (one, vector) in outcomes.items():
            point = _point_of(one)
            by_namespace.setdefault(one.namespace, {}).setdefault(point, {})[name] = one
            vectors[point] = vector
        crowded: set[str] = set()
        for namespace, by_stats in by_namespace.items():
            found = {point: before[point] for point in by_stats if point in before}
            fresh = [
                self._first(point, theirs, vector)
                for point, theirs in by_stats.items()
                if point not in found and (vector := vectors[point]) is not None
            ]
            batch = [
                NewChanges(record, list(by_stats[point]), self._sums(record, by_stats[point]))
                for point, record in found.items()
                if not record.payload.get(MERGING)
            ]
            taken = await self._store.insert(CONTEXT_STATS, fresh) if fresh else set()
            crowded |= await self._crowded(namespace, [r for r in fresh if r.id in taken])
            taken |= (
                await apply_new(self._store, self._pending, CONTEXT_STATS, batch, PENDING, REVISION)
            ).keys()
            for point, theirs in by_stats.items():
                if point not in taken:
                    for one in theirs.values():
                        await self.take_in(one, vectors[point])
        return crowded

    async def take_in(self, recorded: RecordedOutcome, vector: Sequence[float] | None) -> None:
        """Add an outcome to the stats of its query, unless some stats of the pattern contain it.

        ``vector`` is the query's, if known. Raises ContentionError.
        """
        point = _point_of(recorded)

        async def attempt() -> None:
            record = await self._read(recorded.namespace, point)
            if await self._taken(recorded):
                return
            if record is None and recorded.correction is not None:  # it was merged into another
                record = await self._nearest(recorded, await self._vector(recorded, vector))
                if record is None:
                    return
            if record is None:
                known = await self._vector(recorded, vector)
                first = self._first(point, {recorded.point: recorded}, known)
                await insert_new(self._store, CONTEXT_STATS, first)
                await self.merge_surplus(recorded.namespace, recorded.pattern_id)
            elif record.payload.get(MERGING):
                await self._finish_merge(record)
                raise ConflictError
            else:
                await self._add(recorded, record)

        await compare_and_set("context stats of pattern", recorded.pattern_id, attempt)

    async def finish_merges(self, before: int) -> int:
        """Finish merges that a dead process began; return how many."""
        return await recover(self._store, CONTEXT_STATS, Not(Missing(MERGING)), self._finish_merge)

    # --- taking in ----------------------------------------------------------------------------

    async def _taken(self, recorded: RecordedOutcome) -> bool:
        """Whether the outcome is applied, or any stats of the pattern have counted it.

        Called after the stats were read: whoever counted it since has changed their revision.
        """
        if recorded.point in await self._pending.done(recorded.namespace, [recorded.point]):
            return True
        holding = [Equals("pattern_id", recorded.pattern_id), Equals(PENDING, recorded.point)]
        return bool(await self._store.count(CONTEXT_STATS, recorded.namespace, holding))

    async def _vector(
        self, recorded: RecordedOutcome, vector: Sequence[float] | None
    ) -> Sequence[float]:
        if vector is not None:
            return vector
        return await self._vectors.of_outcome(recorded)

    async def _nearest(self, recorded: RecordedOutcome, vector: Sequence[float]) -> Record | None:
        theirs: list[Condition] = [Equals("pattern_id", recorded.pattern_id), Missing(MERGING)]
        search = SearchQuery(QUERY_VECTOR, vector, 1, theirs, records=1)
        found = await self._store.search(CONTEXT_STATS, recorded.namespace, [search])
        return next(iter(found.records.values()), None)

    def _first(
        self, point: str, outcomes: Mapping[str, RecordedOutcome], vector: Sequence[float]
    ) -> Record:
        """New stats with the outcomes, which are given by their names."""
        one = next(iter(outcomes.values()))
        return context_stats_record(
            one.namespace,
            point,
            one.pattern_id,
            one.query,
            vector,
            self._plus(ContextStats(), outcomes.values()),
            list(outcomes),
            self._time.sort_key(),
        )

    def _plus(self, stats: ContextStats, outcomes: Iterable[RecordedOutcome]) -> ContextStats:
        for one in outcomes:
            stats = stats.record(one.value, one.create_time, self._fading)
        return stats

    def _sums(self, record: Record, outcomes: Mapping[str, RecordedOutcome]) -> Payload:
        stats = self._plus(context_stats_from_payload(record.payload), outcomes.values())
        return context_stats_payload(stats)

    async def _add(self, recorded: RecordedOutcome, record: Record) -> None:
        """Add to existing stats. Raises ConflictError if they changed meanwhile."""
        payload = record.payload
        done = await self._pending.done(recorded.namespace, payload[PENDING])
        stats = await self._with(recorded, context_stats_from_payload(payload), payload)
        left = [*(one for one in payload[PENDING] if one not in done), recorded.point]
        changed = {**context_stats_payload(stats), PENDING: left}
        await update_as_read(self._store, CONTEXT_STATS, record, changed, REVISION)

    async def _with(
        self, recorded: RecordedOutcome, stats: ContextStats, payload: dict[str, Any]
    ) -> ContextStats:
        correction = recorded.correction
        if correction is None:
            return stats.record(recorded.value, recorded.create_time, self._fading)
        later = (await self._history.behind(recorded, payload[PENDING])).in_context
        weight = stats.weight_of(correction.time, later, self._fading)
        if correction.undone is not None:
            stats = stats.without(correction.undone.value_in_rates, weight)
        return stats.along(recorded.value, weight) if recorded.outcome else stats

    # --- merging ------------------------------------------------------------------------------

    async def _crowded(self, namespace: str, fresh: Sequence[Record]) -> set[str]:
        """The patterns of new stats that now have too many."""
        if not fresh:
            return set()
        ids = tuple({record.payload["pattern_id"] for record in fresh})
        theirs: list[Condition] = [AnyOf("pattern_id", ids), Missing(MERGING)]
        counts = await self._store.facet(
            CONTEXT_STATS, namespace, "pattern_id", theirs, limit=len(ids)
        )
        return {str(one) for one, count in counts.items() if count > MAX_CONTEXT_STATS}

    async def merge_surplus(self, namespace: str, pattern_id: str) -> None:
        """Merge the nearest stats of a pattern that has too many."""
        theirs: list[Condition] = [Equals("pattern_id", pattern_id), Missing(MERGING)]
        if await self._store.count(CONTEXT_STATS, namespace, theirs) <= MAX_CONTEXT_STATS:
            return
        records = await self._store.scroll(
            CONTEXT_STATS, namespace, theirs, limit=2 * MAX_CONTEXT_STATS, vectors=True
        )
        time_slice = TimeSlice()
        for one, other in _nearest_pairs(
            records, len(records) - MAX_CONTEXT_STATS + _MERGED_AT_ONCE
        ):
            if await self._freeze(other, one):
                await self._finish_merge(await self._read(namespace, other.id))
            await time_slice.give_way()

    async def _freeze(self, record: Record, into: Record) -> bool:
        """False if it changed, or took in another one that may still be there."""
        if await self._taken_in(record):
            return False
        with suppress(ConflictError):
            await update_as_read(self._store, CONTEXT_STATS, record, {MERGING: [into.id]}, REVISION)
            return True
        return False

    async def _finish_merge(self, frozen: Record | None) -> None:
        """Merge frozen stats into the others, or unfreeze them if those cannot take them."""
        if frozen is None or not frozen.payload.get(MERGING):
            return
        namespace, (point,) = frozen.namespace, frozen.payload[MERGING]

        async def attempt() -> None:
            into = (await self._store.get(CONTEXT_STATS, namespace, [point], vectors=True)).get(
                point
            )
            if into is None or into.payload.get(MERGING):
                with suppress(ConflictError):  # thaw it
                    await update_as_read(
                        self._store, CONTEXT_STATS, frozen, {MERGING: []}, REVISION
                    )
                return
            if _name(frozen) not in into.payload.get(TAKEN_IN, ()):
                await self._absorb(into, frozen)
            theirs = [IdIn((frozen.id,)), *as_read(frozen, REVISION)]
            await self._store.delete(CONTEXT_STATS, namespace, theirs)

        await compare_and_set("context stats of pattern", frozen.payload["pattern_id"], attempt)

    async def _absorb(self, into: Record, frozen: Record) -> None:
        payload = into.payload
        frozen_vector = await self._store.get(
            CONTEXT_STATS, frozen.namespace, [frozen.id], vectors=True
        )
        if frozen.id not in frozen_vector:  # another process finished it
            return
        one, other = context_stats_from_payload(payload), context_stats_from_payload(frozen.payload)
        there = await self._taken_in(into)
        changed = {
            **payload,
            **context_stats_payload(one.merge(other, self._fading)),
            REVISION: payload[REVISION] + 1,
            PENDING: [*payload[PENDING], *frozen.payload[PENDING]],
            TAKEN_IN: [*there, _name(frozen)],
        }
        vector = _between(
            _vector_of(into), one.trials, _vector_of(frozen_vector[frozen.id]), other.trials
        )
        new = Record(into.id, into.namespace, changed, {QUERY_VECTOR: vector})
        await replace_as_read(self._store, CONTEXT_STATS, into, new, REVISION)

    async def _taken_in(self, record: Record) -> list[str]:
        """The names of those that it took in and that are still there."""
        names = record.payload.get(TAKEN_IN, ())
        points = [name.partition("/")[0] for name in names]
        found = await self._store.get(CONTEXT_STATS, record.namespace, points) if points else {}
        there = {_name(one) for one in found.values()}
        return [name for name in names if name in there]

    async def _read(self, namespace: str, point: str) -> Record | None:
        return (await self._store.get(CONTEXT_STATS, namespace, [point])).get(point)


def _point_of(recorded: RecordedOutcome) -> str:
    return context_stats_point(recorded.namespace, recorded.pattern_id, recorded.query)


def _name(record: Record) -> str:
    """Tells it from later stats of the same query, which have its point."""
    return f"{record.id}/{record.payload[SORT_KEY]}"


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
    """Pairs of the nearest queries, each record in at most one pair; the older one first."""
    ordered = sorted(records, key=lambda stats: (stats.payload["sort_key"], stats.id))
    vectors = np.stack([_vector_of(stats) for stats in ordered])
    cosines = vectors @ vectors.T
    rows, columns = np.triu_indices(len(ordered), k=1)
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
