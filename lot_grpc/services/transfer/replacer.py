"""What goes with a thing that an import replaces: what hung on it was another thing's."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from lot_grpc.domain.errors import EpisodeStreamOpenError
from lot_grpc.ports import Equals, Record, VectorStore
from lot_grpc.services.episodes.active_streams import ActiveStreams
from lot_grpc.services.episodes.event_log import EventLog
from lot_grpc.services.outcomes.pending_outcomes import forget_logs
from lot_grpc.services.records.collections import (
    EPISODES,
    ERROR_SOLUTIONS,
    OUTCOMES,
    PATTERNS,
    PREFERENCE_REVISIONS,
    PREFERENCES,
    SESSION_PARTS,
    SESSIONS,
    SORT_KEY,
)
from lot_grpc.services.records.episodes import WRITER_UNTIL
from lot_grpc.services.records.preferences import revisions_of
from lot_grpc.services.records.sessions import parts_of
from lot_grpc.services.time_source import TimeSource
from lot_grpc.services.transfer.kinds import Kind


class RecordReplacer:
    """Deletes what hangs on a thing, before the thing itself is replaced.

    In this order a death in between leaves the old thing with less history, and the import that is
    sent again meets it, and replaces it.
    """

    def __init__(
        self, store: VectorStore, time_source: TimeSource, log: EventLog, writers: ActiveStreams
    ) -> None:
        self._store = store
        self._time = time_source
        self._log = log
        self._writers = writers
        self._drops: Mapping[str, Callable[[Record], Awaitable[None]]] = {
            PATTERNS: self._logs_of_pattern,
            ERROR_SOLUTIONS: self._outcomes_of_solution,
            EPISODES: self._events,
            PREFERENCES: self._revisions,
            SESSIONS: self._parts,
        }

    async def drop_what_hangs_on(self, kind: Kind, stored: Record) -> None:
        """Raises EpisodeStreamOpenError for an episode that somebody records."""
        if kind.collection in self._drops:
            await self._drops[kind.collection](stored)

    async def _logs_of_pattern(self, stored: Record) -> None:
        theirs = [Equals("pattern_id", stored.payload["pattern_id"])]
        await forget_logs(self._store, stored.namespace, theirs)

    async def _outcomes_of_solution(self, stored: Record) -> None:
        theirs = [Equals("error_solution_id", stored.payload["error_solution_id"])]
        await self._store.delete(OUTCOMES, stored.namespace, theirs)

    async def _events(self, stored: Record) -> None:
        namespace, episode_id = stored.namespace, stored.payload["episode_id"]
        until = stored.payload.get(WRITER_UNTIL, 0)
        open_here = self._writers.current(namespace, episode_id) is not None
        if open_here or until > self._time.now():
            raise EpisodeStreamOpenError(
                episode_id, "close it, then import again; records before it are stored"
            )
        last = await self._log.last_sequence(namespace, episode_id)
        await self._log.remove(namespace, episode_id, 1, last)

    async def _revisions(self, stored: Record) -> None:
        await self._store.delete(PREFERENCE_REVISIONS, stored.namespace, revisions_of(stored))

    async def _parts(self, stored: Record) -> None:
        theirs = parts_of(stored.payload["session_id"], (stored.payload[SORT_KEY],))
        await self._store.delete(SESSION_PARTS, stored.namespace, theirs)
