"""Counting outcomes exactly once, even across crashes: see ``kernel.apply_once``.

Outcomes that arrive at the same time are counted as a group: one insert logs them all, each record
with counters or stats is written once, and one write marks the outcomes as applied. If the process
dies before that, recovery finds the outcomes in the log and counts them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lot_grpc.domain.outcomes import OutcomeStats
from lot_grpc.domain.recorded_outcome import RecordedOutcome
from lot_grpc.kernel.apply_once import NewChanges, Target, apply_new, apply_once
from lot_grpc.kernel.compare_and_set import update_as_read
from lot_grpc.kernel.groups import Groups
from lot_grpc.ports import Record, VectorStore
from lot_grpc.services.outcomes.context_stats import ContextStatsStore
from lot_grpc.services.outcomes.history import History
from lot_grpc.services.outcomes.observed import ObservedOutcomes
from lot_grpc.services.outcomes.pending_outcomes import PendingOutcomes
from lot_grpc.services.records.counters import (
    PENDING,
    STATS_REVISION,
    outcomes_from_payload,
    outcomes_payload,
)
from lot_grpc.services.records.outcomes import outcome_from_record
from lot_grpc.services.resource_spec import ResourceSpec

_CALLS_AT_ONCE = 32
"""Calls in one group. With the embedded store, each blocks the event loop for a third of a
millisecond."""


@dataclass(eq=False, slots=True)
class _Call:
    """A call to count outcomes.

    ``known`` and ``counted``: the resources by point, before and afterwards. ``crowded``: the
    points of resources with too many context stats.
    """

    outcomes: Sequence[RecordedOutcome]
    known: Mapping[str, Record]
    vector: Sequence[float] | None
    again: bool
    counted: dict[str, Record] = field(default_factory=dict)
    crowded: set[str] = field(default_factory=set)


@dataclass(slots=True)
class _Entry:
    """An outcome of a group.

    ``resource``: the point of what was used. ``before`` and ``after``: it as read before the group,
    if it was, and with the outcome counted.
    """

    recorded: RecordedOutcome
    resource: str
    before: Record | None
    vector: Sequence[float] | None
    after: Record | None = None


class OutcomeCounter:
    """Adds outcomes to the counters of what was used, and to its stats on the query."""

    def __init__(
        self,
        store: VectorStore,
        pending: PendingOutcomes,
        context_stats: ContextStatsStore,
        history: History,
        counted: Mapping[str, ResourceSpec],
    ) -> None:
        """``counted``: the kinds with counters (``Registry.counted``)."""
        self._store = store
        self._collections = {kind: spec.collection.name for kind, spec in counted.items()}
        self._pending = pending
        self._context_stats = context_stats
        self._history = history
        self._observed = ObservedOutcomes()
        self._groups = Groups(self._count_calls, _CALLS_AT_ONCE)

    async def count(
        self,
        recorded_outcomes: Sequence[RecordedOutcome],
        known: Mapping[str, Record] | None = None,
        vector: Sequence[float] | None = None,
        *,
        again: bool = False,
    ) -> dict[str, Record]:
        """Count each outcome once; return the records of what was used, by point.

        Outcomes that were written before (a retry) are not written again, and count as they are in
        the log. Deleted records are left out. ``known`` are the records by point, as read before
        this call, and ``vector`` that of the outcomes' query; both save a read. ``again``: known is
        what a retry read, when they may have been counted. Raises ContentionError; the outcomes are
        stored then, and counted by the next retry or sweep.
        """
        call = _Call(recorded_outcomes, known or {}, vector, again)
        if known and not again:
            await self._groups.process(call)
        else:
            await self._count_calls([call])
        for point in call.crowded:
            await self._context_stats.merge_surplus(recorded_outcomes[0].namespace, point)
        return call.counted

    async def finish(self, recorded: RecordedOutcome) -> None:
        """Count an entry of the log, unless it was. Raises ContentionError."""
        await self._count_again(_Entry(recorded, recorded.resource_point, None, None))
        await self._pending.applied({recorded.point: recorded})

    async def roll_forward(self, before: int) -> int:
        """Count what was written before a time and is pending; return how many outcomes."""

        async def count(row: Record) -> None:
            await self.finish(outcome_from_record(row))

        return await self._pending.recover(before, count)

    async def _count_calls(self, calls: Sequence[_Call]) -> None:
        entries: dict[str, _Entry] = {}  # one for each outcome, even if a request was sent twice
        of_calls = []
        for call in calls:
            names = [one.point for one in call.outcomes]
            of_calls.append((call, names))
            for name, recorded in zip(names, call.outcomes, strict=True):
                if name not in entries:
                    resource = recorded.resource_point
                    before = call.known.get(resource) if not call.again else None
                    entries[name] = _Entry(recorded, resource, before, call.vector)
        known = [record for call in calls for record in call.known.values()]
        outcomes = {name: one.recorded for name, one in entries.items()}
        stats = await self._context_stats.before(
            one.recorded for one in entries.values() if one.before is not None
        )
        written = await self._pending.insert(outcomes, known)
        for name in written:
            self._observed.count(outcomes[name])
        others = [name for name in entries if name not in written]
        for name, recorded in (await self._history.entries(outcomes, others)).items():
            entries[name].recorded = recorded  # another may have corrected the same one otherwise
        new = {n: one for n, one in entries.items() if n in written and one.before is not None}
        crowded = await self._count_new(new, stats)
        for name, entry in entries.items():
            if name not in new:
                await self._count_again(entry)
        await self._pending.applied(outcomes)
        for call, names in of_calls:
            for entry in (entries[name] for name in names):
                if entry.after is not None:
                    call.counted[entry.resource] = entry.after
                    call.crowded |= crowded & {entry.resource}

    async def _count_new(self, new: dict[str, _Entry], stats: Mapping[str, Record]) -> set[str]:
        """Count new outcomes; drop from ``new`` those whose target has changed meanwhile.

        ``stats`` are those of their queries before that. Returns the points of resources that may
        have too many context stats.
        """
        used: dict[str, dict[str, dict[str, _Entry]]] = {}
        for name, entry in new.items():
            collection = self._collections[entry.recorded.resource.kind]
            used.setdefault(collection, {}).setdefault(entry.resource, {})[name] = entry
        after: dict[str, Record] = {}
        for collection, resources in used.items():
            batch = [_added(entries) for entries in resources.values()]
            after |= await apply_new(
                self._store, self._pending, collection, batch, PENDING, STATS_REVISION
            )
        for name, entry in list(new.items()):
            entry.after = after.get(entry.resource)
            if entry.after is None:  # it changed since it was read
                del new[name]
        in_context = {
            name: (one.recorded, one.vector) for name, one in new.items() if one.recorded.in_context
        }
        return await self._context_stats.take_in_new(in_context, stats)

    async def _count_again(self, entry: _Entry) -> None:
        """Count an outcome that may have been counted, or whose target has changed meanwhile."""
        recorded = entry.recorded
        collection = self._collections.get(recorded.resource.kind)
        if collection is None:  # only its retrieval is named, which has no counters
            return

        async def count(record: Record | None, pending: list[str]) -> Record | None:
            if record is None or not await self._history.is_of(recorded, record):
                await self._pending.withdraw(recorded)  # the next of its id would have it
                return None
            counters = outcomes_payload(await self._counted(recorded, record))
            changed = {**counters, PENDING: pending}
            return await update_as_read(self._store, collection, record, changed, STATS_REVISION)

        target = Target(
            recorded.resource.kind,
            recorded.resource.id,
            recorded.namespace,
            collection,
            entry.resource,
            PENDING,
        )
        entry.after = await apply_once(self._store, self._pending, recorded.point, target, count)
        if entry.after is not None and recorded.in_context:
            await self._context_stats.take_in(recorded, entry.vector)

    async def _counted(self, recorded: RecordedOutcome, record: Record) -> OutcomeStats:
        """The counters including the outcome."""
        outcomes = outcomes_from_payload(record.payload)
        if recorded.correction is not None:
            behind = await self._history.behind(recorded, record.payload[PENDING])
            return outcomes.correct(recorded.correction, recorded.outcome, behind.values)
        return _with(outcomes, recorded)


def _added(entries: Mapping[str, _Entry]) -> NewChanges:
    """The outcomes of one resource, in order, as a change of its counters."""
    *_, last = entries.values()
    assert last.before is not None
    outcomes = outcomes_from_payload(last.before.payload)
    for entry in entries.values():
        outcomes = _with(outcomes, entry.recorded)
    return NewChanges(last.before, list(entries), outcomes_payload(outcomes))


def _with(outcomes: OutcomeStats, recorded: RecordedOutcome) -> OutcomeStats:
    if recorded.outcome is None:
        return outcomes
    return outcomes.record(recorded.outcome, recorded.create_time, recorded.duration)
