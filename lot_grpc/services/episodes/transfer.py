"""What goes on beside the import of episodes: one that is replaced loses its events."""

from __future__ import annotations

from lot_grpc.domain.errors import EpisodeStreamOpenError
from lot_grpc.ports import Record
from lot_grpc.services.episodes.active_streams import ActiveStreams
from lot_grpc.services.episodes.event_log import EventLog
from lot_grpc.services.operations import TransferHooks
from lot_grpc.services.records.episodes import WRITER_UNTIL
from lot_grpc.services.time_source import TimeSource


class EpisodeTransfer(TransferHooks):
    """Deletes the events of episodes that are replaced."""

    def __init__(
        self, time_source: TimeSource, log: EventLog, active_streams: ActiveStreams
    ) -> None:
        self._time = time_source
        self._log = log
        self._active_streams = active_streams

    async def before_replace(self, stored: Record) -> None:
        """Raises EpisodeStreamOpenError for an episode that somebody records."""
        namespace, episode_id = stored.namespace, stored.payload["episode_id"]
        until = stored.payload.get(WRITER_UNTIL, 0)
        open_here = self._active_streams.current(namespace, episode_id) is not None
        if open_here or until > self._time.now():
            raise EpisodeStreamOpenError(
                episode_id, "close it, then import again; records before it are stored"
            )
        last = await self._log.last_sequence(namespace, episode_id)
        await self._log.remove(namespace, episode_id, 1, last)
