"""Preference ⇄ Record. The value is stored as JSON text, since null is a value too."""

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
"""Learning events whose value was applied and that may not be settled."""

PENDING_REQUESTS = "pending_requests"
"""Requests whose value was applied and that may be repeated."""

TASK_HASH = "task_hash"
"""On what was learned from feedback: the task's."""

CREATED_BY = "created_by"
"""The request that created it, if it had an id."""


_PREFERENCE = FieldCodec(Preference, sparse=False, skip={"namespace"}, values={"value": json.loads})
_FORMER = FieldCodec(PreferenceRevision, sparse=False, values={"value": json.loads})


def preference_point(namespace: str, key: str) -> str:
    """The point id of a preference."""
    return point_id(namespace, "preference", key)


def value_text(value: Any) -> str:
    """A JSON value in its stored form: equal values have equal texts."""
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
    """Encode a preference with its first value."""
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
    """Decode the preference of a record."""
    return _PREFERENCE.read(record.payload, namespace=record.namespace)


def revision_record(record: Record) -> Record:
    """The current value of a preference as a record of its history.

    Its point id depends on the sort key: a preference that is deleted and recreated has another.
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
    """Decode the former value of a record."""
    return _FORMER.read(record.payload)


def revisions_of(record: Record) -> list[Condition]:
    """Conditions for the former values of one preference, not of an earlier one with its key."""
    return [Equals("key", record.payload["key"]), Equals(SORT_KEY, record.payload[SORT_KEY])]


def preference_conditions(categories: tuple[str, ...]) -> list[Condition]:
    """Any of the categories; none given: all."""
    return any_of("category", categories)
