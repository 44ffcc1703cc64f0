"""The records of preferences: replaced only if unchanged, deleted with their history.

The former value is stored first, insert-only under its revision; then a compare-and-set stores the
new one. So no value is lost in a crash, and the later of two concurrent writers reads again. A
stored revision that the preference still has is not a former value yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.preference import HISTORY, Preference
from lot_grpc.kernel.compare_and_set import ConflictError, insert_new, update_as_read
from lot_grpc.kernel.tombstones import Tombstone, Tombstones
from lot_grpc.ports import Equals, Range, Record, VectorStore
from lot_grpc.services.operations import Resources
from lot_grpc.services.preferences.spec import PREFERENCE
from lot_grpc.services.records.collections import PREFERENCE_REVISIONS, PREFERENCES, SORT_KEY
from lot_grpc.services.records.preferences import (
    REVISION,
    preference_from_record,
    preference_record,
    revision_record,
    revisions_of,
    value_payload,
)
from lot_grpc.services.time_source import TimeSource


class PreferenceRecords(Resources[Preference, tuple[str, ...]]):
    """The records of all namespaces."""

    def __init__(self, store: VectorStore, time_source: TimeSource, tombstones: Tombstones) -> None:
        super().__init__(PREFERENCE, store, tombstones)
        self._time = time_source

    async def write(
        self,
        namespace: str,
        key: str,
        record: Record | None,
        given: tuple[Any, str],
        further: Mapping[str, Any],
    ) -> Record:
        """Replace the record that was read. Raises ConflictError if it has changed."""
        now = self._time.now()
        if record is None:
            await self._finish_former(namespace, key)
            made = Preference(namespace, key, *given, revision=1, create_time=now, update_time=now)
            first = preference_record(made, self._time.sort_key())
            first.payload.update(further)
            return await insert_new(self._store, PREFERENCES, first)
        await self._store.insert(PREFERENCE_REVISIONS, [revision_record(record)])
        old = preference_from_record(record)
        new = Preference(
            namespace,
            key,
            *given,
            revision=old.revision + 1,
            create_time=old.create_time,
            update_time=max(now, old.update_time),
        )
        changed = {**value_payload(new), **further}
        try:
            written = await update_as_read(
                self._store, PREFERENCES, record, changed, REVISION, SORT_KEY
            )
        except ConflictError:
            await self._drop_former_of_none(record)
            raise
        if new.revision > HISTORY + 1:
            too_old = Range(REVISION, lt=new.revision - HISTORY)
            await self._store.delete(
                PREFERENCE_REVISIONS, namespace, [*revisions_of(record), too_old]
            )
        return written

    async def _finish_former(self, namespace: str, key: str) -> None:
        """Finish an interrupted delete of the key before the next one begins."""
        stone = await self._tombstones.find(namespace, ResourceKind.PREFERENCE, key)
        if stone is not None and not stone.done:
            await self.finish_delete(stone)

    async def _drop_former_of_none(self, record: Record) -> None:
        """Drop what was written down of a preference that was deleted just then."""
        there = await self.find_record(record.namespace, record.payload["key"])
        if there is None or there.payload[SORT_KEY] != record.payload[SORT_KEY]:
            await self._store.delete(PREFERENCE_REVISIONS, record.namespace, revisions_of(record))

    async def _drop_dependents(self, stone: Tombstone, left: Record | None) -> None:
        theirs = [Equals("key", stone.id), Equals(SORT_KEY, stone.sort_key)]
        await self._store.delete(PREFERENCE_REVISIONS, stone.namespace, theirs)
