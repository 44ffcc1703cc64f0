"""The kind ``preference``: what it stores, and how the general parts treat it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.errors import PreferenceNotFoundError
from lot_grpc.domain.ids import point_id
from lot_grpc.ports import Order, Payload, Range, Record, VectorStore
from lot_grpc.services.records.collections import PREFERENCE_REVISIONS, PREFERENCES, SORT_KEY
from lot_grpc.services.records.preferences import (
    CREATED_BY,
    PENDING,
    PENDING_REQUESTS,
    REVISION,
    preference_conditions,
    preference_from_record,
    preference_point,
    revision_from_record,
    revisions_of,
)
from lot_grpc.services.resource_spec import (
    CHANGE_INDEXES,
    ExportRule,
    Place,
    RecordSet,
    ResourceCollection,
    ResourceSpec,
    WatchRule,
    indexes,
)

_REVISIONS_AT_ONCE = 16


def _revision_point(namespace: str, payload: Payload) -> str:
    parts = (payload["key"], str(payload[SORT_KEY]), str(payload[REVISION]))
    return point_id(namespace, "preference_revision", *parts)


def _preference_of(namespace: str, payload: Payload) -> Place:
    return PREFERENCES, preference_point(namespace, payload["key"])


async def _revisions_of(
    store: VectorStore, stored: Record, after: str
) -> AsyncIterator[tuple[Record, str]]:
    """Former values by number, the oldest first."""
    last = int(after or 0)
    while True:
        found = await store.scroll(
            PREFERENCE_REVISIONS,
            stored.namespace,
            [*revisions_of(stored), Range(REVISION, gt=last)],
            limit=_REVISIONS_AT_ONCE,
            order=Order(REVISION),
        )
        for record in found:
            last = record.payload[REVISION]
            yield record, str(last)
        if len(found) < _REVISIONS_AT_ONCE:
            return


PREFERENCE: Final = ResourceSpec(
    kind=ResourceKind.PREFERENCE,
    id_key="key",
    point=preference_point,
    read=preference_from_record,
    conditions=preference_conditions,
    missing=PreferenceNotFoundError,
    method="PutPreference",
    collection=ResourceCollection(
        name=PREFERENCES,
        description="A preference with its current value.",
        indexes=CHANGE_INDEXES | indexes(keyword="category task_hash", integer=SORT_KEY),
        export=ExportRule(dropped=frozenset({PENDING_REQUESTS, CREATED_BY}), done={PENDING: []}),
    ),
    parts=(
        ResourceCollection(
            name=PREFERENCE_REVISIONS,
            description="A former value of a preference.",
            key="`key`, `sort_key`, `revision`",
            indexes=indexes(keyword="key", integer=f"revision {SORT_KEY}"),
            read=revision_from_record,
            export=ExportRule(
                point=_revision_point,
                id_keys=(REVISION,),
                parents=(PREFERENCES,),
                parent=_preference_of,
                birth=lambda payload: payload[SORT_KEY],
                inner=_revisions_of,
            ),
        ),
    ),
    belongings=lambda record: (RecordSet(PREFERENCE_REVISIONS, tuple(revisions_of(record))),),
    watch=WatchRule(),
    named_for_subject=True,
)
