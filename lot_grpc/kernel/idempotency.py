"""Idempotency by ``request_id``, so that a retry never does anything twice.

Each request has one insert-only record with the hash of its content and a plan, such as the ids it
will write; then it writes as planned; then the record is marked done. A repeated request finishes
or repeats the same write; with other content it is refused. Records live for 24 h.

An id belongs to its principal: of two that use the same one, neither finds the other's request.
Those that the server makes itself (``own_request_id``) belong to nobody.

An id is free again once its record is gone. So the plan of a request that uses a record, and the
result of one that creates it, include the creation time of that record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lot_grpc.domain.errors import RequestIdReusedError
from lot_grpc.domain.ids import OWN_PREFIX, REQUEST_ID_LIFE, point_id
from lot_grpc.ports import EXPIRES_KEY, Clock, Equals, Payload, Record, VectorStore
from lot_grpc.work import current_caller

REQUESTS = "requests"
"""The collection."""

DONE = "done"

REQUEST_KIND = "request"

CREATE_TIME = "create_time"
"""In a plan or a result: when the record that the request is about was created."""

CREATE_TIMES = "create_times"
"""The same of several records, by id."""


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """A request: its namespace, method and content, and the plan to follow if it is new."""

    namespace: str
    method: str
    request_id: str
    content_hash: str
    plan: Mapping[str, Any]

    @property
    def point(self) -> str:
        """The point of its record."""
        parts = [self.method, self.request_id]
        owner = current_caller().principal.id
        if owner and not self.request_id.startswith(OWN_PREFIX):
            parts.append(owner)
        return point_id(self.namespace, "request", *parts)


@dataclass(frozen=True, slots=True)
class IdempotencyRecord:
    """The state of a request: the plan of its first try, and the result if it is done.

    ``first`` is False if it existed before this call. ``plan_number`` counts the plans. The record
    of a request without an id is not stored and has no ``point``: it is always a first try.
    """

    namespace: str
    point: str
    plan: Mapping[str, Any]
    result: Mapping[str, Any] | None
    create_time: int
    first: bool
    plan_number: int = 0

    def is_about(self, record: Record) -> bool:
        """Whether a record is that of the first try, and not another that has reused its id."""
        known = {**self.plan, **(self.result or {})}
        created: int = record.payload[CREATE_TIME]
        return bool(known.get(CREATE_TIME, created) == created)

    def about(self, records: Mapping[str, Record]) -> dict[str, Record]:
        """Those of the records, by id, that are of the first try; see ``is_about``."""
        known = {**self.plan, **(self.result or {})}.get(CREATE_TIMES, {})
        created = create_times(records).items()
        return {one: records[one] for one, time in created if known.get(one, time) == time}


class IdempotencyStore:
    """The idempotency records of all namespaces."""

    def __init__(self, store: VectorStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def begin(self, key: IdempotencyKey) -> IdempotencyRecord:
        """Record a request, or find its record. Raises RequestIdReusedError."""
        if not key.request_id:
            now = self._clock.now()
            return IdempotencyRecord(key.namespace, "", key.plan, None, now, first=True)
        (entry,) = await self.begin_many([key])
        if isinstance(entry, RequestIdReusedError):
            raise entry
        return entry

    async def find(self, key: IdempotencyKey) -> IdempotencyRecord | None:
        """The record of an earlier request; None if there is none. Raises RequestIdReusedError."""
        points = [key.point] if key.request_id else []
        stored = await self._store.get(REQUESTS, key.namespace, points) if points else {}
        if key.point not in stored:
            return None
        entry = _matching(key, stored[key.point])
        if isinstance(entry, RequestIdReusedError):
            raise entry
        return entry

    async def begin_about(
        self, key: IdempotencyKey, record: Record | None, earlier: IdempotencyRecord | None
    ) -> IdempotencyRecord | None:
        """Record a request that uses a record, which was read after looking for ``earlier``.

        None if the record does not exist, or is not that of the first try. Raises
        RequestIdReusedError.
        """
        if record is None:
            return None
        plan = {**key.plan, CREATE_TIME: record.payload[CREATE_TIME]}
        entry = earlier or await self.begin(replace(key, plan=plan))
        return entry if entry.is_about(record) else None

    async def begin_many(
        self, keys: Sequence[IdempotencyKey]
    ) -> list[IdempotencyRecord | RequestIdReusedError]:
        """Record several requests of one namespace at once; one result each, in order."""
        if not keys:
            return []
        now = self._clock.now()
        rows: dict[str, Record] = {}
        for key in keys:
            rows.setdefault(key.point, Record(key.point, key.namespace, _payload(key, now)))
        inserted = await self._store.insert(REQUESTS, list(rows.values()))
        old = [point for point in rows if point not in inserted]
        stored = await self._store.get(REQUESTS, keys[0].namespace, old) if old else {}
        entries: list[IdempotencyRecord | RequestIdReusedError] = []
        for key in keys:
            if key.point in stored:
                entries.append(_matching(key, stored[key.point]))
            else:  # named again in the same call, it is a repeat
                entries.append(replace(_record(rows[key.point]), first=True))
                stored[key.point] = rows[key.point]
        return entries

    async def reopen(self, entry: IdempotencyRecord) -> None:
        """Begin a request again that a sweep may have given up, or would soon."""
        await self._store.update(
            REQUESTS,
            entry.namespace,
            entry.point,
            set={"kind": REQUEST_KIND, "begin_time": self._clock.now()},
        )

    async def replan(self, entry: IdempotencyRecord, plan: Mapping[str, Any]) -> IdempotencyRecord:
        """Record another plan before following it.

        Returns the plan in force: another try of the request may have been first.
        """
        number = entry.plan_number + 1
        if entry.point and not await self._store.update(
            REQUESTS,
            entry.namespace,
            entry.point,
            set={"plan": dict(plan), "plan_number": number},
            when=[Equals("plan_number", entry.plan_number)],
        ):
            found = await self._store.get(REQUESTS, entry.namespace, [entry.point])
            if entry.point in found:
                return _record(found[entry.point])
        return replace(entry, plan=plan, plan_number=number)

    async def finish(self, entry: IdempotencyRecord, result: Mapping[str, Any]) -> None:
        """Mark a request as done, unless it is. A repeat returns ``result``."""
        if entry.point and entry.result is None:
            done = {DONE: True, "result": dict(result)}
            await self._store.update(REQUESTS, entry.namespace, entry.point, set=done)


def create_times(records: Mapping[str, Record]) -> dict[str, int]:
    """The creation times of records, by id."""
    return {one: record.payload[CREATE_TIME] for one, record in records.items()}


def _payload(key: IdempotencyKey, now: int) -> Payload:
    return {
        "kind": REQUEST_KIND,
        "method": key.method,
        "request_id": key.request_id,
        "content_hash": key.content_hash,
        "plan": dict(key.plan),
        "plan_number": 0,
        "result": {},
        DONE: False,
        "create_time": now,
        "begin_time": now,
        EXPIRES_KEY: now + REQUEST_ID_LIFE,
    }


def _matching(key: IdempotencyKey, row: Record) -> IdempotencyRecord | RequestIdReusedError:
    if row.payload["content_hash"] != key.content_hash:
        return RequestIdReusedError(key.request_id, key.method)
    return _record(row)


def _record(row: Record) -> IdempotencyRecord:
    payload = row.payload
    return IdempotencyRecord(
        row.namespace,
        row.id,
        payload["plan"],
        payload["result"] if payload[DONE] else None,
        payload["create_time"],
        first=False,
        plan_number=payload["plan_number"],
    )
