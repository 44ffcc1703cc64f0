"""Creates a record once, under the caller's id, that of an earlier try, or a random one.

A request is recorded with the id that it will write (``idempotency``); then the record is inserted,
insert-only and signed with the request; then the request is marked done with its result. Wherever
this stopped, the repeated request finds its own record by the signature, or creates it if no try
got that far. It does not restore what was deleted since (``tombstones``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lot_grpc.domain.errors import NotFoundError, RequestIdReusedError
from lot_grpc.kernel.compare_and_set import ConflictError, compare_and_set
from lot_grpc.kernel.idempotency import (
    CREATE_TIME,
    IdempotencyKey,
    IdempotencyRecord,
    IdempotencyStore,
)
from lot_grpc.kernel.tombstones import DELETED_SINCE, Tombstones
from lot_grpc.ports import Record, VectorStore

SIGNATURE = "request"
"""In a record: the idempotency record of the request that created it, if it had a request id."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of record to create.

    Attributes:
        method: The call that creates it.
        collection: Its collection.
        resource: Its name in tombstones; empty if it cannot be deleted.
        id_key: The key of its id in the plan and the result of a request.
        point: The point of an id in a namespace.
        missing: The error of a repeat whose record was deleted since.
    """

    method: str
    collection: str
    resource: str
    id_key: str
    point: Callable[[str, str], str]
    missing: type[NotFoundError] = NotFoundError


@dataclass(slots=True, kw_only=True)
class Creation:
    """A record to create.

    ``id`` is the caller's or a new one; once recorded, a repeat has the id of its first try.
    ``plan`` is what else the request should remember. ``refused`` instead of ``entry``: its request
    id was used for something else.
    """

    namespace: str
    id: str
    request_id: str = ""
    content_hash: str = ""
    plan: Mapping[str, Any] = field(default_factory=dict)
    entry: IdempotencyRecord | None = None
    refused: RequestIdReusedError | None = None

    @property
    def repeated(self) -> bool:
        """Whether an earlier try of the request may have written something."""
        return self.entry is not None and not self.entry.first

    def sign(self, record: Record) -> Record:
        """Sign a record with the request that creates it."""
        if self.entry is not None:
            record.payload[SIGNATURE] = self.entry.point
        return record

    def wrote(self, record: Record) -> bool:
        """Whether a record was created by a try of this request."""
        return self.entry is not None and record.payload.get(SIGNATURE) == self.entry.point


@dataclass(frozen=True, slots=True)
class Earlier:
    """The result of an earlier try. ``result`` is empty if it did not finish."""

    record: Record
    created: bool
    result: Mapping[str, Any] = field(default_factory=dict)


class CreateOnce:
    """Creates records so that a repeat finds what the first try created."""

    def __init__(
        self, store: VectorStore, idempotency: IdempotencyStore, tombstones: Tombstones
    ) -> None:
        self._store = store
        self._idempotency = idempotency
        self._tombstones = tombstones

    async def enter(self, kind: Kind, creations: Sequence[Creation]) -> None:
        """Record those requests of one namespace that have a request id."""
        requested = [creation for creation in creations if creation.request_id]
        keys = [
            IdempotencyKey(
                one.namespace,
                kind.method,
                one.request_id,
                one.content_hash,
                {kind.id_key: one.id, **one.plan},
            )
            for one in requested
        ]
        entries = await self._idempotency.begin_many(keys)
        for creation, entry in zip(requested, entries, strict=True):
            if isinstance(entry, RequestIdReusedError):
                creation.refused = entry
                continue
            creation.entry, creation.plan = entry, entry.plan
            creation.id = (entry.result or entry.plan)[kind.id_key]

    async def earlier(self, kind: Kind, creation: Creation) -> Earlier | None:
        """The result of an earlier try of the request; None if it created no record.

        Raises ``kind.missing`` if the record was deleted since.
        """
        entry = creation.entry
        if entry is None or entry.first:
            return None
        record = await self._find(kind, creation)
        if record is not None and entry.result is None and creation.wrote(record):
            return Earlier(record, created=True)
        if kind.resource and await self._tombstones.deleted_since(
            entry, kind.resource, creation.id, record
        ):
            raise kind.missing(creation.namespace, creation.id, DELETED_SINCE)
        if record is not None and entry.result is not None:
            return Earlier(record, entry.result["created"], entry.result)
        return None

    async def insert(
        self,
        kind: Kind,
        creation: Creation,
        make: Callable[[str], Record],
        require_same: Callable[[Record], None] = lambda stored: None,
    ) -> tuple[Record, bool]:
        """Create one record; return it as stored, and whether this request created it.

        ``make`` makes the record for an id; ``require_same`` raises if the record with the id has
        other content. Raises RequestIdReusedError, what ``earlier`` raises, ContentionError.
        """
        await self.enter(kind, [creation])
        if creation.refused is not None:
            raise creation.refused
        earlier = await self.earlier(kind, creation)
        if earlier is not None:
            record, created = earlier.record, earlier.created
        else:
            record, created = await self._insert(kind, creation, make, require_same)
        payload = record.payload
        await self.finish(
            kind, creation, payload[kind.id_key], payload[CREATE_TIME], created=created
        )
        return record, created

    async def finish(
        self,
        kind: Kind,
        creation: Creation,
        id: str,
        create_time: int,
        *,
        created: bool,
        further: Mapping[str, Any] | None = None,
    ) -> None:
        """Mark the request as done, if there is one and it is not done.

        ``id`` and ``create_time`` are those of the resulting record; ``further`` is for repeats.
        """
        if creation.entry is not None:
            result = {kind.id_key: id, "created": created, CREATE_TIME: create_time}
            await self._idempotency.finish(creation.entry, {**result, **(further or {})})

    async def _insert(
        self,
        kind: Kind,
        creation: Creation,
        make: Callable[[str], Record],
        require_same: Callable[[Record], None],
    ) -> tuple[Record, bool]:
        async def attempt() -> tuple[Record, bool]:
            record = creation.sign(make(creation.id))
            if record.id in await self._store.insert(kind.collection, [record]):
                return record, True
            stored = await self._find(kind, creation)
            if stored is None:  # it was deleted, or has expired, just now
                raise ConflictError
            if creation.wrote(stored):  # another try of the request, at the same time
                return stored, True
            require_same(stored)
            return stored, False

        return await compare_and_set(kind.resource or kind.method, creation.id, attempt)

    async def _find(self, kind: Kind, creation: Creation) -> Record | None:
        point = kind.point(creation.namespace, creation.id)
        return (await self._store.get(kind.collection, creation.namespace, [point])).get(point)
