"""Preference ⇄ Record. The value is kept as JSON text, since null is a value too."""

from __future__ import annotations

import json
from typing import Any

from lot_grpc.domain.ids import point_id
from lot_grpc.domain.json_values import json_text
from lot_grpc.domain.preference import Preference, PreferenceRevision
from lot_grpc.ports import Condition, Equals, Payload, Record
from lot_grpc.services.records.collections import SORT_KEY
from lot_grpc.services.records.fields import FieldCodec, any_of

REVISION = "revision"

PENDING = "pending_events"
"""Learning events whose value it took and that may not be settled."""

PENDING_REQUESTS = "pending_requests"
"""Requests whose value it took and that may be sent again."""

TASK_HASH = "task_hash"
"""Of what feedback taught: that of its task."""

CREATED_BY = "created_by"
"""The request that made it, if that had an id."""


_PREFERENCE = FieldCodec(Preference, sparse=False, skip={"namespace"}, values={"value": json.loads})
_FORMER = FieldCodec(PreferenceRevision, sparse=False, values={"value": json.loads})


def preference_point(namespace: str, key: str) -> str:
    """Where a preference lies."""
    return point_id(namespace, "preference", key)


def value_text(value: Any) -> str:
    """A JSON value as it is kept: equal values have equal texts."""
    return json_text(value, compact=True)


def value_payload(preference: Preference) -> Payload:
    """The keys that each new value writes."""
    return {
        "value": value_text(preference.value),
        "category": preference.category,
        REVISION: preference.revision,
        "update_time": preference.update_time,
    }


def preference_record(preference: Preference, sort_key: int) -> Record:
    """The record of a first value."""
    payload: Payload = {
        "key": preference.key,
        **value_payload(preference),
        "create_time": preference.create_time,
        PENDING: [],
        SORT_KEY: sort_key,
    }
    return Record(
        preference_point(preference.namespace, preference.key), preference.namespace, payload
    )


def preference_from_record(record: Record) -> Preference:
    """The preference of a record."""
    return _PREFERENCE.read(record.payload, namespace=record.namespace)


def revision_record(record: Record) -> Record:
    """The present value of a preference as a former one.

    Its place has the sort key as well: a preference that is deleted and made again has another.
    """
    payload = record.payload
    parts = (payload["key"], str(payload[SORT_KEY]), str(payload[REVISION]))
    names = ("key", "value", "category", REVISION, "update_time", SORT_KEY)
    return Record(
        point_id(record.namespace, "preference_revision", *parts),
        record.namespace,
        {name: payload[name] for name in names},
    )


def revision_from_record(record: Record) -> PreferenceRevision:
    """The former value of a record."""
    return _FORMER.read(record.payload)


def revisions_of(record: Record) -> list[Condition]:
    """What picks the former values of one preference: not those of another that had its key."""
    return [Equals("key", record.payload["key"]), Equals(SORT_KEY, record.payload[SORT_KEY])]


def preference_conditions(categories: tuple[str, ...]) -> list[Condition]:
    """Any of the categories; none named is all."""
    return any_of("category", categories)
