"""Creates episodes: starts one, or records a finished one as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
from lot_grpc.domain.errors import EpisodeIdInUseError, EventConflictError, invalid
from lot_grpc.domain.ids import new_id
from lot_grpc.domain.quota import Usage
from lot_grpc.kernel.idempotency import CREATE_TIME, IdempotencyKey, IdempotencyRecord
from lot_grpc.ports import Payload
from lot_grpc.services.episodes.drafts import EpisodeDraft, Started
from lot_grpc.services.episodes.episodes import Episodes
from lot_grpc.services.episodes.event_log import EventLog
from lot_grpc.services.episodes.recordings import RECORD_METHOD
from lot_grpc.services.episodes.reuse import ReuseCounter
from lot_grpc.services.indexer import Indexed
from lot_grpc.services.records.collections import EPISODES, EVENTS
from lot_grpc.services.records.episodes import (
    EXTRACTION,
    REQUESTED,
    base_payload,
    end_hash,
    episode_record,
    event_records,
    start_hash,
)
from lot_grpc.services.runtime import Runtime


class EpisodeCreator:
    """Starts and records episodes."""

    def __init__(
        self, runtime: Runtime, episodes: Episodes, log: EventLog, reuse: ReuseCounter
    ) -> None:
        self._store = runtime.store
        self._indexer = runtime.indexer
        self._time = runtime.time
        self._idempotency = runtime.idempotency
        self._episodes = episodes
        self._log = log
        self._reuse = reuse
        self._quotas = runtime.stack.quotas

    async def start(self, namespace: str, draft: EpisodeDraft) -> Started:
        """Start an episode. Raises EpisodeIdInUseError, RequestIdReusedError."""
        entry, episode_id, epoch = await self._enter(
            namespace, draft, "StartEpisode", draft.request_id
        )
        if entry.result is not None:
            return Started(await self._episodes.get(namespace, episode_id), entry.result["created"])
        indexed = await self._indexer.vectors_of(search_text(draft.start, None))
        episode = replace(self._new(namespace, episode_id, draft.start), writer_epoch=epoch)
        started = await self._insert(episode, indexed, entry)
        await self._idempotency.finish(entry, _result(started))
        return started

    async def record(self, namespace: str, draft: EpisodeDraft) -> Started:
        """Record a finished episode: its events first, then the episode, which makes them visible.

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
        # Refuse everything that can be refused before anything is written.
        now = self._time.now()
        events = numbered(draft.events, now)
        begun = self._new(namespace, draft.episode_id, draft.start)
        if draft.start.start_time is None and end.end_time is not None:
            begun = replace(begun, start_time=min(now, end.end_time))
        ended = begun.ended_by(end, len(events), now, "episode.")
        await self._require_used_by_new(namespace, draft, end)
        # The row is the intent by which a sweep cleans up if this process dies midway.
        request_id = draft.request_id or new_id("once")
        entry, episode_id, _ = await self._enter(namespace, draft, RECORD_METHOD, request_id)
        if entry.result is not None:
            return Started(await self._episodes.get(namespace, episode_id), entry.result["created"])
        if not entry.first:
            await self._idempotency.reopen(entry)
        ended = replace(ended, episode_id=episode_id)
        indexed = await self._indexer.vectors_of(search_text(draft.start, end))
        await self._refuse_other(ended, end, len(events))

        async def measure() -> Usage:
            row = episode_record(ended, 0, {})
            growth = await self._quotas.growth(EPISODES, [row])
            for batch in _batches(events):
                records = event_records(namespace, episode_id, batch, 0)
                growth += await self._quotas.growth(EVENTS, records)
            return growth

        async with self._quotas.reserved(namespace, measure):
            try:
                for batch in _batches(events):
                    first = batch[0].sequence - 1
                    await self._log.append(namespace, episode_id, batch, first, 0)
            except EventConflictError as error:
                raise EpisodeIdInUseError(namespace, episode_id) from error
            recorded = await self._insert(ended, indexed, entry, extract=draft.extract)
            if end.used_episode_ids:
                await self._reuse.count(namespace, episode_id)
        await self._idempotency.finish(entry, _result(recorded))
        return recorded

    async def _enter(
        self, namespace: str, draft: EpisodeDraft, method: str, request_id: str
    ) -> tuple[IdempotencyRecord, str, int]:
        """The request, the id, and the epoch with which the episode begins.

        Neither what is left of a deleted episode of the id, nor what its writers still send, must
        be taken for this one's.
        """
        epoch = 0
        if draft.episode_id:
            epoch = await self._episodes.finish_open_delete(namespace, draft.episode_id)
        episode_id = draft.episode_id or new_id("e")
        key = IdempotencyKey(
            namespace, method, request_id, draft.hash(), {"episode_id": episode_id}
        )
        entry = await self._idempotency.begin(key)
        episode_id = entry.plan["episode_id"]
        await self._episodes.refuse_repeat(entry, episode_id)
        return entry, episode_id, epoch

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
        if episode.writer_epoch:
            record.payload.update(base_payload(episode.writer_epoch, 0))
        if extract:
            record.payload[EXTRACTION] = REQUESTED
        if record.id in await self._store.insert(EPISODES, [record]):
            return Started(
                episode,
                created=True,
                truncated=indexed.text_truncated,
                summary_truncated=indexed.solved_truncated,
            )
        stored = await self._episodes.read_record(episode.namespace, episode.episode_id)
        same = ("start_hash", "end_hash") if episode.end else ("start_hash",)
        if any(stored.payload.get(key) != record.payload.get(key) for key in same):
            raise EpisodeIdInUseError(episode.namespace, episode.episode_id)
        return Started(await self._episodes.read(stored), created=not entry.first)

    async def _require_used_by_new(
        self, namespace: str, draft: EpisodeDraft, end: EpisodeEnd
    ) -> None:
        """``ReuseCounter.require``, except on a repeat: what it used may be deleted since."""
        if not end.used_episode_ids:
            return
        if draft.request_id:
            key = IdempotencyKey(namespace, RECORD_METHOD, draft.request_id, draft.hash(), {})
            repeat = await self._idempotency.find(key) is not None
        else:
            named = draft.episode_id
            repeat = bool(named and await self._episodes.find_record(namespace, named))
        if not repeat:
            await self._reuse.require(namespace, end.used_episode_ids, draft.episode_id, "episode.")

    async def _refuse_other(self, episode: Episode, end: EpisodeEnd, count: int) -> None:
        """Refuse an id that another episode has, before any event is written."""
        stored = await self._episodes.find_record(episode.namespace, episode.episode_id)
        if stored is None:
            return
        payload = stored.payload
        ours = (start_hash(episode.start), end_hash(end), count)
        if ours != tuple(payload.get(key) for key in ("start_hash", "end_hash", "event_count")):
            raise EpisodeIdInUseError(episode.namespace, episode.episode_id)


def _batches(events: Sequence[EpisodeEvent]) -> Iterator[Sequence[EpisodeEvent]]:
    for first in range(0, len(events), 1000):
        yield events[first : first + 1000]


def _result(started: Started) -> Payload:
    return {"created": started.created, CREATE_TIME: started.episode.create_time}
