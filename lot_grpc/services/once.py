"""Inserting a record once, under its own id, its request's, or a random one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lot_grpc.domain.errors import ContentionError, NotFoundError
from lot_grpc.domain.ids import new_id
from lot_grpc.ports import Record, VectorStore
from lot_grpc.services.ledger import CREATE_TIME, Ask, Entry, Ledger
from lot_grpc.services.tombstones import DELETED_SINCE, Tombstones


@dataclass(frozen=True, slots=True)
class Insertion:
    """What to insert. ``make`` gives the record for an id; ``id`` empty: one is made.

    ``require_same`` raises if the record that has the id is not this one. ``resource_kind`` and
    ``missing`` are of what can be deleted: a repeat does not bring it back.
    """

    namespace: str
    collection: str
    method: str
    prefix: str
    content_hash: str
    make: Callable[[str], Record]
    require_same: Callable[[Record], None]
    id: str = ""
    request_id: str = ""
    resource_kind: str = ""
    missing: type[NotFoundError] = NotFoundError


class Once:
    """Inserts, so that a repeat finds what the first try inserted."""

    def __init__(self, store: VectorStore, ledger: Ledger, tombstones: Tombstones) -> None:
        self._store = store
        self._ledger = ledger
        self._tombstones = tombstones

    async def insert(self, asked: Insertion) -> tuple[Record, bool]:
        """The record as stored, and whether this request created it.

        Raises RequestIdReusedError, what ``require_same`` raises, and ``missing`` where a repeat
        meets what was deleted since.
        """
        entry = await self._begin(asked) if asked.request_id else None
        own = entry.plan["id"] if entry is not None else asked.id or new_id(asked.prefix)
        record = asked.make(own)
        if asked.resource_kind and entry is not None and not entry.first:
            await self._refuse_deleted(asked, entry, record)
        created = record.id in await self._store.insert(asked.collection, [record])
        if not created:
            found = await self._store.get(asked.collection, asked.namespace, [record.id])
            if record.id not in found:  # it expired just now
                raise ContentionError(asked.method, own)
            record = found[record.id]
            asked.require_same(record)
        if entry is None:
            return record, created
        if entry.result is None:
            created = created or not entry.first
            result = {"created": created, CREATE_TIME: record.payload[CREATE_TIME]}
            await self._ledger.finish(entry, result)
            return record, created
        return record, bool(entry.result["created"])

    async def _refuse_deleted(self, asked: Insertion, entry: Entry, record: Record) -> None:
        own = entry.plan["id"]
        found = await self._store.get(asked.collection, asked.namespace, [record.id])
        if await self._tombstones.deleted_since(
            entry, asked.resource_kind, own, found.get(record.id)
        ):
            raise asked.missing(asked.namespace, own, DELETED_SINCE)

    async def _begin(self, asked: Insertion) -> Entry:
        plan = {"id": asked.id or new_id(asked.prefix)}
        ask = Ask(asked.namespace, asked.method, asked.request_id, asked.content_hash, plan)
        return await self._ledger.begin(ask)
