"""Episodes: start, end, read, list, find."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from lot_grpc.domain.complexity import assess_complexity
from lot_grpc.domain.episode import (
    Episode,
    EpisodeEnd,
    EpisodeEvent,
    EpisodeStart,
    EpisodeStatus,
    named_by_end,
    numbered,
    search_text,
)
from lot_grpc.domain.errors import (
    EpisodeEndedError,
    EpisodeIdInUseError,
    EpisodeNotFoundError,
    EventConflictError,
    invalid,
)
from lot_grpc.domain.ids import content_hash, new_id
from lot_grpc.domain.query import EpisodeFilter
from lot_grpc.kernel.compare_and_set import ConflictError, as_read, compare_and_set
from lot_grpc.kernel.idempotency import (
    CREATE_TIME,
    IdempotencyKey,
    IdempotencyRecord,
    IdempotencyStore,
)
from lot_grpc.ports import Condition, Equals, Payload, Record, VectorStore
from lot_grpc.services.episodes.active_streams import ActiveStreams
from lot_grpc.services.episodes.drafts import (
    Ended,
    EpisodeDraft,
    EpisodePage,
    EventPage,
    Started,
)
from lot_grpc.services.episodes.episode_deleter import EpisodeDeleter
from lot_grpc.services.episodes.event_log import EventLog
from lot_grpc.services.episodes.fence import Fence
from lot_grpc.services.episodes.notifier import EpisodeNotifier
from lot_grpc.services.episodes.reuse import ReuseCounter
from lot_grpc.services.indexer import Indexed, Indexer
from lot_grpc.services.paging import Fits, Position, any_size, pieces, read_page
from lot_grpc.services.records.collections import EPISODES, SORT_KEY
from lot_grpc.services.records.episodes import (
    EXTRACTION,
    WANTED,
    WRITER_EPOCH,
    base_payload,
    committed_prefix_of,
    end_hash,
    end_payload,
    episode_conditions,
    episode_from_record,
    episode_point,
    episode_record,
    start_hash,
    unrevised_as,
)
from lot_grpc.services.time_source import TimeSource

RECORD_METHOD = "RecordEpisode"


def _result(started: Started) -> Payload:
    return {"created": started.created, CREATE_TIME: started.episode.create_time}


class Episodes:
    """The episodes of all namespaces."""

    def __init__(
        self,
        store: VectorStore,
        indexer: Indexer,
        time_source: TimeSource,
        idempotency: IdempotencyStore,
        log: EventLog,
        active_streams: ActiveStreams,
        fence: Fence,
        deleting: EpisodeDeleter,
        reuse: ReuseCounter,
        notifier: EpisodeNotifier,
    ) -> None:
        self._store = store
        self._indexer = indexer
        self._time = time_source
        self._idempotency = idempotency
        self._log = log
        self._active_streams = active_streams
        self._fence = fence
        self._deleting = deleting
        self._reuse = reuse
        self._notifier = notifier

    # --- starting -----------------------------------------------------------------------------

    async def start(self, namespace: str, draft: EpisodeDraft) -> Started:
        """Start an episode. Raises EpisodeIdInUseError, RequestIdReusedError."""
        entry, episode_id = await self._enter(namespace, draft, "StartEpisode", draft.request_id)
        if entry.result is not None:
            return Started(await self.get(namespace, episode_id), entry.result["created"])
        indexed = await self._indexer.vectors_of(search_text(draft.start, None))
        episode = self._new(namespace, episode_id, draft.start)
        started = await self._insert(episode, indexed, entry)
        await self._idempotency.finish(entry, _result(started))
        return started

    async def record(self, namespace: str, draft: EpisodeDraft) -> Started:
        """Record a finished episode: its events first, then the episode, which makes them seen.

        Raises EpisodeIdInUseError, RequestIdReusedError.
        """
        if draft.end is None:
            raise invalid(
                "episode.status",
                "episode.status.ended",
                "the episode has no end; set status to SUCCEEDED or FAILED",
            )
        end = draft.end
        end.check("episode.")
        draft = replace(draft, start=named_by_end(draft.start, end))
        # All that can be refused is, before anything is written.
        now = self._time.now()
        events = numbered(draft.events, now)
        begun = self._new(namespace, draft.episode_id, draft.start)
        if draft.start.start_time is None and end.end_time is not None:
            begun = replace(begun, start_time=min(now, end.end_time))
        ended = begun.ended_by(end, len(events), now, "episode.")
        await self._require_used_by_new(namespace, draft, end)
        # The row is the intent that a sweep clears up after if this process dies midway.
        request_id = draft.request_id or new_id("once")
        entry, episode_id = await self._enter(namespace, draft, RECORD_METHOD, request_id)
        if entry.result is not None:
            return Started(await self.get(namespace, episode_id), entry.result["created"])
        if not entry.first:
            await self._idempotency.reopen(entry)
        ended = replace(ended, episode_id=episode_id)
        indexed = await self._indexer.vectors_of(search_text(draft.start, end))
        await self._refuse_other(ended, end, len(events))
        try:
            for first in range(0, len(events), 1000):
                batch = events[first : first + 1000]
                await self._log.append(namespace, episode_id, batch, first, 0)
        except EventConflictError as error:
            raise EpisodeIdInUseError(namespace, episode_id) from error
        recorded = await self._insert(ended, indexed, entry, extract=draft.extract)
        await self._count_used(namespace, episode_id, end)
        await self._idempotency.finish(entry, _result(recorded))
        return recorded

    async def _enter(
        self, namespace: str, draft: EpisodeDraft, method: str, request_id: str
    ) -> tuple[IdempotencyRecord, str]:
        if draft.episode_id:  # what is left of a deleted one must not be taken for this one's
            await self._deleting.finish_open_delete(namespace, draft.episode_id)
        episode_id = draft.episode_id or new_id("e")
        ask = IdempotencyKey(
            namespace, method, request_id, draft.hash(), {"episode_id": episode_id}
        )
        entry = await self._idempotency.begin(ask)
        episode_id = entry.plan["episode_id"]
        await self._deleting.refuse_repeat(entry, episode_id)
        return entry, episode_id

    def _new(self, namespace: str, episode_id: str, start: EpisodeStart) -> Episode:
        now = self._time.now()
        complexity = start.complexity or assess_complexity(
            start.task, start.dependencies, start.effort or 1.0, start.category
        )
        return Episode(
            namespace=namespace,
            episode_id=episode_id,
            start=replace(start, complexity=complexity),
            status=EpisodeStatus.RUNNING,
            end=None,
            start_time=now if start.start_time is None else start.start_time,
            end_time=None,
            event_count=0,
            reused_count=0,
            writer_epoch=0,
            revision=1,
            create_time=now,
            update_time=now,
        )

    async def _insert(
        self,
        episode: Episode,
        indexed: Indexed,
        entry: IdempotencyRecord,
        *,
        extract: bool = False,
    ) -> Started:
        record = episode_record(episode, self._time.sort_key(), indexed.vectors)
        if extract:
            record.payload[EXTRACTION] = WANTED
        if record.id in await self._store.insert(EPISODES, [record]):
            return Started(
                episode,
                created=True,
                truncated=indexed.text_truncated,
                summary_truncated=indexed.solved_truncated,
            )
        stored = await self._record(episode.namespace, episode.episode_id)
        same = ("start_hash", "end_hash") if episode.end else ("start_hash",)
        if any(stored.payload.get(key) != record.payload.get(key) for key in same):
            raise EpisodeIdInUseError(episode.namespace, episode.episode_id)
        return Started(await self.read(stored), created=not entry.first)

    async def _refuse_other(self, episode: Episode, end: EpisodeEnd, count: int) -> None:
        """Refuse before any event is written under an id that another episode has."""
        point = episode_point(episode.namespace, episode.episode_id)
        stored = (await self._store.get(EPISODES, episode.namespace, [point])).get(point)
        if stored is None:
            return
        payload = stored.payload
        ours = (start_hash(episode.start), end_hash(end), count)
        if ours != tuple(payload.get(key) for key in ("start_hash", "end_hash", "event_count")):
            raise EpisodeIdInUseError(episode.namespace, episode.episode_id)

    # --- ending -------------------------------------------------------------------------------

    async def end(
        self,
        namespace: str,
        episode_id: str,
        end: EpisodeEnd,
        request_id: str,
        *,
        extract: bool = False,
    ) -> Ended:
        """End an episode and close its stream. The same end again answers alike.

        ``extract``: that patterns are to be extracted is written down with it
        (``episode_extraction``).

        Raises EpisodeNotFoundError, EpisodeEndedError.
        """
        end.check()
        plan = {"episode_id": episode_id}
        content = content_hash([episode_id, end_hash(end), extract])
        ask = IdempotencyKey(namespace, "EndEpisode", request_id, content, plan)
        if end.used_episode_ids and not await self._idempotency.find(ask):
            episode = episode_from_record(await self._record(namespace, episode_id))
            if not episode.status.ended:  # of a repeat it may have gone since
                await self._reuse.require(namespace, end.used_episode_ids, episode_id)
        entry = await self._idempotency.begin(ask)
        await self._deleting.refuse_repeat(entry, episode_id)
        async with self._active_streams.turn(namespace, episode_id):
            ended = await self._end(namespace, episode_id, end, extract=extract)
            self._notifier.notify(namespace, episode_id)
            writer = self._active_streams.current(namespace, episode_id)
            if writer is not None:
                writer.stop(EpisodeEndedError(episode_id, end.status.name, "its stream is closed"))
        await self._count_used(namespace, episode_id, end)
        if entry.result is None:
            await self._idempotency.finish(entry, {CREATE_TIME: ended.episode.create_time})
        return ended

    async def _require_used_by_new(
        self, namespace: str, draft: EpisodeDraft, end: EpisodeEnd
    ) -> None:
        """``ReuseCounter.require``, unless it is a repeat: what it used may have gone since."""
        if not end.used_episode_ids:
            return
        if draft.request_id:
            ask = IdempotencyKey(namespace, RECORD_METHOD, draft.request_id, draft.hash(), {})
            repeat = await self._idempotency.find(ask) is not None
        else:
            point = episode_point(namespace, draft.episode_id)
            repeat = bool(draft.episode_id and await self._store.get(EPISODES, namespace, [point]))
        if not repeat:
            await self._reuse.require(namespace, end.used_episode_ids, draft.episode_id, "episode.")

    async def _count_used(self, namespace: str, episode_id: str, end: EpisodeEnd) -> None:
        if end.used_episode_ids:
            await self._reuse.count(namespace, episode_id)

    async def _end(
        self, namespace: str, episode_id: str, end: EpisodeEnd, *, extract: bool
    ) -> Ended:
        async def attempt() -> Ended:
            record = await self._record(namespace, episode_id)
            episode = episode_from_record(record)
            if episode.status.ended:
                if record.payload.get("end_hash") == end_hash(end):
                    return Ended(episode)
                raise EpisodeEndedError(
                    episode_id, episode.status.name, "it cannot be ended again with a different end"
                )
            now = self._time.now()
            episode.ended_by(end, 0, now)  # refuse before a stream is stopped
            text = search_text(episode.start, end)
            indexed = await self._indexer.vectors_of(text) if text.solved else None
            try:
                count, base, when = await self._count_for_end(namespace, episode_id)
            except EpisodeEndedError as error:  # another process was first: look whether alike
                raise ConflictError from error
            ended = episode.ended_by(end, count, now)
            changed = end_payload(end, ended.end_time or 0, count) | base
            if extract:
                changed[EXTRACTION] = WANTED
            changed["revision"] = ended.revision
            changed["update_time"] = ended.update_time
            when += as_read(record, "revision", SORT_KEY)
            if not await self._write_end(record, changed, indexed, when):
                raise ConflictError
            return Ended(ended, indexed is not None and indexed.solved_truncated)

        return await compare_and_set("episode", episode_id, attempt)

    async def _write_end(
        self, record: Record, changed: Payload, indexed: Indexed | None, when: list[Condition]
    ) -> bool:
        """Write an end, in one write with the vectors of its summary if it has one."""
        if indexed is None:
            return await self._store.update(
                EPISODES, record.namespace, record.id, set=changed, when=when
            )
        latest = (await self._record(record.namespace, record.payload["episode_id"])).payload
        ended = Record(record.id, record.namespace, {**latest, **changed}, indexed.vectors)
        return await self._store.replace(EPISODES, ended, [*when, *unrevised_as(latest)])

    async def _count_for_end(
        self, namespace: str, episode_id: str
    ) -> tuple[int, Payload, list[Condition]]:
        """The events that an end counts, what it writes beside them, what must hold by then."""
        if not self._fence.needed:
            return await self._log.last_sequence(namespace, episode_id), {}, []
        epoch, count = await self._fence.replace_writer(namespace, episode_id)
        return count, base_payload(epoch, count), [Equals(WRITER_EPOCH, epoch)]

    # --- reading ------------------------------------------------------------------------------

    async def get(self, namespace: str, episode_id: str) -> Episode:
        """One episode. Raises EpisodeNotFoundError."""
        return await self.read(await self._record(namespace, episode_id))

    async def read(self, record: Record) -> Episode:
        """The episode of a record, with its events counted while it runs."""
        episode = episode_from_record(record)
        if episode.status is not EpisodeStatus.RUNNING:
            return episode
        await asyncio.sleep(0)  # a page of running ones must not hold all other calls
        writer = self._active_streams.current(record.namespace, episode.episode_id)
        known = writer.last if writer else 0
        committed = committed_prefix_of(record.payload)
        count = await self._log.last_sequence(
            record.namespace, episode.episode_id, known, committed
        )
        return replace(episode, event_count=count)

    async def list_page(
        self,
        namespace: str,
        requested: EpisodeFilter,
        size: int,
        after: Position | None,
        fits: Fits[Episode] = any_size,
    ) -> EpisodePage:
        """A page, newest first."""

        async def read(records: Sequence[Record]) -> list[Episode]:
            return [await self.read(record) for record in records]

        where = episode_conditions(requested)
        found = await read_page(self._store, EPISODES, namespace, where, size, after, read, fits)
        return EpisodePage(*found)

    async def list_events(
        self,
        namespace: str,
        episode_id: str,
        after: int,
        size: int,
        fits: Fits[EpisodeEvent] = any_size,
    ) -> EventPage:
        """A page of events in order. Raises EpisodeNotFoundError."""
        record = await self._record(namespace, episode_id)
        episode, committed = episode_from_record(record), committed_prefix_of(record.payload)
        found: list[EpisodeEvent] = []
        for limit in pieces(size):
            most = limit
            if episode.status.ended:  # what came too late behind the end is no event of it
                most = min(limit, max(0, episode.event_count - after))
            events = await self._log.read(namespace, episode_id, after, most, committed)
            for event in events:
                if len(found) == size or not fits(event):
                    return EventPage(found, after)
                found.append(event)
                after = event.sequence
            if len(events) < limit:
                break
        return EventPage(found, None)

    async def _record(self, namespace: str, episode_id: str) -> Record:
        point = episode_point(namespace, episode_id)
        found = await self._store.get(EPISODES, namespace, [point])
        if point not in found:
            raise EpisodeNotFoundError(namespace, episode_id)
        return found[point]
