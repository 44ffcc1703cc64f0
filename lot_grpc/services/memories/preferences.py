"""Preferences: new values, with the former ones kept.

The former value is written down first, insert-only under its revision; then a compare-and-set puts
the new one. So no value is lost, whatever dies in between, and of two writers at once the one that
is late reads again. A row of a revision that the preference still has is no former value yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from lot_grpc.domain.errors import (
    ContentionError,
    EtagMismatchError,
    PreferenceNotFoundError,
)
from lot_grpc.domain.ids import content_hash
from lot_grpc.domain.preference import GENERAL, HISTORY, Preference, PreferenceRevision
from lot_grpc.ports import Equals, IdIn, Order, Range, Record, VectorStore
from lot_grpc.services.ledger import Ask, Entry, Ledger
from lot_grpc.services.moments import Moments
from lot_grpc.services.pacing import pause_before_retry
from lot_grpc.services.paging import Position, read_page
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
    UNSETTLED,
    UNSETTLED_REQUESTS,
    preference_conditions,
    preference_from_record,
    preference_point,
    preference_record,
    revision_from_record,
    revision_record,
    revisions_of,
    value_payload,
    value_text,
)
from lot_grpc.services.settling import settled_among
from lot_grpc.services.tombstones import Tombstone, Tombstones

NOUN = "preference"
_METHOD = "PutPreference"
_TRIES = 50
_NEWEST_FIRST = Order(REVISION, descending=True)


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
        return content_hash(asdict(self))


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
        self, store: VectorStore, moments: Moments, ledger: Ledger, tombstones: Tombstones
    ) -> None:
        self._store = store
        self._moments = moments
        self._ledger = ledger
        self._tombstones = tombstones

    # --- reading ------------------------------------------------------------------------------

    async def find(self, namespace: str, key: str) -> Preference | None:
        """One preference, None if there is none."""
        record = await self._record(namespace, key)
        return None if record is None else preference_from_record(record)

    async def get(self, namespace: str, key: str) -> Preference:
        """One preference. Raises PreferenceNotFoundError."""
        return (await self.get_with_history(namespace, key, 0))[0]

    async def get_with_history(
        self, namespace: str, key: str, limit: int
    ) -> tuple[Preference, list[PreferenceRevision]]:
        """One preference and its latest former values, newest first.

        Raises PreferenceNotFoundError.
        """
        record = await self._record(namespace, key)
        if record is None:
            raise PreferenceNotFoundError(namespace, key)
        preference = preference_from_record(record)
        if not limit or preference.revision == 1:
            return preference, []
        rows = await self._store.scroll(
            PREFERENCE_REVISIONS,
            namespace,
            [
                *revisions_of(record),
                Range(REVISION, lt=preference.revision, gte=preference.revision - HISTORY),
            ],
            limit=limit,
            order=_NEWEST_FIRST,
        )
        return preference, [revision_from_record(row) for row in rows]

    async def list_page(
        self, namespace: str, categories: tuple[str, ...], size: int, after: Position | None
    ) -> PreferencePage:
        """A page of those in any of the categories (empty: of all), newest first by creation."""
        where = preference_conditions(categories)
        page = await read_page(self._store, PREFERENCES, namespace, where, size, after)
        return PreferencePage([preference_from_record(one) for one in page.records], page.next)

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
        raise ContentionError(NOUN, draft.key)

    async def _try_to_put(
        self, namespace: str, draft: PreferenceDraft, entry: Entry | None
    ) -> PutPreference | None:
        """Put, unless the request did; None if others wrote meanwhile."""
        record = await self._record(namespace, draft.key)
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
        written = await self._write(namespace, draft.key, record, given, changed)
        return None if written is None else PutPreference(written, created=record is None)

    async def _refuse_deleted(
        self, namespace: str, key: str, record: Record | None, entry: Entry
    ) -> None:
        """Refuse a repeat whose preference was deleted since: one of the same key is another."""
        if await self._deleted_since(namespace, key, record, entry.create_time) or (
            record is None and entry.result is not None
        ):
            raise PreferenceNotFoundError(
                namespace, key, "it was deleted after this request's first try"
            )

    async def _deleted_since(
        self, namespace: str, key: str, record: Record | None, time: int
    ) -> bool:
        stone = await self._tombstones.find(namespace, NOUN, key)
        if stone is None or stone.delete_time < time:
            return False
        return record is None or record.payload[SORT_KEY] != stone.sort_key

    async def take_in(
        self,
        namespace: str,
        key: str,
        value: Any,
        category: str,
        event_point: str,
        repeat_of: int | None = None,
    ) -> None:
        """Give a preference the value that a learning event taught, unless it took it in before.

        ``repeat_of``: the time of an event that may have been taken in by an earlier try; then what
        was deleted since stays away. Raises ContentionError.
        """
        for attempt in range(_TRIES):
            record = await self._record(namespace, key)
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
            if await self._write(namespace, key, record, (value, category), {UNSETTLED: left}):
                return
            await pause_before_retry(attempt)
        raise ContentionError(NOUN, key)

    async def _write(
        self,
        namespace: str,
        key: str,
        record: Record | None,
        given: tuple[Any, str],
        further: Mapping[str, Any],
    ) -> Preference | None:
        """Write a value over the record that was read; None if it is another by now."""
        now = self._moments.now()
        if record is None:
            made = Preference(namespace, key, *given, revision=1, create_time=now, update_time=now)
            first = preference_record(made, self._moments.sort_key())
            first.payload.update(further)
            return made if first.id in await self._store.insert(PREFERENCES, [first]) else None
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
        if not await self._store.update(
            PREFERENCES,
            namespace,
            record.id,
            set={**value_payload(new), **further},
            when=[Equals(REVISION, old.revision), Equals(SORT_KEY, record.payload[SORT_KEY])],
        ):
            await self._drop_former_of_none(record)
            return None
        if new.revision > HISTORY + 1:
            too_old = Range(REVISION, lt=new.revision - HISTORY)
            await self._store.delete(
                PREFERENCE_REVISIONS, namespace, [*revisions_of(record), too_old]
            )
        return new

    async def _drop_former_of_none(self, record: Record) -> None:
        """Drop what was written down of a preference that was deleted just then."""
        there = await self._record(record.namespace, record.payload["key"])
        if there is None or there.payload[SORT_KEY] != record.payload[SORT_KEY]:
            await self._store.delete(PREFERENCE_REVISIONS, record.namespace, revisions_of(record))

    # --- deleting -----------------------------------------------------------------------------

    async def delete(self, namespace: str, key: str, etag: str = "") -> None:
        """Delete one with its history. Raises PreferenceNotFoundError, EtagMismatchError."""
        while True:
            record = await self._record(namespace, key)
            if record is None:
                raise PreferenceNotFoundError(namespace, key)
            current = preference_from_record(record).etag
            if etag and etag != current:
                raise EtagMismatchError(NOUN, key, etag, current)
            stone = await self._tombstones.begin(NOUN, key, record)
            if await self.finish_delete(stone):
                return

    async def finish_delete(self, stone: Tombstone) -> bool:
        """Carry out a delete that was written down; False if a new value was put since."""
        point = preference_point(stone.namespace, stone.id)
        await self._store.delete(
            PREFERENCES, stone.namespace, [IdIn((point,)), *stone.conditions()]
        )
        left = (await self._store.get(PREFERENCES, stone.namespace, [point])).get(point)
        gone = left is None or left.payload[SORT_KEY] != stone.sort_key
        if gone:
            theirs = [Equals("key", stone.id), Equals(SORT_KEY, stone.sort_key)]
            await self._store.delete(PREFERENCE_REVISIONS, stone.namespace, theirs)
        await self._tombstones.finish(stone)
        return gone

    async def _record(self, namespace: str, key: str) -> Record | None:
        point = preference_point(namespace, key)
        return (await self._store.get(PREFERENCES, namespace, [point])).get(point)


def _check_etag(namespace: str, draft: PreferenceDraft, record: Record | None) -> None:
    """Refuse what was put on top of another value, or of none."""
    if not draft.etag:
        return
    if record is None:
        raise PreferenceNotFoundError(namespace, draft.key, "put it without etag to make it")
    current = preference_from_record(record).etag
    if draft.etag != current:
        raise EtagMismatchError(NOUN, draft.key, draft.etag, current)


def _has(record: Record, draft: PreferenceDraft) -> bool:
    """Whether a preference has the value and category that are put."""
    payload = record.payload
    same = value_text(preference_from_record(record).value) == value_text(draft.value)
    return same and draft.category in ("", payload["category"])
