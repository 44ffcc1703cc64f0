"""Sessions and former values come back from their records, through JSON, as they were."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lot_grpc.domain.preference import Preference
from lot_grpc.domain.session import SessionMessage, SessionValue
from lot_grpc.ports import Record
from lot_grpc.server.codec import sessions as convert
from lot_grpc.services.records.preferences import (
    preference_record,
    revision_from_record,
    revision_record,
    value_text,
)
from lot_grpc.services.records.sessions import (
    SessionRow,
    message_from_payload,
    message_payload,
    message_point,
    message_record,
    session_record,
    session_row,
    value_from_record,
    value_point,
    value_record,
)
from tests.unit.made import ids, json_values, some_words, times, words

counts = st.integers(0, 2**40)
messages = st.builds(
    SessionMessage,
    role=some_words,
    content=words,
    name=words,
    metadata=st.binary(max_size=40),
    message_time=times,
    sequence=st.integers(1, 2**40),
)
session_rows = st.builds(
    SessionRow,
    namespace=ids,
    session_id=ids,
    generation=counts,
    max_messages=st.integers(1, 1000),
    ttl=st.integers(1, 2**40),
    create_time=times,
    update_time=times,
    expire_time=times,
    revision=counts,
    last_sequence=counts,
    gone_sequence=counts,
    values_put=counts,
    bytes_put=counts,
    latest=st.just({}) | messages.map(message_payload),
    pending=st.dictionaries(ids, st.tuples(counts, times), max_size=3),
    former=st.lists(counts, max_size=3).map(tuple),
)


def through_json(record: Record) -> Record:
    return replace(record, payload=json.loads(json.dumps(record.payload)))


@given(session_rows)
def test_a_row_comes_back_as_it_was(row):
    record = through_json(session_record(row))
    assert session_row(record) == row
    assert record.id == row.point


@given(session_rows, messages)
def test_a_message_comes_back_from_the_row_and_from_its_part(row, message):
    payload = json.loads(json.dumps(message_payload(message)))
    assert message_from_payload(payload) == message
    record = through_json(message_record(row, payload))
    assert message_from_payload(record.payload) == message
    assert record.id == message_point(row, message.sequence)
    parts = (message.role, message.content, message.name)
    assert payload["size"] == sum(len(one.encode()) for one in parts) + len(message.metadata)


session_values = st.builds(
    SessionValue,
    data=st.binary(max_size=60),
    category=words,
    importance=st.floats(0, 1),
    update_time=times,
)


@given(session_rows, words, session_values)
def test_a_value_comes_back_from_its_part(row, key, value):
    record = through_json(value_record(row, key, value))
    assert value_from_record(record) == value
    assert record.payload["size"] == len((key + value.category).encode()) + len(value.data)
    assert record.id == value_point(row, key)


@given(session_rows, words, words)
def test_parts_of_other_keys_and_generations_lie_elsewhere(row, one, other):
    later = replace(row, generation=row.generation + 1)
    assert (value_point(row, one) == value_point(row, other)) == (one == other)
    assert value_point(row, one) != value_point(later, one)
    assert message_point(row, 1) != message_point(later, 1)
    assert message_point(row, 1) != message_point(row, 11)


@given(session_rows)
def test_every_field_of_a_session_is_told(row):
    told = convert.session_to_pb(
        replace(
            row.session(),
            values={"k": SessionValue(b"\x20\x01")},
            messages=(SessionMessage("user"),),
        )
    )
    for field in fields(row.session()):
        if field.name in {"omitted_keys", "ended_early"}:  # the response tells these beside it
            continue
        assert field.name in told.DESCRIPTOR.fields_by_name
    assert told.values["k"].bool_value is True
    assert (told.last_sequence, told.max_messages) == (row.last_sequence, row.max_messages)
    assert convert.message_from_pb(told.messages[0], "") == SessionMessage("user")


@given(ids, json_values, some_words, counts, times)
def test_a_former_value_comes_back_as_it_was(key, value, category, sort_key, time):
    one = Preference("ns", key, value, category, 3, time, time)
    former: Any = revision_from_record(
        through_json(revision_record(preference_record(one, sort_key)))
    )
    assert (former.revision, former.category, former.update_time) == (3, category, time)
    assert value_text(former.value) == value_text(value)
