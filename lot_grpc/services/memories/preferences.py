"""Preferences: new values, with the former ones kept."""

from __future__ import annotations

from typing import Any

from lot_grpc.domain.errors import ContentionError
from lot_grpc.domain.preference import Preference
from lot_grpc.ports import Equals, Record, VectorStore
from lot_grpc.services.moments import Moments
from lot_grpc.services.pacing import pause_before_retry
from lot_grpc.services.records.collections import (
    LEARNING_EVENTS,
    PREFERENCE_REVISIONS,
    PREFERENCES,
)
from lot_grpc.services.records.learning_events import SETTLED
from lot_grpc.services.records.preferences import (
    REVISION,
    UNSETTLED,
    preference_from_record,
    preference_point,
    preference_record,
    revision_record,
    value_payload,
)
from lot_grpc.services.settling import settled_among

_TRIES = 50


class Preferences:
    """The preferences of all namespaces."""

    def __init__(self, store: VectorStore, moments: Moments) -> None:
        self._store = store
        self._moments = moments

    async def find(self, namespace: str, key: str) -> Preference | None:
        """One preference, None if there is none."""
        record = await self._record(namespace, key)
        return None if record is None else preference_from_record(record)

    async def take_in(
        self, namespace: str, key: str, value: Any, category: str, event_point: str
    ) -> None:
        """Give a preference the value that a learning event taught, unless it took it in before.

        The former value is written down first. Raises ContentionError.
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
            left = [*(one for one in unsettled if one not in settled), event_point]
            if await self._write(namespace, key, record, (value, category), left):
                return
            await pause_before_retry(attempt)
        raise ContentionError("preference", key)

    async def _write(
        self,
        namespace: str,
        key: str,
        record: Record | None,
        given: tuple[Any, str],
        unsettled: list[str],
    ) -> bool:
        """Write a value over the record that was read; False if it is another by now."""
        now = self._moments.now()
        if record is None:
            first = preference_record(
                Preference(namespace, key, *given, revision=1, create_time=now, update_time=now),
                self._moments.sort_key(),
            )
            first.payload[UNSETTLED] = unsettled
            return first.id in await self._store.insert(PREFERENCES, [first])
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
        return await self._store.update(
            PREFERENCES,
            namespace,
            record.id,
            set={**value_payload(new), UNSETTLED: unsettled},
            when=[Equals(REVISION, old.revision)],
        )

    async def _record(self, namespace: str, key: str) -> Record | None:
        point = preference_point(namespace, key)
        return (await self._store.get(PREFERENCES, namespace, [point])).get(point)
