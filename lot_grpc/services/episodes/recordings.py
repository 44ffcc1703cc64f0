"""Episodes that were recorded in one call which died before it got to the episode itself."""

from __future__ import annotations

from lot_grpc.kernel.idempotency import REQUEST_KIND
from lot_grpc.ports import Equals, VectorStore
from lot_grpc.services.episodes.episodes import RECORD_METHOD
from lot_grpc.services.episodes.event_log import EventLog
from lot_grpc.services.records.collections import EPISODES, REQUESTS
from lot_grpc.services.records.episodes import episode_point

_AT_ONCE = 10_000


class RecordingRecovery:
    """Deletes the events that such a call left."""

    def __init__(self, store: VectorStore, log: EventLog) -> None:
        self._store = store
        self._log = log

    async def roll_forward(self, before: int) -> int:
        """Delete what calls that began before a time left; say of how many."""
        rows = await self._store.scroll(
            REQUESTS,
            None,
            [Equals("kind", REQUEST_KIND), Equals("done", False)],
            limit=_AT_ONCE,
            payload=("method", "plan", "begin_time"),
        )
        dropped = 0
        for row in rows:
            if row.payload["method"] == RECORD_METHOD and row.payload["begin_time"] <= before:
                dropped += await self._drop(row.namespace, row.id, row.payload["plan"])
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
