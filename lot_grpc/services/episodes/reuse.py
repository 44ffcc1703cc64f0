"""Counts how often an episode was used by others, once for each end that names it.

The report is part of the end: the same write names the episodes and marks them as not yet counted.
Then it is applied to each of them once (``kernel.apply_once``). Counting is not an edit:
``update_time`` and ``etag`` of the used episode stay the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from lot_grpc.domain.errors import ContentionError, EpisodeNotFoundError, invalid
from lot_grpc.kernel.apply_once import Target, apply_once
from lot_grpc.kernel.compare_and_set import update_as_read
from lot_grpc.kernel.intents import Journal, Mark
from lot_grpc.ports import IdIn, Record, VectorStore
from lot_grpc.services.records.collections import EPISODES, SORT_KEY
from lot_grpc.services.records.episodes import (
    DONE,
    PENDING_REUSES,
    REQUESTED,
    REUSE,
    REUSE_REVISION,
    REUSED_COUNT,
    USED_EPISODES,
    episode_point,
)


class ReuseCounter:
    """Checks and counts the episodes that an end names as used."""

    def __init__(self, store: VectorStore) -> None:
        self._store = store
        self._reports = Journal(
            store, EPISODES, Mark(REUSE, REQUESTED, DONE), begun="update_time", ids_return=True
        )

    async def require(
        self, namespace: str, used: Sequence[str], episode_id: str, path: str = ""
    ) -> None:
        """Raise if an episode named as used does not exist, or is the one that names it.

        ``path``: the prefix of the end's fields in the request, such as ``episode.``. Raises
        EpisodeNotFoundError, RequestInvalidError.
        """
        if not used:
            return
        points = [episode_point(namespace, one) for one in used]
        found = await self._store.scroll(
            EPISODES, namespace, [IdIn(tuple(points))], limit=len(points), payload=False
        )
        there = {record.id for record in found}
        for number, (one, point) in enumerate(zip(used, points, strict=True)):
            field = f"{path}used_episode_ids[{number}]"
            if one == episode_id:
                raise invalid(
                    field,
                    "used_episode_ids.itself",
                    "an episode cannot reuse itself; omit it",
                )
            if point not in there:
                hint = f"it is named in {field}; omit it. Nothing was written"
                raise EpisodeNotFoundError(namespace, one, hint, field)

    async def count(self, namespace: str, episode_id: str) -> None:
        """Count what an ended episode used, unless that was done already.

        Deleted episodes are skipped. Raises ContentionError, after which a retry of the end, or the
        sweep, does the rest.
        """
        point = episode_point(namespace, episode_id)
        record = (await self._store.get(EPISODES, namespace, [point])).get(point)
        if record is not None:
            await self.count_of(record)

    async def count_of(self, record: Record) -> None:
        """``count`` for a record read with ``REUSE``, ``USED_EPISODES`` and its sort key."""
        if record.payload.get(REUSE) != REQUESTED:
            return
        report = self._reports.name(record)
        for used in record.payload[USED_EPISODES]:
            await self._take_in(record.namespace, used, report)
        await self._reports.finish(record.namespace, report)

    async def roll_forward(self, before: int) -> int:
        """Count what is pending of episodes that ended before a time; return how many episodes.

        One that many others count concurrently is left for later.
        """
        keys = (REUSE, USED_EPISODES, SORT_KEY, "update_time")
        return await self._reports.recover(
            before, self.count_of, payload=keys, leaving=(ContentionError,)
        )

    async def _take_in(self, namespace: str, used: str, report: str) -> None:
        async def count(record: Record | None, pending: list[str]) -> Record | None:
            if record is None:  # it was deleted in the meantime
                return None
            changed = {
                REUSED_COUNT: record.payload.get(REUSED_COUNT, 0) + 1,
                PENDING_REUSES: pending,
            }
            return await update_as_read(self._store, EPISODES, record, changed, REUSE_REVISION)

        point = episode_point(namespace, used)
        target = Target("episode", used, namespace, EPISODES, point, PENDING_REUSES)
        await apply_once(self._store, self._reports, report, target, count)
