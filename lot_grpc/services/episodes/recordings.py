"""Cleans up after calls that died while recording an episode, before the episode was written."""

from __future__ import annotations

from lot_grpc.kernel.idempotency import DONE, REQUEST_KIND
from lot_grpc.kernel.intents import recover
from lot_grpc.ports import AllOf, Equals, Record, VectorStore
from lot_grpc.services.episodes.event_log import EventLog
from lot_grpc.services.records.collections import EPISODES, REQUESTS
from lot_grpc.services.records.episodes import episode_point

RECORD_METHOD = "RecordEpisode"


class RecordingRecovery:
    """Deletes the events that such a call left behind."""

    def __init__(self, store: VectorStore, log: EventLog) -> None:
        self._store = store
        self._log = log

    async def roll_forward(self, before: int) -> int:
        """Clean up after calls that began before a time; return how many there were."""
        dropped = 0

        async def drop(row: Record) -> None:
            nonlocal dropped
            if row.payload["method"] == RECORD_METHOD:
                dropped += await self._drop(row.namespace, row.id, row.payload["plan"])

        open_requests = AllOf((Equals("kind", REQUEST_KIND), Equals(DONE, False)))
        keys = ("method", "plan", "begin_time")
        given = (self._store, REQUESTS, open_requests, drop)
        await recover(*given, before=before, begun="begin_time", payload=keys)
        return dropped

    async def _drop(self, namespace: str, request: str, plan: dict[str, str]) -> bool:
        episode_id = plan["episode_id"]
        point = episode_point(namespace, episode_id)
        if await self._store.get(EPISODES, namespace, [point]):
            return False
        last = await self._log.last_sequence(namespace, episode_id)
        dropped = bool(last and await self._log.remove(namespace, episode_id, 1, last))
        await self._store.update(REQUESTS, namespace, request, set={"kind": "dropped"})
        return dropped
