"""The values, messages and clearing of sessions on the wire."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from google.protobuf.struct_pb2 import Struct, Value

from lot_grpc.pb.lot.v1 import session_pb2
from lot_grpc.server.limits import Limits
from tests.server.service import Lot, serving
from tests.server.test_memories_preferences import TEXTS, value
from tests.server.wire import failure

P: Any = session_pb2
KIB = 1024


async def append(lot: Lot, content: str = "hello", session_id: str = "s", **named: Any) -> Any:
    message = P.SessionMessage(role="user", content=content)
    return await lot.memories.AppendSessionMessage(session_id=session_id, message=message, **named)


async def put(lot: Lot, key: str, json: Any = 1, session_id: str = "s", **named: Any) -> Any:
    return await lot.memories.PutSessionValue(
        session_id=session_id, key=key, value=value(json), **named
    )


async def got(lot: Lot, session_id: str = "s", **named: Any) -> Any:
    return (await lot.memories.GetSession(session_id=session_id, **named)).session


def contents(session: Any) -> list[str]:
    return [message.content for message in session.messages]


async def test_every_field_of_a_message_comes_back_as_it_was_given(lot):
    metadata = Struct()
    metadata.update({"a": [1, None, {"b": True}]})
    given = P.SessionMessage(
        role="tool",
        content="done",
        name="pytest",
        metadata=metadata,
        message_time=datetime(2024, 1, 2, tzinfo=UTC),
        sequence=77,
    )
    unset = {f.name for f in given.DESCRIPTOR.fields} - {f.name for f, _ in given.ListFields()}
    assert not unset
    answer = await lot.memories.AppendSessionMessage(
        session_id="s", message=given, max_messages=5, ttl=timedelta(minutes=10)
    )
    given.sequence = 1
    assert answer.message == given
    assert answer.message_count == 1
    session = await got(lot)
    assert list(session.messages) == [given]
    assert (session.session_id, session.namespace) == ("s", lot.namespace)
    assert (session.max_messages, session.last_sequence) == (5, 1)
    assert session.ttl.ToTimedelta() == timedelta(minutes=10)
    assert session.expire_time == answer.expire_time
    lived = session.expire_time.ToDatetime() - session.update_time.ToDatetime()
    assert lived == timedelta(minutes=10)
    assert session.create_time == session.update_time


async def test_what_a_message_leaves_out_is_given_its_default(lot):
    answer = await append(lot, "")
    assert answer.message.HasField("message_time")
    assert not answer.message.HasField("metadata")
    session = await got(lot)
    assert list(session.messages) == [answer.message]
    assert session.max_messages == 50
    assert session.ttl.ToTimedelta() == timedelta(hours=24)


@pytest.mark.parametrize(
    "json", [None, False, 0, -1.5, "", "null", [], [None], {}, {"a": {"b": [1, "1", True]}}]
)
async def test_any_json_value_comes_back_as_it_was_given(lot, json):
    await put(lot, "k", json)
    answer = await lot.memories.GetSessionValue(session_id="s", key="k")
    assert (answer.found, answer.value) == (True, value(json))
    assert dict((await got(lot)).values) == {"k": value(json)}


@pytest.mark.parametrize("text", [*TEXTS, " ", "a.b", "a b", "%s", "k=v", '"', "\n"])
async def test_texts_of_any_script_are_keys_values_and_messages(lot, text):
    await put(lot, text, {text: [text]})
    await put(lot, f"{text}x", "other")
    answer = await lot.memories.GetSessionValue(session_id="s", key=text)
    assert answer.value == value({text: [text]})
    message = P.SessionMessage(role=text, content=text, name=text)
    await lot.memories.AppendSessionMessage(session_id="s", message=message)
    session = await got(lot)
    assert sorted(session.values) == sorted([text, f"{text}x"])
    assert [(one.role, one.content, one.name) for one in session.messages] == [(text,) * 3]
    await lot.memories.ClearSession(session_id="s", keys=[text])
    assert list((await got(lot)).values) == [f"{text}x"]


async def test_a_key_that_is_not_there_is_told_from_a_session_that_is_not(lot):
    failed = await failure(lot.memories.GetSessionValue(session_id="s", key="k"))
    assert (failed.code, failed.reason) == ("NOT_FOUND", "SESSION_NOT_FOUND")
    assert failed.metadata == {"namespace": lot.namespace, "id": "s"}
    assert failed.details["ResourceInfo"].resource_type == "lot.v1.Session"
    await append(lot)
    answer = await lot.memories.GetSessionValue(session_id="s", key="k")
    assert (answer.found, answer.HasField("value")) == (False, False)


async def test_null_is_a_value_and_none_at_all_is_refused(lot):
    failed = await failure(lot.memories.PutSessionValue(session_id="s", key="k"))
    assert failed.fields == {"value": "required"}
    failed = await failure(lot.memories.PutSessionValue(session_id="s", key="k", value=Value()))
    assert failed.fields == {"value": "value.kind"}
    for number in (float("nan"), float("inf")):
        failed = await failure(put(lot, "k", [number]))
        assert failed.reason == "REQUEST_INVALID"
        assert list(failed.fields) == ["value[0]"]
    assert (await failure(got(lot))).reason == "SESSION_NOT_FOUND", "nothing was begun"


async def test_what_is_too_large_is_refused_with_its_field_and_bound(lot):
    failed = await failure(put(lot, "k", "x" * 2_000_000))
    assert failed.fields == {"value": "value.max_bytes"}
    assert "at most 262,144 bytes" in failed.message
    failed = await failure(append(lot, "x" * (256 * KIB + 1)))
    assert failed.fields == {"message.content": "string.max_bytes"}
    metadata = value({"a": "x" * 256 * KIB}).struct_value
    failed = await failure(
        lot.memories.AppendSessionMessage(
            session_id="s", message=P.SessionMessage(role="user", metadata=metadata)
        )
    )
    assert failed.fields == {"message.metadata": "struct.max_bytes"}
    assert (await failure(got(lot))).reason == "SESSION_NOT_FOUND", "nothing was begun"
    await put(lot, "k", "x" * (256 * KIB - 4))
    await append(lot, "x" * 256 * KIB)
    assert len((await got(lot)).messages[0].content) == 256 * KIB


@pytest.mark.parametrize(
    ("named", "field"),
    [
        ({"max_messages": 1001}, "max_messages"),
        ({"max_messages": -1}, "max_messages"),
        ({"ttl": timedelta(0)}, "ttl"),
        ({"ttl": timedelta(seconds=-1)}, "ttl"),
        ({"ttl": timedelta(days=1_500_000)}, "ttl"),
    ],
)
async def test_a_bad_window_or_ttl_is_refused(lot, named, field):
    failed = await failure(append(lot, **named))
    assert (failed.code, list(failed.fields)) == ("INVALID_ARGUMENT", [field])
    if field == "ttl":
        failed = await failure(put(lot, "k", **named))
        assert list(failed.fields) == [field]


async def test_more_values_than_a_session_holds_are_refused_by_name(lot):
    large = "x" * (256 * KIB - 100)
    for number in range(32):
        await put(lot, f"k{number}", large)
    failed = await failure(put(lot, "more", large))
    assert (failed.code, failed.reason) == ("FAILED_PRECONDITION", "SESSION_FULL")
    assert failed.metadata == {
        "namespace": lot.namespace,
        "id": "s",
        "limit": "8 MiB of values",
    }
    assert failed.details["PreconditionFailure"].violations[0].subject == "s"
    assert "ClearSession" in failed.message
    assert not (await lot.memories.GetSessionValue(session_id="s", key="more")).found


async def test_a_session_larger_than_an_answer_is_read_on():
    async with serving(limits=Limits(max_message_bytes=100_000)) as lot:
        for number in range(5):
            await append(lot, f"{number}" * 30_000)
        for name in ("a", "b"):
            await put(lot, name, "v" * 30_000)
        answer = await lot.memories.GetSession(session_id="s")
        assert [one.sequence for one in answer.session.messages] == [4, 5]
        assert (list(answer.session.values), list(answer.omitted_keys)) == (["a"], ["b"])
        assert [one.field for one in answer.notices] == ["session.values", "session.messages"]
        assert "begin at 4; continue with before_sequence" in answer.notices[1].message
        older = await lot.memories.GetSession(session_id="s", before_sequence=4)
        assert [one.sequence for one in older.session.messages] == [1, 2, 3]
        assert (older.session.values, older.omitted_keys, list(older.notices)) == ({}, [], [])


async def test_a_value_has_the_category_and_importance_that_it_was_put_with_and_its_time(lot):
    await put(lot, "plain")
    lot.clock.advance(5)
    await put(lot, "k", category="tool_output", importance=0.0)
    session = await got(lot)
    assert set(session.value_details) == {"plain", "k"}
    plain, given = session.value_details["plain"], session.value_details["k"]
    assert (plain.category, plain.importance) == ("general", 0.5)
    assert plain.update_time == session.create_time
    assert (given.category, given.importance) == ("tool_output", 0.0)
    assert given.update_time == session.update_time
    answer = await lot.memories.GetSessionValue(session_id="s", key="k")
    assert answer.details == given
    await put(lot, "k", 2)  # whole: it keeps nothing of the former one
    assert (await got(lot)).value_details["k"].category == "general"
    answer = await lot.memories.GetSessionValue(session_id="s", key="none")
    assert not answer.HasField("details")


@pytest.mark.parametrize(
    ("named", "field"),
    [
        ({"category": "x" * 257}, "category"),
        ({"importance": -0.1}, "importance"),
        ({"importance": 1.1}, "importance"),
        ({"importance": float("nan")}, "importance"),
    ],
)
async def test_a_bad_category_or_importance_is_refused(lot, named, field):
    assert list((await failure(put(lot, "k", **named))).fields) == [field]


async def test_values_of_little_importance_are_cleared_together(lot):
    for number in range(5):
        await put(lot, f"k{number}", importance=number / 4)
    await put(lot, "plain")
    await append(lot)
    await lot.memories.ClearSession(session_id="s", max_importance=0.0)
    assert sorted((await got(lot)).values) == ["k1", "k2", "k3", "k4", "plain"]
    await lot.memories.ClearSession(session_id="s", max_importance=0.5, keys=["k4"])
    session = await got(lot)
    assert (list(session.values), contents(session)) == (["k3"], ["hello"])
    await lot.memories.ClearSession(session_id="s", max_importance=1.0, clear_messages=True)
    session = await got(lot)
    assert (list(session.values), contents(session)) == ([], [])


async def test_the_most_important_values_are_in_a_response_that_has_no_room_for_all():
    async with serving(limits=Limits(max_message_bytes=100_000)) as lot:
        for name, importance in (("a", 0.1), ("b", 0.9), ("c", 0.2)):
            await put(lot, name, "v" * 30_000, importance=importance)
        answer = await lot.memories.GetSession(session_id="s")
        assert (list(answer.session.values), list(answer.omitted_keys)) == (["b"], ["c", "a"])
        assert list(answer.session.value_details) == ["b"]


async def test_the_window_holds_the_latest_and_a_limit_gives_the_latest_of_them(lot):
    for number in range(60):
        answer = await append(lot, f"{number}")
    assert (answer.message.sequence, answer.message_count) == (60, 50)
    session = await got(lot)
    assert contents(session) == [f"{number}" for number in range(10, 60)]
    assert [one.sequence for one in session.messages] == list(range(11, 61))
    assert contents(await got(lot, message_limit=2)) == ["58", "59"]
    await append(lot, "60", max_messages=2)
    assert contents(await got(lot)) == ["59", "60"]


async def test_a_request_id_is_safe_to_repeat_and_refused_for_others(lot):
    first = await append(lot, "one", request_id="r")
    await append(lot, "two", max_messages=1)
    again = await append(lot, "one", request_id="r")
    assert (again.message, again.message_count) == (first.message, 1)
    assert contents(await got(lot)) == ["two"]
    failed = await failure(append(lot, "other", request_id="r"))
    assert (failed.code, failed.reason) == ("ALREADY_EXISTS", "REQUEST_ID_REUSED")
    await lot.memories.ClearSession(session_id="s")
    failed = await failure(append(lot, "one", request_id="r"))
    assert (failed.code, failed.reason) == ("NOT_FOUND", "SESSION_NOT_FOUND")
    assert "use a new request_id" in failed.message


async def test_a_session_that_was_cleared_is_gone_and_its_id_is_free(lot):
    await append(lot)
    await put(lot, "k")
    assert (await lot.memories.ClearSession(session_id="s")).cleared
    for call in (
        got(lot),
        lot.memories.GetSessionValue(session_id="s", key="k"),
        lot.memories.ClearSession(session_id="s"),
        lot.memories.ClearSession(session_id="s", keys=["k"]),
        lot.memories.ClearSession(session_id="s", clear_messages=True),
    ):
        failed = await failure(call)
        assert (failed.code, failed.reason) == ("NOT_FOUND", "SESSION_NOT_FOUND")
    missing = await lot.memories.ClearSession(session_id="s", allow_missing=True)
    assert not missing.cleared
    assert (await append(lot, "new")).message.sequence == 1
    session = await got(lot)
    assert (contents(session), dict(session.values)) == (["new"], {})


async def test_parts_are_cleared_and_the_rest_stays(lot):
    for key in "abc":
        await put(lot, key)
    await append(lot, "one")
    assert (await lot.memories.ClearSession(session_id="s", keys=["a", "none"])).cleared
    session = await got(lot)
    assert (sorted(session.values), contents(session)) == (["b", "c"], ["one"])
    assert (await lot.memories.ClearSession(session_id="s", clear_messages=True)).cleared
    session = await got(lot)
    assert (sorted(session.values), contents(session)) == (["b", "c"], [])
    assert session.last_sequence == 1
    assert (await append(lot, "two")).message.sequence == 2
    await lot.memories.ClearSession(session_id="s", keys=["b"], clear_messages=True)
    session = await got(lot)
    assert (sorted(session.values), contents(session)) == (["c"], [])
    failed = await failure(lot.memories.ClearSession(session_id="s", keys=["c", "c"]))
    assert failed.fields == {"keys": "repeated.unique"}


async def test_writing_renews_the_life_and_what_lapsed_is_absent(lot):
    clock = lot.clock
    await put(lot, "k", ttl=timedelta(seconds=10))
    clock.advance(9)
    told = (await append(lot)).expire_time
    assert told == (await got(lot)).expire_time
    clock.advance(9)
    await got(lot)
    clock.advance(1)
    for call in (
        got(lot),
        lot.memories.GetSessionValue(session_id="s", key="k"),
        lot.memories.ClearSession(session_id="s"),
    ):
        assert (await failure(call)).reason == "SESSION_NOT_FOUND"
    answer = await append(lot, "new")
    assert (answer.message.sequence, answer.message_count) == (1, 1)
    session = await got(lot)
    assert (contents(session), dict(session.values)) == (["new"], {})
    assert session.ttl.ToTimedelta() == timedelta(hours=24)


async def test_namespaces_do_not_see_each_other(lot):
    other = lot.on(f"{lot.namespace}-other")
    await append(lot, "mine")
    assert (await failure(got(other))).reason == "SESSION_NOT_FOUND"
    assert (await append(other, "theirs")).message.sequence == 1
    await other.memories.ClearSession(session_id="s")
    assert contents(await got(lot)) == ["mine"]
