"""Marks episodes ABANDONED that have had no event and no end for a long time.

The last event of each running episode is not looked up every minute: its record has a time at which
it was certainly active (``ACTIVE_TIME``), and only episodes where that is long ago are examined. If
one was active since, its record is updated, so that it is examined again when it may be due.

No concurrent event is lost. Within this process the episode's lock orders everything. Across
processes the episode is marked first, then examined once more, then abandoned if its record still
has the status, the writer's epoch and the time that were read. Whoever stores an event reads the
record afterwards (``fence``): if it sees the mark it updates that time, and it revives an episode
that was abandoned. So an event is either seen in time, or the episode runs on after it; of several
processes that try to abandon it, exactly one succeeds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator

from lot_grpc.domain.episode import DEFAULT_ABANDON_HOURS, EpisodeStatus
from lot_grpc.ports import Condition, Equals, Payload, Range, Record, VectorStore
from lot_grpc.services.episodes.active_streams import ActiveStreams
from lot_grpc.services.episodes.event_log import EventLog
from lot_grpc.services.episodes.notifier import EpisodeNotifier
from lot_grpc.services.maintenance import Swept
from lot_grpc.services.records.collections import EPISODES
from lot_grpc.services.records.episodes import (
    ABANDONING,
    ACTIVE_TIME,
    WRITER_UNTIL,
    abandoned_payload,
    committed_prefix_of,
    episode_from_record,
    episode_point,
)
from lot_grpc.services.scanning import scan
from lot_grpc.services.time_slice import TimeSlice
from lot_grpc.services.time_source import TimeSource

_RUNNING = Equals("status", EpisodeStatus.RUNNING.value)
_BATCH = 200


class EpisodeAbandoner:
    """Finds and marks abandoned episodes."""

    def __init__(
        self,
        store: VectorStore,
        time_source: TimeSource,
        log: EventLog,
        active_streams: ActiveStreams,
        notifier: EpisodeNotifier,
        hours: float = DEFAULT_ABANDON_HOURS,
    ) -> None:
        """An episode is abandoned after ``hours`` without activity; 0: never."""
        self._store = store
        self._time = time_source
        self._log = log
        self._active_streams = active_streams
        self._notifier = notifier
        self._after = round(hours * 3600 * 1_000_000)

    async def sweep(self) -> Swept:
        """Abandon the episodes that are due; return how many, by namespace."""
        counts: Counter[str] = Counter()
        if self._after:
            time_slice = TimeSlice(rest=1.0)
            async for record in self._candidates():
                episode_id = record.payload["episode_id"]
                counts[record.namespace] += await self._consider(record.namespace, episode_id)
                await time_slice.give_way()
        marked = {namespace: {"EPISODE": count} for namespace, count in counts.items() if count}
        return Swept("marked episodes as abandoned", marked)

    def _candidates(self) -> AsyncIterator[Record]:
        """Running episodes that may be due, the longest inactive first."""
        due: list[Condition] = [_RUNNING, Range(ACTIVE_TIME, lte=self._due())]
        keys = ("episode_id",)
        return scan(self._store, EPISODES, None, due, payload=keys, key=ACTIVE_TIME, batch=_BATCH)

    def _due(self) -> int:
        """Episodes last active at or before this time are abandoned."""
        return self._time.now() - self._after

    async def _consider(self, namespace: str, episode_id: str) -> bool:
        """Abandon an episode if it is due; return whether this call did."""
        async with self._active_streams.turn(namespace, episode_id):
            point = episode_point(namespace, episode_id)
            record = (await self._store.get(EPISODES, namespace, [point])).get(point)
            if record is None or record.payload["status"] != EpisodeStatus.RUNNING.value:
                return False
            now = self._time.now()
            if (
                self._active_streams.current(namespace, episode_id) is not None
                or record.payload.get(WRITER_UNTIL, 0) > now
            ):
                await self._update(record, {ACTIVE_TIME: now})
                return False
            active, count = await self._activity(record)
            if active > self._due():
                await self._update(record, {ACTIVE_TIME: active})
                return False
            if not self._store.exclusive:
                if not await self._update(record, {ABANDONING: True}):
                    return False
                active, count = await self._activity(record)
                if active > self._due():  # an event arrived; the next sweep updates the record
                    return False
            abandoned = await self._abandon(record, active, count)
            self._notifier.notify(namespace, episode_id)
            return abandoned

    async def _abandon(self, record: Record, active: int, count: int) -> bool:
        episode = episode_from_record(record)
        end_time = max(active, episode.start_time)
        changed = abandoned_payload(episode, end_time, count, self._time.now())
        return await self._update(record, changed)

    async def _activity(self, record: Record) -> tuple[int, int]:
        """The last known activity, and the number of events."""
        payload = record.payload
        active: int = payload[ACTIVE_TIME]
        namespace, episode_id = record.namespace, payload["episode_id"]
        committed = committed_prefix_of(payload)
        last = await self._log.last_sequence(namespace, episode_id, committed=committed)
        for event in await self._log.read(namespace, episode_id, last - 1, 1) if last else ():
            active = max(active, event.record_time or 0)
        return active, last

    async def _update(self, record: Record, changed: Payload) -> bool:
        """Change an episode that still runs, and was not active since it was looked at.

        A writer that takes it over is active then.
        """
        seen = Equals(ACTIVE_TIME, record.payload[ACTIVE_TIME])
        return await self._store.update(
            EPISODES,
            record.namespace,
            record.id,
            set=changed,
            when=[_RUNNING, seen],
        )
