"""Counting how often an episode was used by others, once for each end that names it.

The report is part of the end: in one write it names the episodes, and says that they are still to
be counted. Then each of them takes the report in by a compare-and-set that adds one and remembers
the report; then the ended episode is marked as counted; the next count of an episode drops the
reports that are settled so, or whose episode is gone. From wherever it stopped, doing it again is
safe (``services.outcomes.facts`` has the same protocol). The count is no edit: ``update_time`` and
``etag`` of the used episode stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from lot_grpc.domain.errors import ContentionError, EpisodeNotFoundError, invalid
from lot_grpc.ports import Equals, IdIn, Missing, Record, VectorStore
from lot_grpc.services.records.collections import EPISODES, SORT_KEY
from lot_grpc.services.records.episodes import (
    DONE,
    REUSE,
    REUSE_REVISION,
    REUSED_COUNT,
    UNSETTLED_REUSES,
    USED_EPISODES,
    WANTED,
    episode_point,
)
from lot_grpc.services.time_slice import pause_before_retry

_TRIES = 50
_AT_ONCE = 1_000


class ReuseCounter:
    """Checks and counts."""

    def __init__(self, store: VectorStore) -> None:
        self._store = store

    async def require(
        self, namespace: str, used: Sequence[str], episode_id: str, path: str = ""
    ) -> None:
        """Raise if an episode that is named as used is not there, or is the one that names it.

        ``path`` is where the end lies in the request, as ``episode.``. Raises EpisodeNotFoundError,
        RequestInvalidError.
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
        """Count what an ended episode used, unless that was done.

        What was deleted since is left out. Raises ContentionError, after which a retry of the end,
        or the sweep, does the rest.
        """
        point = episode_point(namespace, episode_id)
        record = (await self._store.get(EPISODES, namespace, [point])).get(point)
        if record is not None:
            await self.count_of(record)

    async def count_of(self, record: Record) -> None:
        """``count`` of an episode that was read with ``REUSE``, ``USED_EPISODES``, its sort key."""
        if record.payload.get(REUSE) != WANTED:
            return
        for used in record.payload[USED_EPISODES]:
            await self._take_in(record.namespace, used, _report(record))
        await self._store.update(
            EPISODES,
            record.namespace,
            record.id,
            set={REUSE: DONE},
            when=[Equals(SORT_KEY, record.payload[SORT_KEY])],
        )

    async def roll_forward(self, before: int) -> int:
        """Count what episodes used that ended before a time and is open; return of how many.

        One that many others count at the same moment is left for later.
        """
        rows = await self._store.scroll(
            EPISODES,
            None,
            [Equals(REUSE, WANTED)],
            limit=_AT_ONCE,
            payload=(REUSE, USED_EPISODES, SORT_KEY, "update_time"),
        )
        counted = 0
        for row in rows:
            if row.payload["update_time"] <= before:
                with suppress(ContentionError):
                    await self.count_of(row)
                    counted += 1
        return counted

    async def _take_in(self, namespace: str, used: str, report: str) -> None:
        point = episode_point(namespace, used)
        for attempt in range(_TRIES):
            record = (await self._store.get(EPISODES, namespace, [point])).get(point)
            if record is None:  # it was deleted since
                return
            taken: list[str] = record.payload.get(UNSETTLED_REUSES, [])
            # After the record was read: what was dropped from it since has changed its revision.
            settled = await self._settled(namespace, [*taken, report])
            if report in taken or report in settled:
                return
            revision = record.payload.get(REUSE_REVISION, 0)
            as_seen = Equals(REUSE_REVISION, revision) if revision else Missing(REUSE_REVISION)
            if await self._store.update(
                EPISODES,
                namespace,
                point,
                set={
                    REUSED_COUNT: record.payload.get(REUSED_COUNT, 0) + 1,
                    REUSE_REVISION: revision + 1,
                    UNSETTLED_REUSES: [*(one for one in taken if one not in settled), report],
                },
                when=[as_seen, Equals(SORT_KEY, record.payload[SORT_KEY])],
            ):
                return
            await pause_before_retry(attempt)
        raise ContentionError("episode", used)

    async def _settled(self, namespace: str, reports: Sequence[str]) -> set[str]:
        """Those of the reports that all took in, or whose episode is gone."""
        points = tuple({report.partition("/")[0] for report in reports})
        rows = await self._store.scroll(
            EPISODES, namespace, [IdIn(points)], limit=len(points), payload=(REUSE, SORT_KEY)
        )
        unsettled = {_report(row) for row in rows if row.payload.get(REUSE) == WANTED}
        return set(reports) - unsettled


def _report(record: Record) -> str:
    """The name of an episode's report. Another episode that takes its id has another."""
    return f"{record.id}/{record.payload[SORT_KEY]}"
