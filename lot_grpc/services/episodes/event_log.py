"""The events of an episode: numbered from 1 without gaps, written once, never changed.

An event's point id follows from its number, so the last event is found by probing where the numbers
stop, and a page is fetched by number; no index is needed, and none slows down writes.
"""

from __future__ import annotations

from collections.abc import Sequence

from lot_grpc.domain.episode import EpisodeEvent
from lot_grpc.domain.errors import EventConflictError, EventSequenceGapError
from lot_grpc.kernel.compare_and_set import ConflictError, as_read, compare_and_set
from lot_grpc.ports import Condition, Equals, IdIn, Range, Record, VectorStore
from lot_grpc.services.episodes.event_writer import EventWriter
from lot_grpc.services.records.collections import EVENTS
from lot_grpc.services.records.episodes import (
    EVENT,
    CommittedPrefix,
    event_content,
    event_from_record,
    event_point,
    event_points,
    event_record,
    event_records,
)
from lot_grpc.services.reindex.gate import ModelGate
from lot_grpc.telemetry.metrics import EVENTS_RECORDED

ALL = CommittedPrefix()
"""Every event is committed."""

_HIGHEST_POWER = 40
_SPREAD = 64


class EventLog:
    """The events of all episodes."""

    def __init__(self, store: VectorStore, gate: ModelGate | None = None) -> None:
        """``gate``: see ``EventWriter``."""
        self._store = store
        self._writing = EventWriter(store, gate)

    async def last_sequence(
        self, namespace: str, episode_id: str, known: int = 0, committed: CommittedPrefix = ALL
    ) -> int:
        """The number of the last committed event; 0 if there is none.

        Events up to ``known`` are certain to exist.
        """
        known = max(known, committed.number)
        steps = [known + 2**power for power in range(_HIGHEST_POWER)]
        there = await self._which(namespace, episode_id, steps, committed.epoch)
        low, high = known, steps[0]
        for step in steps:
            if step not in there:
                high = step
                break
            low = step
        while high - low > 1:
            stride = max(1, (high - low) // _SPREAD)
            probes = list(range(low + stride, high, stride))
            there = await self._which(namespace, episode_id, probes, committed.epoch)
            missing = [probe for probe in probes if probe not in there]
            high = missing[0] if missing else high
            low = max((probe for probe in probes if probe < high), default=low)
        return low

    async def read(
        self,
        namespace: str,
        episode_id: str,
        after: int,
        limit: int,
        committed: CommittedPrefix = ALL,
    ) -> list[EpisodeEvent]:
        """The events of ``records``."""
        found = await self.records(namespace, episode_id, after, limit, committed)
        return [event_from_record(record) for record in found]

    async def records(
        self,
        namespace: str,
        episode_id: str,
        after: int,
        limit: int,
        committed: CommittedPrefix = ALL,
    ) -> list[Record]:
        """Up to ``limit`` committed events after number ``after``, in order and without a gap.

        They stop before an uncommitted event: the valid writer has yet to write its number, and may
        already have stored later ones.
        """
        points = event_points(namespace, episode_id, range(after + 1, after + limit + 1))
        found = await self._store.get(EVENTS, namespace, points)
        records = []
        for point in points:
            record = found.get(point)
            if record is None or not committed.holds(record.payload):
                break
            records.append(record)
        return records

    async def append(
        self,
        namespace: str,
        episode_id: str,
        events: Sequence[EpisodeEvent],
        last: int,
        epoch: int,
        record_time: int | None = None,
        *,
        alone: bool = False,
    ) -> int:
        """Store events that follow ``last``, all or none; return the new last number.

        Events up to ``last`` are compared with those stored. ``record_time`` applies to all; with
        None each keeps its own. ``alone``: no other stream is recording. Raises
        EventSequenceGapError, EventConflictError.
        """
        fresh: list[EpisodeEvent] = []
        repeats: list[EpisodeEvent] = []
        expected = last + 1
        for event in events:
            if event.sequence > expected:
                raise EventSequenceGapError(episode_id, last + 1, event.sequence)
            if event.sequence == expected:
                fresh.append(event)
                expected += 1
            else:
                repeats.append(event)
        if repeats:
            await self._compare(namespace, episode_id, repeats, fresh)
        if fresh:
            records = event_records(namespace, episode_id, fresh, epoch, record_time)
            inserted = await self._writing.insert(records, alone=alone)
            EVENTS_RECORDED.add(by=len(inserted))
            if len(inserted) < len(records):
                await self._settle_taken(namespace, episode_id, records, inserted, epoch)
        return expected - 1

    async def put_first(
        self, namespace: str, episode_id: str, event: EpisodeEvent, epoch: int, request: str
    ) -> bool:
        """Store one event if its number is free; by ``request`` a retry recognises its own event.

        A number also counts as free if it holds an uncommitted event of an older epoch.
        """
        record = event_record(namespace, episode_id, event, epoch, request)
        if await self._writing.insert([record]):
            EVENTS_RECORDED.add()
            return True
        stored = (await self._store.get(EVENTS, namespace, [record.id])).get(record.id)
        if stored is None or stored.payload["epoch"] >= epoch:
            return False
        return await self._replace(record, stored)

    async def of_request(
        self, namespace: str, episode_id: str, sequence: int, request: str
    ) -> tuple[EpisodeEvent, int] | None:
        """The event with a number and its writer's epoch, if this request stored it."""
        point = event_point(namespace, episode_id, sequence)
        record = (await self._store.get(EVENTS, namespace, [point])).get(point)
        if record is None or record.payload.get("request") != request:
            return None
        return event_from_record(record), record.payload["epoch"]

    async def remove(
        self,
        namespace: str,
        episode_id: str,
        first: int,
        last: int,
        epoch: int | None = None,
        recorded_until: int | None = None,
    ) -> int:
        """Delete events by number, only those of one writer if ``epoch`` is given.

        ``recorded_until`` spares events recorded after this time.
        """
        deleted = 0
        for start in range(first, last + 1, 1000):
            numbers = range(start, min(start + 1000, last + 1))
            points = tuple(event_point(namespace, episode_id, n) for n in numbers)
            where: list[Condition] = [IdIn(points)]
            if epoch is not None:
                where.append(Equals("epoch", epoch))
            if recorded_until is not None:
                where.append(Range("record_time", lte=recorded_until))
            deleted += await self._store.delete(EVENTS, namespace, where)
        return deleted

    async def _which(
        self, namespace: str, episode_id: str, sequences: Sequence[int], epoch: int
    ) -> set[int]:
        points = {event_point(namespace, episode_id, n): n for n in sequences}
        where: list[Condition] = [IdIn(tuple(points))]
        if epoch:
            where.append(Range("epoch", gte=epoch))
        found = await self._store.scroll(EVENTS, namespace, where, limit=len(points), payload=False)
        return {points[record.id] for record in found}

    async def _compare(
        self,
        namespace: str,
        episode_id: str,
        repeats: Sequence[EpisodeEvent],
        fresh: Sequence[EpisodeEvent],
    ) -> None:
        coming = {event.sequence: event_content(event) for event in fresh}
        points = {event_point(namespace, episode_id, event.sequence): event for event in repeats}
        found = await self._store.get(EVENTS, namespace, list(points))
        for event in repeats:
            record = found.get(event_point(namespace, episode_id, event.sequence))
            stored = record.payload[EVENT] if record else coming.get(event.sequence)
            if stored != event_content(event):
                raise EventConflictError(episode_id, event.sequence)

    async def _settle_taken(
        self,
        namespace: str,
        episode_id: str,
        records: Sequence[Record],
        inserted: set[str],
        epoch: int,
    ) -> None:
        """Handle taken numbers: by a repeat of ours, or by a writer that was replaced.

        What a replaced writer stored becomes ours, equal or not: it may yet remove its own events.
        """
        for record in records:
            if record.id not in inserted and not await self._take(
                namespace, episode_id, record, epoch
            ):
                raise EventConflictError(episode_id, record.payload["sequence"])

    async def _take(self, namespace: str, episode_id: str, record: Record, epoch: int) -> bool:
        async def attempt() -> bool:
            stored = (await self._store.get(EVENTS, namespace, [record.id])).get(record.id)
            if stored is None:
                written = bool(await self._writing.insert([record]))
            elif stored.payload["epoch"] >= epoch:
                return bool(stored.payload[EVENT] == record.payload[EVENT])
            else:
                written = await self._replace(record, stored)
            if not written:
                raise ConflictError
            return True

        return await compare_and_set("episode", episode_id, attempt)

    async def _replace(self, record: Record, stored: Record) -> bool:
        return await self._store.replace(EVENTS, record, as_read(stored, "epoch"))
