"""Repeats: what a ``request_id`` stands for, so that a retry never does a thing twice.

One insert-only row a request, with the hash of its content and the ids it will write; then the
write, by those ids; then the row is marked done. The same request again finishes or repeats the
same write; with other content it is refused. Rows live for 24 h.

An id is free again once its record is gone. So the plan of a call that uses a record, or the result
of one that creates it, also has the time at which that record was created.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lot_grpc.domain.errors import RequestIdReusedError
from lot_grpc.domain.ids import point_id
from lot_grpc.ports import EXPIRES_KEY, Equals, Payload, Record, VectorStore
from lot_grpc.services.records.collections import REQUESTS
from lot_grpc.services.time_source import TimeSource

LIFE = 24 * 3600 * 1_000_000
"""How long a request id is remembered, in microseconds."""

REQUEST_KIND = "request"

CREATE_TIME = "create_time"
"""In a plan or a result: when the record that the request is about was created."""

CREATE_TIMES = "create_times"
"""The same of several records, by id."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A request to enter: who asks for what, and the ids it will write if it is new."""

    namespace: str
    method: str
    request_id: str
    content_hash: str
    plan: Mapping[str, Any]

    @property
    def point(self) -> str:
        """Where its row lies."""
        return point_id(self.namespace, "request", self.method, self.request_id)


@dataclass(frozen=True, slots=True)
class Entry:
    """A row: the plan to follow (of the first try), and the result if it was done.

    ``first`` is False when the row was there before this call. ``plan_number`` counts the plans.
    """

    namespace: str
    point: str
    plan: Mapping[str, Any]
    result: Mapping[str, Any] | None
    create_time: int
    first: bool
    plan_number: int = 0

    def is_about(self, record: Record) -> bool:
        """Whether a record is the one of the first try, and not another that took its id since."""
        known = {**self.plan, **(self.result or {})}
        created: int = record.payload[CREATE_TIME]
        return bool(known.get(CREATE_TIME, created) == created)

    def about(self, records: Mapping[str, Record]) -> dict[str, Record]:
        """Of several records, by id, those of the first try; see ``is_about``."""
        known = {**self.plan, **(self.result or {})}.get(CREATE_TIMES, {})
        created = create_times(records).items()
        return {one: records[one] for one, time in created if known.get(one, time) == time}


class Ledger:
    """The rows of requests."""

    def __init__(self, store: VectorStore, time_source: TimeSource) -> None:
        self._store = store
        self._time = time_source

    async def begin(self, ask: Ask) -> Entry:
        """Enter a request, or find it again. Raises RequestIdReusedError."""
        entry = (await self.begin_many([ask]))[0]
        if isinstance(entry, RequestIdReusedError):
            raise entry
        return entry

    async def find(self, ask: Ask) -> Entry | None:
        """The row of a request, if it was entered before. Raises RequestIdReusedError."""
        stored = await self._store.get(REQUESTS, ask.namespace, [ask.point])
        if ask.point not in stored:
            return None
        entry = self._entry(ask, stored, set(), 0)
        if isinstance(entry, RequestIdReusedError):
            raise entry
        return entry

    async def begin_many(self, asks: Sequence[Ask]) -> list[Entry | RequestIdReusedError]:
        """Enter several requests of one namespace at once, one result each, in order."""
        if not asks:
            return []
        now = self._time.now()
        rows: dict[str, Record] = {}
        for ask in asks:
            rows.setdefault(ask.point, Record(ask.point, ask.namespace, _row(ask, now)))
        inserted = await self._store.insert(REQUESTS, list(rows.values()))
        old = [point for point in rows if point not in inserted]
        stored = await self._store.get(REQUESTS, asks[0].namespace, old) if old else {}
        entries = []
        for ask in asks:
            entries.append(self._entry(ask, stored, inserted, now))
            if ask.point in inserted:  # named again in the same call, it is a repeat
                inserted.discard(ask.point)
                stored[ask.point] = rows[ask.point]
        return entries

    def _entry(
        self, ask: Ask, stored: Mapping[str, Record], inserted: set[str], now: int
    ) -> Entry | RequestIdReusedError:
        if ask.point in inserted or ask.point not in stored:
            return Entry(ask.namespace, ask.point, ask.plan, None, now, first=True)
        if stored[ask.point].payload["content_hash"] != ask.content_hash:
            return RequestIdReusedError(ask.request_id, ask.method)
        return _entry(stored[ask.point])

    async def reopen(self, entry: Entry) -> None:
        """Begin a request once more that a sweep may have given up, or would soon."""
        await self._store.update(
            REQUESTS,
            entry.namespace,
            entry.point,
            set={"kind": REQUEST_KIND, "begin_time": self._time.now()},
        )

    async def replan(self, entry: Entry, plan: Mapping[str, Any]) -> Entry:
        """Write down another plan before following it.

        The answer has the plan that stands: another try of the request may have been first.
        """
        number = entry.plan_number + 1
        if not await self._store.update(
            REQUESTS,
            entry.namespace,
            entry.point,
            set={"plan": dict(plan), "plan_number": number},
            when=[Equals("plan_number", entry.plan_number)],
        ):
            found = await self._store.get(REQUESTS, entry.namespace, [entry.point])
            if entry.point in found:
                return _entry(found[entry.point])
        return replace(entry, plan=plan, plan_number=number)

    async def finish(self, entry: Entry, result: Mapping[str, Any]) -> None:
        """Mark a request done. A repeat answers from ``result``."""
        await self._store.update(
            REQUESTS, entry.namespace, entry.point, set={"done": True, "result": dict(result)}
        )


def create_times(records: Mapping[str, Record]) -> dict[str, int]:
    """When each of the records was created, by the same id."""
    return {one: record.payload[CREATE_TIME] for one, record in records.items()}


def _row(ask: Ask, now: int) -> Payload:
    return {
        "kind": REQUEST_KIND,
        "method": ask.method,
        "request_id": ask.request_id,
        "content_hash": ask.content_hash,
        "plan": dict(ask.plan),
        "plan_number": 0,
        "result": {},
        "done": False,
        "create_time": now,
        "begin_time": now,
        EXPIRES_KEY: now + LIFE,
    }


def _entry(row: Record) -> Entry:
    payload = row.payload
    return Entry(
        row.namespace,
        row.id,
        payload["plan"],
        payload["result"] if payload["done"] else None,
        payload["create_time"],
        first=False,
        plan_number=payload["plan_number"],
    )
