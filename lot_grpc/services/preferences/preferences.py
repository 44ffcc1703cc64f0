"""Preferences: put, read, listed, deleted."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, TypeVar

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.errors import (
    PreferenceNotFoundError,
)
from lot_grpc.domain.ids import content_hash
from lot_grpc.domain.json_values import as_doubles
from lot_grpc.domain.preference import (
    GENERAL,
    HISTORY,
    LEARNED,
    Preference,
    PreferenceRevision,
    task_hash,
)
from lot_grpc.kernel.apply_once import Target, apply_once
from lot_grpc.kernel.compare_and_set import require_etag
from lot_grpc.kernel.idempotency import DONE, IdempotencyKey, IdempotencyRecord, IdempotencyStore
from lot_grpc.kernel.intents import Journal, Mark
from lot_grpc.kernel.tombstones import DELETED_SINCE, Tombstones
from lot_grpc.ports import Order, Range, Record, VectorStore
from lot_grpc.services.paging import (
    Fits,
    Page,
    Position,
    any_size,
    pieces,
)
from lot_grpc.services.preferences.preference_records import PreferenceRecords
from lot_grpc.services.records.collections import (
    LEARNING_EVENTS,
    PREFERENCE_REVISIONS,
    PREFERENCES,
    REQUESTS,
)
from lot_grpc.services.records.learning_events import APPLIED
from lot_grpc.services.records.preferences import (
    CREATED_BY,
    REVISION,
    TASK_HASH,
    UNSETTLED,
    UNSETTLED_REQUESTS,
    preference_from_record,
    preference_point,
    revision_from_record,
    revisions_of,
    value_text,
)
from lot_grpc.services.time_slice import TimeSlice
from lot_grpc.services.time_source import TimeSource

_METHOD = "PutPreference"
_NEWEST_FIRST = Order(REVISION, descending=True)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PreferenceDraft:
    """A value to put. ``category`` empty: the one it has. ``etag`` empty: whatever it has."""

    key: str
    value: Any
    category: str = ""
    etag: str = ""
    request_id: str = ""

    def hash(self) -> str:
        """The same for the same request."""
        return content_hash(asdict(self) | {"value": as_doubles(self.value)})


@dataclass(frozen=True, slots=True)
class PutPreference:
    """A preference as it stands after a put, and whether the put made it."""

    preference: Preference
    created: bool


class Preferences:
    """The preferences of all namespaces."""

    def __init__(
        self,
        store: VectorStore,
        time_source: TimeSource,
        idempotency: IdempotencyStore,
        tombstones: Tombstones,
    ) -> None:
        self._store = store
        self._idempotency = idempotency
        self._tombstones = tombstones
        self.records = PreferenceRecords(store, time_source, tombstones)
        self._requests = Journal(store, REQUESTS, Mark(DONE))
        self._events = Journal(store, LEARNING_EVENTS, Mark(APPLIED))

    # --- reading ------------------------------------------------------------------------------

    async def find(self, namespace: str, key: str) -> Preference | None:
        """One preference, None if there is none."""
        record = await self.records.find_record(namespace, key)
        return None if record is None else preference_from_record(record)

    async def get(self, namespace: str, key: str) -> Preference:
        """One preference. Raises PreferenceNotFoundError."""
        return (await self.get_with_history(namespace, key, 0))[0]

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
        record = await self.records.read_record(namespace, key)
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

    async def list_page(
        self,
        namespace: str,
        categories: tuple[str, ...],
        size: int,
        after: Position | None,
        fits: Fits[Preference] = any_size,
    ) -> Page[Preference, Position]:
        """A page of those in any of the categories (empty: of all), newest first by creation."""
        return await self.records.list_page(namespace, categories, size, after, fits)

    # --- putting ------------------------------------------------------------------------------

    async def put(self, namespace: str, draft: PreferenceDraft) -> PutPreference:
        """Put a value. The value and category that it has already change nothing.

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
            further: dict[str, Any] = {UNSETTLED_REQUESTS: pending}
            if record is None and own is not None:
                further[CREATED_BY] = own
            category = draft.category or (record.payload["category"] if record else GENERAL)
            given = (draft.value, category)
            written = await self.records.write(namespace, draft.key, record, given, further)
            created = record is None
            return written

        target = _target(namespace, draft.key, UNSETTLED_REQUESTS)
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
            further: dict[str, Any] = {UNSETTLED: pending}
            if task:
                further[TASK_HASH] = task_hash(task)
            return await self.records.write(namespace, key, record, (value, LEARNED), further)

        target = _target(namespace, key, UNSETTLED)
        await apply_once(self._store, self._events, event_point, target, write)

    # --- deleting -----------------------------------------------------------------------------

    async def delete(self, namespace: str, key: str, etag: str = "") -> None:
        """Delete one with its history.

        Raises PreferenceNotFoundError, EtagMismatchError, ContentionError.
        """
        await self.records.delete(namespace, key, etag)


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
    """Whether a preference has the value and category that are put."""
    payload = record.payload
    same = value_text(preference_from_record(record).value) == value_text(draft.value)
    return same and draft.category in ("", payload["category"])
