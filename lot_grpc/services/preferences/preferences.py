"""Preferences: put, read, listed, deleted with their history.

The former value is stored first, insert-only under its revision; then a compare-and-set puts the
new one. So no value is lost in a crash, and of two concurrent writers the later one reads again. A
row with the preference's current revision is not a former value yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.errors import (
    PreferenceNotFoundError,
)
from lot_grpc.domain.json_values import as_doubles
from lot_grpc.domain.preference import (
    GENERAL,
    HISTORY,
    LEARNED,
    Preference,
    PreferenceRevision,
    task_hash,
)
from lot_grpc.domain.request_hash import request_hash
from lot_grpc.kernel.apply_once import Target, apply_once
from lot_grpc.kernel.compare_and_set import ConflictError, insert_new, require_etag, update_as_read
from lot_grpc.kernel.idempotency import DONE, IdempotencyKey, IdempotencyRecord
from lot_grpc.kernel.intents import Journal, Mark
from lot_grpc.kernel.tombstones import DELETED_SINCE, Tombstone
from lot_grpc.ports import Equals, Order, Range, Record
from lot_grpc.services.operations import Resources
from lot_grpc.services.paging import (
    Fits,
    any_size,
    pieces,
)
from lot_grpc.services.preferences.spec import PREFERENCE
from lot_grpc.services.records.collections import (
    LEARNING_EVENTS,
    PREFERENCE_REVISIONS,
    PREFERENCES,
    REQUESTS,
    SORT_KEY,
)
from lot_grpc.services.records.learning_events import APPLIED
from lot_grpc.services.records.preferences import (
    CREATED_BY,
    PENDING,
    PENDING_REQUESTS,
    REVISION,
    TASK_HASH,
    preference_from_record,
    preference_point,
    preference_record,
    revision_from_record,
    revision_record,
    revisions_of,
    value_payload,
    value_text,
)
from lot_grpc.services.runtime import Runtime
from lot_grpc.services.time_slice import TimeSlice

_METHOD = "PutPreference"
_NEWEST_FIRST = Order(REVISION, descending=True)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PreferenceDraft:
    """A value to put. ``category`` empty: unchanged. ``etag`` empty: any version."""

    key: str
    value: Any
    category: str = ""
    etag: str = ""
    request_id: str = ""

    def hash(self) -> str:
        """Equal for equal requests."""
        return request_hash(self, value=as_doubles(self.value))


@dataclass(frozen=True, slots=True)
class PutPreference:
    """A preference after a put, and whether the put created it."""

    preference: Preference
    created: bool


class Preferences(Resources[Preference, tuple[str, ...]]):
    """The preferences of all namespaces."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(PREFERENCE, runtime)
        self._requests = Journal(runtime.store, REQUESTS, Mark(DONE))
        self._events = Journal(runtime.store, LEARNING_EVENTS, Mark(APPLIED))

    # --- reading ------------------------------------------------------------------------------

    async def find(self, namespace: str, key: str) -> Preference | None:
        """A preference; None if it does not exist."""
        record = await self.find_record(namespace, key)
        return None if record is None else preference_from_record(record)

    async def get_with_history(
        self,
        namespace: str,
        key: str,
        limit: int,
        before: int = 0,
        fits: Fits[PreferenceRevision] = any_size,
    ) -> tuple[Preference, list[PreferenceRevision]]:
        """One preference and its latest former values that fit, newest first.

        ``before``: only those of a lower revision; 0: all. Raises PreferenceNotFoundError.
        """
        record = await self.read_record(namespace, key)
        preference = preference_from_record(record)
        if not limit or preference.revision == 1:
            return preference, []
        oldest = preference.revision - HISTORY
        before = min(before or preference.revision, preference.revision)
        history: list[PreferenceRevision] = []
        time_slice = TimeSlice()
        for many in pieces(limit - 1):
            rows = await self._store.scroll(
                PREFERENCE_REVISIONS,
                namespace,
                [*revisions_of(record), Range(REVISION, lt=before, gte=oldest)],
                limit=many,
                order=_NEWEST_FIRST,
            )
            for row in rows:
                revision = revision_from_record(row)
                await time_slice.give_way()
                if not fits(revision):
                    return preference, history
                history.append(revision)
                before = revision.revision
            if len(rows) < many:
                break
        return preference, history

    # --- putting ------------------------------------------------------------------------------

    async def put(self, namespace: str, draft: PreferenceDraft) -> PutPreference:
        """Put a value. Putting the current value and category changes nothing.

        Raises PreferenceNotFoundError (an etag is given and there is none, or a repeat meets what
        was deleted since), EtagMismatchError, RequestIdReusedError, ContentionError.
        """
        key = IdempotencyKey(namespace, _METHOD, draft.request_id, draft.hash(), {})
        entry = await self._idempotency.begin(key)
        own = entry.point or None
        created: bool | None = None

        async def write(record: Record | None, pending: list[str]) -> Record:
            nonlocal created
            await self._refuse_deleted(namespace, draft.key, record, entry)
            _check_etag(namespace, draft, record)
            if record is not None and _has(record, draft):
                created = False
                return record
            further: dict[str, Any] = {PENDING_REQUESTS: pending}
            if record is None and own is not None:
                further[CREATED_BY] = own
            category = draft.category or (record.payload["category"] if record else GENERAL)
            given = (draft.value, category)
            written = await self._write(namespace, draft.key, record, given, further)
            created = record is None
            return written

        target = _target(namespace, draft.key, PENDING_REQUESTS)
        record = await apply_once(self._store, self._requests, own, target, write)
        if created is None:  # an earlier try of the request did it
            await self._refuse_deleted(namespace, draft.key, record, entry)
            mine = record is not None and record.payload.get(CREATED_BY) == own
            created = bool(entry.result["created"]) if entry.result is not None else mine
        if record is None:
            raise PreferenceNotFoundError(namespace, draft.key, DELETED_SINCE)
        await self._idempotency.finish(entry, {"created": created})
        preference = preference_from_record(record)
        if value_text(preference.value) == value_text(draft.value):  # as given: 0.0 is stored as 0
            preference = replace(preference, value=draft.value)
        return PutPreference(preference, created)

    async def _refuse_deleted(
        self, namespace: str, key: str, record: Record | None, entry: IdempotencyRecord
    ) -> None:
        """Refuse a repeat whose preference was deleted since: one of the same key is another."""
        if entry.first:
            return
        given = (namespace, ResourceKind.PREFERENCE, key, entry.create_time, record)
        if await self._tombstones.deleted_after(*given) or (
            record is None and entry.result is not None
        ):
            raise PreferenceNotFoundError(namespace, key, DELETED_SINCE)

    async def take_in(
        self,
        namespace: str,
        key: str,
        value: Any,
        task: str,
        event_point: str,
        repeat_of: int | None = None,
    ) -> None:
        """Give a preference the value that a learning event taught, unless it took it in before.

        ``task`` by which it is found; empty: by none.
        ``repeat_of``: the time of an event that may have been taken in by an earlier try; then what
        was deleted since stays away. Raises ContentionError.
        """

        async def write(record: Record | None, pending: list[str]) -> Record | None:
            if repeat_of is not None and await self._tombstones.deleted_after(
                namespace, ResourceKind.PREFERENCE, key, repeat_of, record
            ):
                return record
            further: dict[str, Any] = {PENDING: pending}
            if task:
                further[TASK_HASH] = task_hash(task)
            return await self._write(namespace, key, record, (value, LEARNED), further)

        target = _target(namespace, key, PENDING)
        await apply_once(self._store, self._events, event_point, target, write)

    # --- the records --------------------------------------------------------------------------

    async def _write(
        self,
        namespace: str,
        key: str,
        record: Record | None,
        given: tuple[Any, str],
        further: Mapping[str, Any],
    ) -> Record:
        """Write a value over the record that was read. Raises ConflictError if it is another."""
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
            written = await update_as_read(self._store, PREFERENCES, record, changed, REVISION)
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
        """Finish a delete of the key that was left half done, before the next one may begin."""
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


def _check_etag(namespace: str, draft: PreferenceDraft, record: Record | None) -> None:
    """Refuse what was put on top of another value, or of none."""
    if not draft.etag:
        return
    if record is None:
        raise PreferenceNotFoundError(namespace, draft.key, "put it without an etag to create it")
    require_etag(
        ResourceKind.PREFERENCE, draft.key, draft.etag, preference_from_record(record).etag
    )


def _target(namespace: str, key: str, pending: str) -> Target:
    return Target(
        ResourceKind.PREFERENCE,
        key,
        namespace,
        PREFERENCES,
        preference_point(namespace, key),
        pending,
    )


def _has(record: Record, draft: PreferenceDraft) -> bool:
    """Whether a preference already has the value and category of the draft."""
    payload = record.payload
    same = value_text(preference_from_record(record).value) == value_text(draft.value)
    return same and draft.category in ("", payload["category"])
