"""Stores context stats: one record a resource and query, ``MAX_CONTEXT_STATS`` a resource at most.

Stats count an outcome as other targets do (``kernel.apply_once``). The target is the record that
the point of the resource and query leads to, since stats may have been merged into others
(``stats_merging``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from lot_grpc.domain.context_stats import MAX_CONTEXT_STATS, ContextStats
from lot_grpc.domain.recorded_outcome import RecordedOutcome
from lot_grpc.domain.retrieval import is_query_hash
from lot_grpc.kernel.apply_once import NewChanges, apply_new
from lot_grpc.kernel.compare_and_set import (
    ConflictError,
    compare_and_set,
    insert_new,
    update_as_read,
)
from lot_grpc.ports import AnyOf, Condition, Missing, Payload, Record
from lot_grpc.services.outcomes.history import History
from lot_grpc.services.outcomes.pending_outcomes import PendingOutcomes
from lot_grpc.services.outcomes.query_vectors import QueryVectors
from lot_grpc.services.outcomes.stats_merging import StatsMerger
from lot_grpc.services.records.collections import CONTEXT_STATS
from lot_grpc.services.records.context_stats import (
    MERGED_INTO,
    PENDING,
    REVISION,
    context_stats_from_payload,
    context_stats_payload,
    context_stats_point,
    context_stats_record,
    merged_stats_record,
)
from lot_grpc.services.records.resource_refs import RESOURCE
from lot_grpc.services.runtime import Runtime


class ContextStatsStore:
    """The context stats of all namespaces."""

    def __init__(
        self,
        runtime: Runtime,
        pending: PendingOutcomes,
        history: History,
        vectors: QueryVectors,
        merger: StatsMerger,
    ) -> None:
        self._store = runtime.store
        self._time = runtime.time
        self._pending = pending
        self._history = history
        self._vectors = vectors
        self._merger = merger
        self._fading = runtime.settings.weights.fading

    async def before(self, outcomes: Iterable[RecordedOutcome]) -> dict[str, Record]:
        """The stats that will count outcomes that are about to be written, by their query's point.

        Those that are being merged are left out.
        """
        by_namespace: dict[str, set[str]] = {}
        for one in outcomes:
            if one.in_context:
                by_namespace.setdefault(one.namespace, set()).add(_point_of(one))
        found: dict[str, Record] = {}
        for namespace, points in by_namespace.items():
            found |= await self._merger.resolve_all(namespace, list(points))
        return found

    async def take_in_new(
        self,
        outcomes: Mapping[str, tuple[RecordedOutcome, Sequence[float] | None]],
        before: Mapping[str, Record],
    ) -> set[str]:
        """Add new outcomes, given by their names, to the stats of their queries.

        Each comes with the vector of its query, if known. ``before`` is what ``before`` returned
        before they were written: a repeat at the same time may have added them to stats that are
        read later. Returns the points of resources that now have too many stats: call
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
            fresh = [
                self._first(point, theirs, vector)
                for point, theirs in by_stats.items()
                if point not in before and (vector := vectors[point]) is not None
            ]
            known: dict[str, tuple[Record, dict[str, RecordedOutcome]]] = {}
            for point, theirs in by_stats.items():
                if point in before:  # several points may lead to the same stats
                    known.setdefault(before[point].id, (before[point], {}))[1].update(theirs)
            batch = [
                NewChanges(record, list(theirs), self._sums(record, theirs))
                for record, theirs in known.values()
            ]
            taken = await self._store.insert(CONTEXT_STATS, fresh) if fresh else set()
            crowded |= await self._crowded(namespace, [r for r in fresh if r.id in taken])
            taken |= (
                await apply_new(self._store, self._pending, CONTEXT_STATS, batch, PENDING, REVISION)
            ).keys()
            for point, theirs in by_stats.items():
                if (before[point].id if point in before else point) not in taken:
                    for one in theirs.values():
                        await self.take_in(one, vectors[point])
        return crowded

    async def take_in(self, recorded: RecordedOutcome, vector: Sequence[float] | None) -> None:
        """Add an outcome to the stats of its query, unless it was already.

        ``vector`` is the query's, if known. There are no stats of a hashed query whose vector is
        lost. Raises ContentionError.
        """
        namespace, point = recorded.namespace, _point_of(recorded)

        async def attempt() -> None:
            record = await self._merger.resolve(namespace, point)
            pending = record.payload[PENDING] if record is not None else []
            # After the stats were read: whoever counted it since has changed their revision.
            done = await self._pending.done(namespace, [recorded.point, *pending])
            if recorded.point in done or recorded.point in pending:
                return
            if record is not None:
                await self._add(recorded, record, done)
                return
            known = await self._vector(recorded, vector)
            if known is None:
                return
            if recorded.correction is not None:
                await self._refer_to_nearest(recorded, known)
            else:
                first = self._first(point, {recorded.point: recorded}, known)
                await insert_new(self._store, CONTEXT_STATS, first)
                await self.merge_surplus(namespace, recorded.resource_point)

        resource = recorded.resource
        await compare_and_set(f"context stats of {resource.kind}", resource.id, attempt)

    async def merge_surplus(self, namespace: str, resource: str) -> None:
        """Merge stats of a resource, by its point, that has too many. Raises ContentionError."""
        await self._merger.merge_surplus(namespace, resource, MAX_CONTEXT_STATS)

    # --- taking in ----------------------------------------------------------------------------

    async def _vector(
        self, recorded: RecordedOutcome, vector: Sequence[float] | None
    ) -> Sequence[float] | None:
        if vector is not None:
            return vector
        return await self._vectors.of_outcome(recorded)

    async def _refer_to_nearest(self, recorded: RecordedOutcome, vector: Sequence[float]) -> None:
        """Let the query of an imported correction lead to the nearest stats, for good.

        Its own were merged in the store it came from. Does nothing if there are no stats; else
        raises ConflictError, so that the caller starts over.
        """
        namespace = recorded.namespace
        nearest = await self._merger.nearest(
            namespace,
            recorded.resource_point,
            vector,
            hashed=is_query_hash(recorded.query),
        )
        if nearest is None:
            return
        point, key = _point_of(recorded), self._time.sort_key()
        reference = merged_stats_record(namespace, point, recorded.resource, nearest.id, key)
        await self._store.insert(CONTEXT_STATS, [reference])
        raise ConflictError  # start over with the new target

    def _first(
        self, point: str, outcomes: Mapping[str, RecordedOutcome], vector: Sequence[float]
    ) -> Record:
        """New stats with the outcomes, which are given by their names."""
        one = next(iter(outcomes.values()))
        return context_stats_record(
            one.namespace,
            point,
            one.resource,
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

    async def _add(self, recorded: RecordedOutcome, record: Record, done: Collection[str]) -> None:
        """Add to existing stats. Raises ConflictError if they changed meanwhile."""
        payload = record.payload
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

    async def _crowded(self, namespace: str, fresh: Sequence[Record]) -> set[str]:
        """The points of the resources of new stats that now have too many."""
        if not fresh:
            return set()
        points = tuple({record.payload[RESOURCE] for record in fresh})
        theirs: list[Condition] = [AnyOf(RESOURCE, points), Missing(MERGED_INTO)]
        counts = await self._store.facet(
            CONTEXT_STATS, namespace, RESOURCE, theirs, limit=len(points)
        )
        return {str(one) for one, count in counts.items() if count > MAX_CONTEXT_STATS}


def _point_of(recorded: RecordedOutcome) -> str:
    return context_stats_point(recorded.namespace, recorded.resource, recorded.query)
