"""Ends episodes, once and with their summary."""

from __future__ import annotations

from lot_grpc.domain.episode import EpisodeEnd, search_text
from lot_grpc.domain.errors import EpisodeEndedError
from lot_grpc.domain.ids import content_hash
from lot_grpc.kernel.compare_and_set import ConflictError, as_read, compare_and_set
from lot_grpc.kernel.idempotency import CREATE_TIME, IdempotencyKey
from lot_grpc.ports import Condition, Payload, Record
from lot_grpc.services.episodes.active_streams import ActiveStreams
from lot_grpc.services.episodes.drafts import Ended
from lot_grpc.services.episodes.episodes import Episodes
from lot_grpc.services.episodes.fence import Fence
from lot_grpc.services.episodes.notifier import EpisodeNotifier
from lot_grpc.services.episodes.reuse import ReuseCounter
from lot_grpc.services.indexer import Indexed
from lot_grpc.services.records.collections import EPISODES
from lot_grpc.services.records.episodes import (
    EXTRACTION,
    REQUESTED,
    end_hash,
    end_payload,
    episode_from_record,
    unrevised_as,
)
from lot_grpc.services.runtime import Runtime
from lot_grpc.work import follow_up


class EpisodeEnder:
    """Ends episodes."""

    def __init__(
        self,
        runtime: Runtime,
        episodes: Episodes,
        active_streams: ActiveStreams,
        fence: Fence,
        reuse: ReuseCounter,
        notifier: EpisodeNotifier,
    ) -> None:
        self._store = runtime.store
        self._indexer = runtime.indexer
        self._time = runtime.time
        self._idempotency = runtime.idempotency
        self._episodes = episodes
        self._active_streams = active_streams
        self._fence = fence
        self._reuse = reuse
        self._notifier = notifier

    async def end(
        self,
        namespace: str,
        episode_id: str,
        end: EpisodeEnd,
        request_id: str,
        *,
        extract: bool = False,
    ) -> Ended:
        """End an episode and close its stream. Repeating the same end gives the same answer.

        ``extract``: a request to extract patterns is stored with the end
        (``episode_extraction``).

        Raises EpisodeNotFoundError, EpisodeEndedError.
        """
        end.check()
        plan = {"episode_id": episode_id}
        content = content_hash([episode_id, end_hash(end), extract])
        key = IdempotencyKey(namespace, "EndEpisode", request_id, content, plan)
        if end.used_episode_ids and not await self._idempotency.find(key):
            episode = episode_from_record(await self._episodes.read_record(namespace, episode_id))
            if not episode.status.ended:  # on a repeat it may be deleted since
                await self._reuse.require(namespace, end.used_episode_ids, episode_id)
        entry = await self._idempotency.begin(key)
        await self._episodes.refuse_repeat(entry, episode_id)
        async with self._active_streams.turn(namespace, episode_id):
            ended = await self._end(namespace, episode_id, end, extract=extract)
            self._notifier.notify(namespace, episode_id)
            writer = self._active_streams.current(namespace, episode_id)
            if writer is not None:
                writer.stop(EpisodeEndedError(episode_id, end.status.name, "its stream is closed"))
        if end.used_episode_ids:
            with follow_up():
                await self._reuse.count(namespace, episode_id)
        if entry.result is None:
            await self._idempotency.finish(entry, {CREATE_TIME: ended.episode.create_time})
        return ended

    async def _end(
        self, namespace: str, episode_id: str, end: EpisodeEnd, *, extract: bool
    ) -> Ended:
        async def attempt() -> Ended:
            record = await self._episodes.read_record(namespace, episode_id)
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
                count, base, when = await self._fence.replace_for_end(namespace, episode_id)
            except EpisodeEndedError as error:  # another process was first: compare the ends
                raise ConflictError from error
            ended = episode.ended_by(end, count, now)
            changed = end_payload(end, ended.end_time or 0, count) | base
            if extract:
                changed[EXTRACTION] = REQUESTED
            changed["revision"] = ended.revision
            changed["update_time"] = ended.update_time
            when += as_read(record, "revision")
            if not await self._write_end(record, changed, indexed, when):
                raise ConflictError
            return Ended(ended, indexed is not None and indexed.solved_truncated)

        return await compare_and_set("episode", episode_id, attempt)

    async def _write_end(
        self, record: Record, changed: Payload, indexed: Indexed | None, when: list[Condition]
    ) -> bool:
        """Write an end, together with the vectors of its summary if it has one."""
        if indexed is None:
            return await self._store.update(
                EPISODES, record.namespace, record.id, set=changed, when=when
            )
        latest = (
            await self._episodes.read_record(record.namespace, record.payload["episode_id"])
        ).payload
        ended = Record(record.id, record.namespace, {**latest, **changed}, indexed.vectors)
        with follow_up():  # an episode can always be ended
            return await self._store.replace(EPISODES, ended, [*when, *unrevised_as(latest)])
