"""Reads failed episodes with their last events in bulk.

Only the last few events are fetched, by number. If neither they nor the end contain an error, some
more are read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from lot_grpc.domain.episode import EpisodeStatus
from lot_grpc.domain.error_text.headline import headline_of
from lot_grpc.domain.extraction.digest import ErrorSeen, Step, error_seen, step_of
from lot_grpc.domain.failures.failure import (
    Failure,
    error_of,
    failed_after,
    signature_or_none,
    tools_of,
)
from lot_grpc.domain.query import EpisodeFilter
from lot_grpc.ports import Condition, Equals, Record, VectorStore
from lot_grpc.services.records.collections import END_TIME, EPISODES, EVENTS
from lot_grpc.services.records.episodes import (
    WRITER_BASE,
    WRITER_BASE_EPOCH,
    committed_prefix_of,
    episode_conditions,
    event_from_record,
    event_point,
)
from lot_grpc.services.scanning import scan
from lot_grpc.services.time_slice import TimeSlice

MOST_FAILURES: Final = 10_000
"""The newest failures that are read: as many as a call can read within a minute."""

LAST_EVENTS: Final = 6
"""Last events read of each episode."""

MORE_EVENTS: Final = 94
"""Events read before those if no error was found yet."""

_FAILED: Final = Equals("status", EpisodeStatus.FAILED.value)
_READ = (
    "episode_id",
    "event_count",
    "error_type",
    "error_message",
    "error_patterns",
    "tools_used",
    WRITER_BASE,
    WRITER_BASE_EPOCH,
)
_BATCH = 100
_LONG = 4_096
"""A message of this many characters or more is parsed in a thread and reduced to its headline: ten
thousand stack traces of 64 KiB would not fit in memory."""


@dataclass(slots=True)
class _Ended:
    """A failed episode while it is read: ``steps`` are its last ones, after number ``first``."""

    record: Record
    first: int
    steps: list[Step]

    @property
    def ended_by(self) -> ErrorSeen | None:
        """The error that its end reports."""
        payload = self.record.payload
        return error_seen(payload.get("error_type", ""), payload.get("error_message", ""))

    @property
    def untold(self) -> bool:
        """Whether no error was found yet and there are more events."""
        return (
            self.first > 0
            and self.ended_by is None
            and all(step.error is None for step in self.steps)
        )


def failed_where(criteria: EpisodeFilter) -> list[Condition]:
    """Conditions for failed episodes that match a filter."""
    return [_FAILED, *episode_conditions(criteria)]


class FailedEpisodeReader:
    """Reads failed episodes, with enough events to find the error."""

    def __init__(self, store: VectorStore) -> None:
        self._store = store

    async def newest(self, namespace: str, criteria: EpisodeFilter) -> list[Failure]:
        """The failures that match a filter, the last to end first."""
        failures: list[Failure] = []
        batch: list[Record] = []
        count = 0
        async for record in scan(
            self._store,
            EPISODES,
            namespace,
            failed_where(criteria),
            payload=_READ,
            descending=True,
            key=END_TIME,
            batch=_BATCH,
        ):
            batch.append(record)
            count += 1
            if len(batch) == _BATCH:
                failures += await self._read(namespace, batch)
                batch = []
            if count == MOST_FAILURES:
                break
        return [*failures, *await self._read(namespace, batch)]

    async def _read(self, namespace: str, records: Sequence[Record]) -> list[Failure]:
        ended = []
        for record in records:
            count = record.payload.get("event_count", 0)
            ended.append(_Ended(record, count, []))
        await self._read_steps(namespace, ended, LAST_EVENTS)
        await self._read_steps(namespace, [one for one in ended if one.untold], MORE_EVENTS)
        failures, time_slice = [], TimeSlice(rest=1.0)
        for one in ended:
            failures.append(await _failure(one))
            await time_slice.give_way()
        return failures

    async def _read_steps(self, namespace: str, ended: Sequence[_Ended], most: int) -> None:
        """Prepend up to ``most`` earlier steps to those that each has."""
        points = {
            one.record.id: [
                event_point(namespace, one.record.payload["episode_id"], number)
                for number in range(max(0, one.first - most) + 1, one.first + 1)
            ]
            for one in ended
        }
        points_to_read = [point for theirs in points.values() for point in theirs]
        found: dict[str, Record] = {}
        step = _BATCH * LAST_EVENTS
        for at in range(0, len(points_to_read), step):
            found |= await self._store.get(EVENTS, namespace, points_to_read[at : at + step])
        time_slice = TimeSlice(rest=1.0)
        for one in ended:
            committed = committed_prefix_of(one.record.payload)
            there = [found[point] for point in points[one.record.id] if point in found]
            standing = [record for record in there if committed.holds(record.payload)]
            events = [event_from_record(record) for record in standing]
            one.steps[:0] = [step_of(event.event_type, event.data or b"") for event in events]
            one.first = max(0, one.first - most)
            await time_slice.give_way()


async def _failure(one: _Ended) -> Failure:
    payload = one.record.payload
    error = error_of(one.ended_by, one.steps, payload.get("error_patterns", ()))
    after = failed_after(one.steps, error)
    if len(error.message) > _LONG:
        signature, error = await asyncio.to_thread(_of_long, error)
    else:
        signature = signature_or_none(error)
    return Failure(
        episode_id=payload["episode_id"],
        end_time=payload[END_TIME],
        error=error,
        signature=signature,
        after=after,
        tools=tools_of(payload.get("tools_used", ()), one.steps),
    )


def _of_long(error: ErrorSeen) -> tuple[str, ErrorSeen]:
    """The signature of an error with a long message, and the error in one line."""
    found = headline_of(error.message)
    line = f"{found.type}: {found.text}" if found.type and found.text else found.type or found.text
    return signature_or_none(error), ErrorSeen(error.type, line)
