"""Writes to one collection of a Qdrant server, and the reads they need.

Several services may write to one server, so compare-and-set takes three steps: read the record with
its stamp (``qdrant_stamp``), write on the condition that the stamp is unchanged, read the stamp
back.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeAlias

from qdrant_client import AsyncQdrantClient, models

from lot_grpc.domain.errors import ContentionError, StoreUnavailableError
from lot_grpc.ports import (
    EXPIRES_KEY,
    NAMESPACE_KEY,
    Clock,
    CollectionSpec,
    Payload,
    Record,
    Where,
)
from lot_grpc.storage.checks import distinct
from lot_grpc.storage.conditions import is_expired, keys_of, matches
from lot_grpc.storage.json_path import json_path
from lot_grpc.storage.qdrant_errors import Talking
from lot_grpc.storage.qdrant_filter import equal, expired, having_ids
from lot_grpc.storage.qdrant_points import point, point_vectors
from lot_grpc.storage.qdrant_stamp import STAMP_KEYS, WRITE_KEY, Stamp

_UPSERT_CHUNK = 256
_INSERT_ROUNDS = 3
_CAS_ROUNDS = 16
_BACKOFF_SECONDS = 0.005

_Write: TypeAlias = Callable[[Stamp, models.Filter], Awaitable[object]]


class QdrantCollection:
    """The collection ``name`` of the server. ``majority``: it is replicated.

    ``ready`` refuses a closed store, and turns the client's exceptions into domain errors.
    """

    def __init__(
        self,
        client: AsyncQdrantClient,
        name: str,
        spec: CollectionSpec,
        clock: Clock,
        ready: Callable[[], Talking],
        *,
        majority: bool,
    ) -> None:
        self.name = name
        self.spec = spec
        self.consistency = models.ReadConsistencyType.MAJORITY if majority else None
        self._ordering = models.WriteOrdering.STRONG if majority else None
        self._client = client
        self._clock = clock
        self._ready = ready

    async def insert(self, records: Sequence[Record]) -> set[str]:
        """Insert only; a record found with its stamp afterwards was inserted by this call."""
        pending = distinct(records)
        inserted: set[str] = set()
        stamp = Stamp.first()
        for _ in range(_INSERT_ROUNDS):
            if not pending:
                break
            with self._ready():
                await self._upsert(
                    list(pending.values()), stamp, update_mode=models.UpdateMode.INSERT_ONLY
                )
                stored = await self._retrieve(list(pending), [EXPIRES_KEY, *STAMP_KEYS])
                inserted |= {i for i, held in stored.items() if Stamp.of(held).includes(stamp)}
                now = self._clock.now()
                expired_ids = [i for i, held in stored.items() if is_expired(held, now)]
                pending = {i: pending[i] for i in expired_ids if i not in inserted}
                if pending:
                    await self._delete([having_ids(list(pending)), expired(now)])
        return inserted

    async def put(self, records: Sequence[Record]) -> None:
        """Insert or replace whole records."""
        with self._ready():
            await self._upsert(records, Stamp.first())

    async def replace(self, record: Record, when: Where) -> bool:
        """Replace an existing record if its stamp is unchanged."""

        async def write(stamp: Stamp, unchanged: models.Filter) -> None:
            await self._upsert(
                [record],
                stamp,
                update_mode=models.UpdateMode.UPDATE_ONLY,
                update_filter=unchanged,
            )

        return await self._compare_and_set(record.namespace, record.id, when, write)

    async def update(
        self,
        namespace: str,
        id: str,
        set: Mapping[str, Any],
        unset: Sequence[str],
        when: Where,
    ) -> bool:
        """Set keys if the stamp is unchanged, then remove keys unless it was written since."""

        async def write(stamp: Stamp, unchanged: models.Filter) -> None:
            await self._client.set_payload(
                self.name,
                payload={**set, **stamp.payload()},
                points=unchanged,
                wait=True,
                ordering=self._ordering,
            )
            if unset:
                await self._client.delete_payload(
                    self.name,
                    keys=[json_path(key) for key in unset],
                    points=_unchanged(id, stamp),
                    wait=True,
                    ordering=self._ordering,
                )

        return await self._compare_and_set(namespace, id, when, write)

    async def set_vectors(self, records: Sequence[Record]) -> None:
        """Set named vectors of existing records."""
        for start in range(0, len(records), _UPSERT_CHUNK):
            with self._ready():
                await self._set_vectors(records[start : start + _UPSERT_CHUNK])

    async def delete(self, chosen: models.Filter, limit: int) -> int:
        """Count, then delete by filter; with a limit find, then delete by id."""
        with self._ready():
            if not limit:
                count = await self.count(chosen)
                if count:
                    await self._delete([chosen])
                return count
            found, _ = await self._client.scroll(
                self.name,
                scroll_filter=chosen,
                limit=limit,
                with_payload=False,
                consistency=self.consistency,
            )
            if found:
                await self._delete([chosen, having_ids([str(one.id) for one in found])])
            return len(found)

    async def count(self, chosen: models.Filter) -> int:
        """Exact number of records that match a filter. Call it inside ``ready``."""
        # The client offers no read consistency here; with wait=True a lagging replica is rare.
        return (await self._client.count(self.name, chosen, exact=True)).count

    async def _upsert(self, records: Sequence[Record], stamp: Stamp, **mode: Any) -> None:
        for start in range(0, len(records), _UPSERT_CHUNK):
            points = [point(one, stamp) for one in records[start : start + _UPSERT_CHUNK]]
            await self._client.upsert(self.name, points, wait=True, ordering=self._ordering, **mode)

    async def _set_vectors(self, records: Sequence[Record]) -> None:
        """Set the vectors of the records that exist.

        The server fails for a missing id, after it has written the others. So only existing ids are
        sent, and sent again if some disappear in the meantime.
        """
        pending = await self._living([record for record in records if record.vectors])
        while pending:
            try:
                await self._client.update_vectors(
                    self.name,
                    [point_vectors(one) for one in pending],
                    wait=True,
                    ordering=self._ordering,
                )
            except Exception:
                left = await self._living(pending)
                if len(left) == len(pending):
                    raise
                pending = left
            else:
                return

    async def _living(self, records: Sequence[Record]) -> list[Record]:
        """The records that exist in their namespace and have not expired."""
        if not records:
            return []
        ids = [record.id for record in records]
        stored = await self._retrieve(ids, [NAMESPACE_KEY, EXPIRES_KEY])
        now = self._clock.now()
        return [
            record
            for record in records
            if (held := stored.get(record.id)) is not None
            and held.get(NAMESPACE_KEY) == record.namespace
            and not is_expired(held, now)
        ]

    async def _retrieve(self, ids: Sequence[str], keys: Sequence[str]) -> dict[str, Payload]:
        found = await self._client.retrieve(
            self.name, list(ids), list(keys), False, consistency=self.consistency
        )
        return {str(one.id): one.payload or {} for one in found}

    async def _delete(self, must: Sequence[Any]) -> None:
        await self._client.delete(
            self.name,
            models.FilterSelector(filter=models.Filter(must=list(must))),
            wait=True,
            ordering=self._ordering,
        )

    async def _compare_and_set(self, namespace: str, id: str, when: Where, write: _Write) -> bool:
        """Write if ``when`` holds and no other write intervenes.

        Raises:
            ContentionError: other writes kept intervening; nothing was written.
            StoreUnavailableError: so many intervened that the outcome is unknown.
        """
        keys = [NAMESPACE_KEY, EXPIRES_KEY, *STAMP_KEYS, *map(json_path, keys_of(when))]
        for attempt in range(_CAS_ROUNDS):
            with self._ready():
                held = (await self._retrieve([id], keys)).get(id)
                if held is None or held.get(NAMESPACE_KEY) != namespace:
                    return False
                if is_expired(held, self._clock.now()) or not matches(when, id, held):
                    return False
                seen = Stamp.of(held)
                mine = seen.next()
                await write(mine, _unchanged(id, seen))
                after = (await self._retrieve([id], STAMP_KEYS)).get(id)
            if after is None:
                return False
            now_there = Stamp.of(after)
            if now_there.includes(mine):
                return True
            if now_there.forgetful and not now_there.includes(seen):
                raise StoreUnavailableError(
                    f"record {id!r} is written so often that the outcome of this write is unknown; "
                    "read it before retrying",
                    id=id,
                )
            await asyncio.sleep(random.uniform(0, _BACKOFF_SECONDS * (attempt + 1)))  # noqa: S311
        raise ContentionError("record", id)


def _unchanged(id: str, stamp: Stamp) -> models.Filter:
    return models.Filter(must=[having_ids([id]), equal(WRITE_KEY, stamp.write)])
