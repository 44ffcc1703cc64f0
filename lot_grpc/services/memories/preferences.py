"""Preferences: put, read, listed, deleted."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from lot_grpc.domain.errors import (
    ContentionError,
    EtagMismatchError,
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
from lot_grpc.ports import Order, Range, Record, VectorStore
from lot_grpc.services.ledger import Ask, Entry, Ledger
from lot_grpc.services.memories.preference_records import RESOURCE_KIND, PreferenceRecords
from lot_grpc.services.paging import (
    Fits,
    Position,
    any_size,
    each,
    pieces,
    read_each,
    read_page,
)
from lot_grpc.services.records.collections import (
    LEARNING_EVENTS,
    PREFERENCE_REVISIONS,
    PREFERENCES,
    REQUESTS,
    SORT_KEY,
)
from lot_grpc.services.records.learning_events import SETTLED
from lot_grpc.services.records.preferences import (
    CREATED_BY,
    REVISION,
    TASK_HASH,
    UNSETTLED,
    UNSETTLED_REQUESTS,
    preference_conditions,
    preference_from_record,
    revision_from_record,
    revisions_of,
    value_text,
)
from lot_grpc.services.settling import settled_among
from lot_grpc.services.time_slice import pause_before_retry
from lot_grpc.services.time_source import TimeSource
from lot_grpc.services.tombstones import DELETED_SINCE, Tombstone, Tombstones

_METHOD = "PutPreference"
_TRIES = 50
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


@dataclass(frozen=True, slots=True)
class PreferencePage:
    """A page of preferences, newest first; ``next`` is None at the end."""

    preferences: list[Preference]
    next: Position | None


class Preferences:
    """The preferences of all namespaces."""

    def __init__(
        self, store: VectorStore, time_source: TimeSource, ledger: Ledger, tombstones: Tombstones
    ) -> None:
        self._store = store
        self._time = time_source
        self._ledger = ledger
        self._tombstones = tombstones
        self._records = PreferenceRecords(store, time_source, tombstones)

    # --- reading ------------------------------------------------------------------------------

    async def find(self, namespace: str, key: str) -> Preference | None:
        """One preference, None if there is none."""
        record = await self._records.find(namespace, key)
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
        record = await self._records.find(namespace, key)
        if record is None:
            raise PreferenceNotFoundError(namespace, key)
        preference = preference_from_record(record)
        if not limit or preference.revision == 1:
            return preference, []
        oldest = preference.revision - HISTORY
        before = min(before or preference.revision, preference.revision)
        history: list[PreferenceRevision] = []
        for many in pieces(limit - 1):
            rows = await self._store.scroll(
                PREFERENCE_REVISIONS,
                namespace,
                [*revisions_of(record), Range(REVISION, lt=before, gte=oldest)],
                limit=many,
                order=_NEWEST_FIRST,
            )
            for revision in await read_each(rows, revision_from_record):
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
    ) -> PreferencePage:
        """A page of those in any of the categories (empty: of all), newest first by creation."""
        where, read = preference_conditions(categories), each(preference_from_record)
        found = await read_page(self._store, PREFERENCES, namespace, where, size, after, read, fits)
        return PreferencePage(*found)

    # --- putting ------------------------------------------------------------------------------

    async def put(self, namespace: str, draft: PreferenceDraft) -> PutPreference:
        """Put a value. The value and category that it has already change nothing.

        Raises PreferenceNotFoundError (an etag is given and there is none, or a repeat meets what
        was deleted since), EtagMismatchError, RequestIdReusedError, ContentionError.
        """
        entry = None
        if draft.request_id:
            ask = Ask(namespace, _METHOD, draft.request_id, draft.hash(), {})
            entry = await self._ledger.begin(ask)
        for attempt in range(_TRIES):
            put = await self._try_to_put(namespace, draft, entry)
            if put is not None:
                if entry is not None and entry.result is None:
                    await self._ledger.finish(entry, {"created": put.created})
                return put
            await pause_before_retry(attempt)
        raise ContentionError(RESOURCE_KIND, draft.key)

    async def _try_to_put(
        self, namespace: str, draft: PreferenceDraft, entry: Entry | None
    ) -> PutPreference | None:
        """Put, unless the request did; None if others wrote meanwhile."""
        record = await self._records.find(namespace, draft.key)
        if entry is not None and not entry.first:
            await self._refuse_deleted(namespace, draft.key, record, entry)
            if record is not None and entry.result is not None:
                return PutPreference(preference_from_record(record), entry.result["created"])
        own = [entry.point] if entry is not None else []
        unsettled: list[str] = record.payload.get(UNSETTLED_REQUESTS, []) if record else []
        # Read after the preference: what was dropped from it since has changed its revision.
        done = await settled_among(
            self._store, REQUESTS, namespace, [*own, *unsettled] if own or unsettled else [], "done"
        )
        if record is not None and any(one in unsettled or one in done for one in own):
            created = record.payload.get(CREATED_BY) in own
            return PutPreference(preference_from_record(record), created)
        _check_etag(namespace, draft, record)
        if record is not None and _has(record, draft):
            return PutPreference(preference_from_record(record), created=False)
        kept = record.payload["category"] if record else GENERAL
        left = [*(one for one in unsettled if one not in done), *own]
        changed: dict[str, Any] = {UNSETTLED_REQUESTS: left} if left or unsettled else {}
        if record is None and entry is not None:
            changed[CREATED_BY] = entry.point
        given = (draft.value, draft.category or kept)
        written = await self._records.write(namespace, draft.key, record, given, changed)
        return None if written is None else PutPreference(written, created=record is None)

    async def _refuse_deleted(
        self, namespace: str, key: str, record: Record | None, entry: Entry
    ) -> None:
        """Refuse a repeat whose preference was deleted since: one of the same key is another."""
        if await self._deleted_since(namespace, key, record, entry.create_time) or (
            record is None and entry.result is not None
        ):
            raise PreferenceNotFoundError(namespace, key, DELETED_SINCE)

    async def _deleted_since(
        self, namespace: str, key: str, record: Record | None, time: int
    ) -> bool:
        stone = await self._tombstones.find(namespace, RESOURCE_KIND, key)
        if stone is None or stone.delete_time < time:
            return False
        return record is None or record.payload[SORT_KEY] != stone.sort_key

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
        for attempt in range(_TRIES):
            record = await self._records.find(namespace, key)
            unsettled: list[str] = record.payload[UNSETTLED] if record else []
            # Read after the preference: what was dropped from it since has changed its revision.
            settled = await settled_among(
                self._store, LEARNING_EVENTS, namespace, [event_point, *unsettled], SETTLED
            )
            if event_point in unsettled or event_point in settled:
                return
            if repeat_of is not None and await self._deleted_since(
                namespace, key, record, repeat_of
            ):
                return
            left = [*(one for one in unsettled if one not in settled), event_point]
            further: dict[str, Any] = {UNSETTLED: left}
            if task:
                further[TASK_HASH] = task_hash(task)
            if await self._records.write(namespace, key, record, (value, LEARNED), further):
                return
            await pause_before_retry(attempt)
        raise ContentionError(RESOURCE_KIND, key)

    # --- deleting -----------------------------------------------------------------------------

    async def delete(self, namespace: str, key: str, etag: str = "") -> None:
        """Delete one with its history. Raises PreferenceNotFoundError, EtagMismatchError."""
        while True:
            record = await self._records.find(namespace, key)
            if record is None:
                raise PreferenceNotFoundError(namespace, key)
            current = preference_from_record(record).etag
            if etag and etag != current:
                raise EtagMismatchError(RESOURCE_KIND, key, etag, current)
            stone = await self._tombstones.begin(RESOURCE_KIND, key, record)
            if await self.finish_delete(stone):
                return

    async def finish_delete(self, stone: Tombstone) -> bool:
        """Carry out a delete that was written down; False if a new value was put since."""
        return await self._records.finish_delete(stone)


def _check_etag(namespace: str, draft: PreferenceDraft, record: Record | None) -> None:
    """Refuse what was put on top of another value, or of none."""
    if not draft.etag:
        return
    if record is None:
        raise PreferenceNotFoundError(namespace, draft.key, "put it without an etag to create it")
    current = preference_from_record(record).etag
    if draft.etag != current:
        raise EtagMismatchError(RESOURCE_KIND, draft.key, draft.etag, current)


def _has(record: Record, draft: PreferenceDraft) -> bool:
    """Whether a preference has the value and category that are put."""
    payload = record.payload
    same = value_text(preference_from_record(record).value) == value_text(draft.value)
    return same and draft.category in ("", payload["category"])
