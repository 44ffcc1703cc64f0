"""The kind ``session``: what it stores, and how the general parts treat it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.errors import SessionNotFoundError
from lot_grpc.domain.ids import point_id
from lot_grpc.domain.session import MAX_VALUES
from lot_grpc.ports import Payload, Record, VectorStore
from lot_grpc.services.records.collections import SESSION_PARTS, SESSIONS, SORT_KEY
from lot_grpc.services.records.sessions import (
    FORMER,
    GENERATION,
    PART,
    PENDING,
    SEQUENCE,
    VALUE,
    SessionRow,
    kind_of,
    message_from_payload,
    message_point,
    parts_of,
    session_from_record,
    session_point,
    session_row,
    value_from_record,
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

_PARTS_AT_ONCE = 16
"""A part may have half a megabyte."""

_VALUES, _MESSAGES = "v", "w"
"""How the names of parts begin, in the order in which they come."""


def _part_point(namespace: str, payload: Payload) -> str:
    session_id, generation = payload["session_id"], str(payload[GENERATION])
    if payload[PART] == VALUE:
        return point_id(namespace, "session_value", session_id, generation, payload["key"])
    sequence = str(payload[SEQUENCE])
    return point_id(namespace, "session_message", session_id, generation, sequence)


def _part(record: Record) -> Any:
    if record.payload[PART] == VALUE:
        return value_from_record(record)
    return message_from_payload(record.payload)


def _session_of(namespace: str, payload: Payload) -> Place:
    return SESSIONS, session_point(namespace, payload["session_id"])


def _belongings(record: Record) -> tuple[RecordSet, ...]:
    theirs = parts_of(record.payload["session_id"], (record.payload[SORT_KEY],))
    return (RecordSet(SESSION_PARTS, tuple(theirs)),)


async def _parts_of(
    store: VectorStore, session: Record, after: str
) -> AsyncIterator[tuple[Record, str]]:
    """Values by key, then messages by number."""
    row = session_row(session)
    if not after.startswith(_MESSAGES):
        async for part in _values_of(store, row, after.removeprefix(_VALUES)):
            yield part
    first = int(after[1:]) if after.startswith(_MESSAGES) else 0
    last = max(first, row.gone_sequence)
    while last < row.last_sequence:
        numbers = range(last + 1, min(last + _PARTS_AT_ONCE, row.last_sequence) + 1)
        points = {message_point(row, number): number for number in numbers}
        found = await store.get(SESSION_PARTS, row.namespace, list(points))
        for point, number in points.items():
            if point in found:  # else it fell out of the window meanwhile
                yield found[point], f"{_MESSAGES}{number}"
        last = numbers[-1]


async def _values_of(
    store: VectorStore, row: SessionRow, after: str
) -> AsyncIterator[tuple[Record, str]]:
    named = await store.scroll(
        SESSION_PARTS, row.namespace, kind_of(row, VALUE), limit=2 * MAX_VALUES, payload=("key",)
    )
    named = sorted(
        (one for one in named if one.payload["key"] > after),
        key=lambda one: str(one.payload["key"]),
    )
    for start in range(0, len(named), _PARTS_AT_ONCE):
        batch = named[start : start + _PARTS_AT_ONCE]
        found = await store.get(SESSION_PARTS, row.namespace, [one.id for one in batch])
        for one in batch:
            if one.id in found:
                yield found[one.id], f"{_VALUES}{one.payload['key']}"


SESSION: Final = ResourceSpec(
    kind=ResourceKind.SESSION,
    id_key="session_id",
    point=session_point,
    read=session_from_record,
    missing=SessionNotFoundError,
    collection=ResourceCollection(
        name=SESSIONS,
        description="A session, until it expires; its values and messages are apart.",
        indexes=CHANGE_INDEXES | indexes(integer=f"former_generations {SORT_KEY}"),
        export=ExportRule(done={PENDING: {}, FORMER: []}),
    ),
    parts=(
        ResourceCollection(
            name=SESSION_PARTS,
            description="One value or message of a session.",
            key="`session_id`, `generation`, `key` of a value or `sequence` of a message",
            indexes=indexes(
                keyword="session_id part",
                integer="sequence",
                faceted="generation",
                floating="importance",
            ),
            read=_part,
            export=ExportRule(
                point=_part_point,
                id_keys=(PART,),
                parents=(SESSIONS,),
                parent=_session_of,
                birth=lambda payload: payload[GENERATION],
                inner=_parts_of,
                required=(),
            ),
        ),
    ),
    belongings=_belongings,
    watch=WatchRule(quiet=frozenset({FORMER})),
    named_for_subject=True,
)
