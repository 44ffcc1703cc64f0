"""Events that cannot be: the error says what and where, and the episode goes on as if none came.

Each of them is sent over a stream, one a call, and inside a whole episode. A good event and a good
end follow every time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import grpc.aio
import pytest
from google.protobuf.struct_pb2 import Struct

from lot_grpc.pb.lot.v1 import episode_pb2, episode_service_pb2, episode_service_pb2_grpc
from tests.server.service import Lot
from tests.server.wire import Failure, failure, failure_of

EVENT: Any = episode_pb2.EpisodeEvent
PB: Any = episode_service_pb2
SUCCEEDED, FAILED = episode_pb2.EPISODE_STATUS_SUCCEEDED, episode_pb2.EPISODE_STATUS_FAILED
RECORD_EVENTS = "/lot.v1.EpisodeService/RecordEvents"
MEGABYTE = 2**20


def struct(values: dict[str, Any]) -> Struct:
    made = Struct()
    made.update(values)
    return made


def nested(levels: int) -> Struct:
    inner: Any = {"a": 1}
    for _ in range(levels - 1):
        inner = {"a": inner}
    return struct(inner)


def fields(**given: Any) -> Callable[[Any], None]:
    def change(event: Any) -> None:
        event.MergeFrom(EVENT(**given))

    return change


def at(seconds: int, nanos: int = 0) -> Callable[[Any], None]:
    def change(event: Any) -> None:
        event.event_time.seconds, event.event_time.nanos = seconds, nanos

    return change


@dataclass(frozen=True)
class Bad:
    """How an event goes wrong, the field of it that is blamed, and the rule that it breaks."""

    change: Callable[[Any], None]
    field: str
    rule: str


BAD = {
    "without a type": Bad(
        lambda event: event.ClearField("event_type"), "event_type", "string.min_len"
    ),
    "with a long type": Bad(fields(event_type="x" * 257), "event_type", "string.max_bytes"),
    "with NUL in its type": Bad(fields(event_type="a\0b"), "event_type", "text.nul"),
    "with NUL in its role": Bad(fields(agent_role="a\0b"), "agent_role", "text.nul"),
    "with a role of 5 MB": Bad(
        fields(agent_role="x" * 5 * MEGABYTE), "agent_role", "string.max_bytes"
    ),
    "of 5 MB": Bad(fields(data=struct({"t": "x" * 5 * MEGABYTE})), "data", "struct.max_bytes"),
    "over 256 KiB": Bad(fields(data=struct({"t": "x" * 2**18})), "data", "struct.max_bytes"),
    "before 1970": Bad(at(-1), "event_time", "timestamp.range"),
    "in the year 1": Bad(at(-62_135_596_800), "event_time", "timestamp.range"),
    "before the year 1": Bad(at(-(2**40)), "event_time", "timestamp.range"),
    "after 9999": Bad(at(253_402_300_800), "event_time", "timestamp.range"),
    "long after 9999": Bad(at(2**62), "event_time", "timestamp.range"),
    "at a negative nanosecond": Bad(at(1, -1), "event_time", "timestamp.range"),
    "at a nanosecond too many": Bad(at(1, 10**9), "event_time", "timestamp.range"),
    "with a negative sequence": Bad(fields(sequence=-1), "sequence", "int64.gte"),
    "with the lowest sequence": Bad(fields(sequence=-(2**63)), "sequence", "int64.gte"),
    "with NaN in its metrics": Bad(
        fields(data=struct({"metrics": {"loss": float("nan")}})), "data", "number.finite"
    ),
    "with infinity in a list": Bad(
        fields(data=struct({"metrics": [1, float("-inf")]})), "data", "number.finite"
    ),
    "with NUL in its data": Bad(fields(data=struct({"a": {"b": "\0"}})), "data", "text.nul"),
    "too deep": Bad(fields(data=nested(17)), "data", "struct.depth"),
}
BAD_EVENTS = pytest.mark.parametrize("bad", BAD.values(), ids=BAD)


class Caller:
    """An agent with the generated stub, and one episode that runs and has one event."""

    def __init__(self, lot: Lot) -> None:
        self.stub: Any = episode_service_pb2_grpc.EpisodeServiceStub(lot.channel)
        self.channel = lot.channel
        self.namespace = lot.namespace

    def named(self, kind: Any, **given: Any) -> Any:
        return kind(namespace=self.namespace, episode_id="e", **given)

    async def start(self) -> None:
        episode = {"task": "t"}
        await self.stub.StartEpisode(self.named(PB.StartEpisodeRequest, episode=episode))
        await self.stub.RecordEvent(self.named(PB.RecordEventRequest, event=good()))

    async def stream(self) -> Any:
        """A stream that is open, behind the first event; it takes and gives bytes."""
        call = self.channel.stream_stream(RECORD_EVENTS)(timeout=30)
        await call.write(self.named(PB.RecordEventsRequest).SerializeToString())
        assert PB.RecordEventsResponse.FromString(await call.read()).last_sequence == 1
        return call

    async def send(self, raw: bytes) -> Any:
        """One message of bytes on an open stream; what is answered."""
        call = await self.stream()
        return await said(call, raw)

    async def goes_on(self) -> None:
        """A new stream goes on behind the first event, and the episode ends well, with three."""
        stream = self.stub.RecordEvents(timeout=30)
        await stream.write(self.named(PB.RecordEventsRequest))
        assert (await stream.read()).last_sequence == 1
        await stream.write(PB.RecordEventsRequest(events=[good(2)]))
        assert (await stream.read()).last_sequence == 2
        await stream.done_writing()
        assert await stream.read() is grpc.aio.EOF
        assert (await stream.code()).name == "OK"
        answer = await self.stub.RecordEvent(self.named(PB.RecordEventRequest, event=good()))
        assert answer.event.sequence == 3
        await self.ends()

    async def ends(self, count: int = 3) -> None:
        end = self.named(PB.EndEpisodeRequest, status=SUCCEEDED)
        ended = (await self.stub.EndEpisode(end)).episode
        assert (ended.status, ended.event_count) == (SUCCEEDED, count)
        request, events = self.named(PB.ListEpisodeEventsRequest), []
        while True:
            page = await self.stub.ListEpisodeEvents(request)
            events += page.events
            request.page_token = page.next_page_token
            if not page.next_page_token:
                break
        assert [(one.sequence, one.event_type) for one in events] == [
            (number, "x") for number in range(1, count + 1)
        ]


def good(sequence: int = 0) -> Any:
    return EVENT(sequence=sequence, event_type="x")


def wrong(bad: Bad, sequence: int = 0) -> Any:
    event = good(sequence)
    bad.change(event)
    return event


async def said(call: Any, raw: bytes) -> Any:
    await call.write(raw)
    answer = await call.read()
    return answer if answer is not grpc.aio.EOF else await call


def blamed(failed: Failure, path: str, rule: str) -> None:
    """The error names the path (or what lies in it) and the rule, and nothing else."""
    assert (failed.code, failed.reason) == ("INVALID_ARGUMENT", "REQUEST_INVALID")
    assert failed.fields, failed
    for found, broken in failed.fields.items():
        assert found == path or found.startswith((f"{path}.", f"{path}[")), failed.fields
        assert broken == rule
    assert failed.message


@pytest.fixture
async def caller(lot: Lot) -> Caller:
    made = Caller(lot)
    await made.start()
    return made


# --- one bad event --------------------------------------------------------------------------------


@BAD_EVENTS
async def test_over_a_stream(caller, bad):
    batch = PB.RecordEventsRequest(events=[good(2), wrong(bad, 3), good(4)])
    failed = await failure(caller.send(batch.SerializeToString()))
    blamed(failed, f"events[1].{bad.field}", bad.rule)
    await caller.goes_on()


@BAD_EVENTS
async def test_in_the_message_that_opens_a_stream(caller, bad):
    stream = caller.stub.RecordEvents(timeout=30)
    opening = caller.named(PB.RecordEventsRequest, events=[good(2), wrong(bad, 3)])
    failed = await failure(said(stream, opening))
    blamed(failed, f"events[1].{bad.field}", bad.rule)
    await caller.goes_on()


@BAD_EVENTS
async def test_one_a_call(caller, bad):
    request = caller.named(PB.RecordEventRequest, event=wrong(bad), request_id="r")
    failed = await failure(caller.stub.RecordEvent(request))
    if bad.field == "sequence":  # here none may be given at all
        told = failed.details["BadRequest"].field_violations
        assert {one.field for one in told} == {"event.sequence"}
        assert {one.reason for one in told} == {"event.sequence.server_given", bad.rule}
    else:
        blamed(failed, f"event.{bad.field}", bad.rule)
    # The id of a request that was refused is free.
    request = caller.named(PB.RecordEventRequest, event=good(), request_id="r")
    assert (await caller.stub.RecordEvent(request)).event.sequence == 2
    await caller.ends(2)


@BAD_EVENTS
async def test_in_a_whole_episode(caller, bad):
    def request(*events: Any) -> Any:
        return PB.RecordEpisodeRequest(
            namespace=caller.namespace,
            episode_id="whole",
            episode={"task": "t", "status": SUCCEEDED},
            events=events,
            request_id="r",
        )

    failed = await failure(caller.stub.RecordEpisode(request(good(), wrong(bad), good())))
    blamed(failed, f"events[1].{bad.field}", bad.rule)
    recorded = await caller.stub.RecordEpisode(request(good(), good()))
    assert recorded.created
    assert recorded.episode.event_count == 2
    await caller.goes_on()


# --- batches --------------------------------------------------------------------------------------


async def test_a_batch_over_the_limit(caller):
    batch = PB.RecordEventsRequest(events=[good(n) for n in range(2, 1003)])
    failed = await failure(caller.send(batch.SerializeToString()))
    blamed(failed, "events", "repeated.max_items")
    await caller.goes_on()


async def test_a_whole_episode_over_the_limit(caller):
    request = PB.RecordEpisodeRequest(
        namespace=caller.namespace,
        episode={"task": "t", "status": SUCCEEDED},
        events=[good()] * 10_001,
    )
    blamed(await failure(caller.stub.RecordEpisode(request)), "events", "repeated.max_items")
    await caller.goes_on()


async def test_all_that_is_wrong_with_a_batch_is_told_at_once(caller):
    bad = [wrong(BAD["without a type"], 2), good(3), wrong(BAD["with NaN in its metrics"], 4)]
    failed = await failure(caller.send(PB.RecordEventsRequest(events=bad).SerializeToString()))
    assert {path.partition(".")[0] for path in failed.fields} == {"events[0]", "events[2]"}
    await caller.goes_on()


@pytest.mark.parametrize("number", [0, -1, -(2**63)])
async def test_a_sequence_below_1(caller, number):
    batch = PB.RecordEventsRequest(events=[good(2), good(number)])
    failed = await failure(caller.send(batch.SerializeToString()))
    blamed(failed, "events[1].sequence", "int64.gte")
    await caller.goes_on()


async def test_a_sequence_that_is_not_the_next(caller):
    batch = PB.RecordEventsRequest(events=[good(2), good(2**63 - 1)])
    failed = await failure(caller.send(batch.SerializeToString()))
    assert (failed.code, failed.reason) == ("FAILED_PRECONDITION", "EVENT_SEQUENCE_GAP")
    assert failed.metadata["expected"] == "2"  # nothing of the batch was stored
    await caller.goes_on()


async def test_a_number_that_is_taken_by_another_event(caller):
    batch = PB.RecordEventsRequest(events=[EVENT(sequence=1, event_type="other"), good(2)])
    failed = await failure(caller.send(batch.SerializeToString()))
    assert (failed.code, failed.reason) == ("ALREADY_EXISTS", "EVENT_CONFLICT")
    assert failed.metadata["sequence"] == "1"
    await caller.goes_on()


# --- bytes that are no message --------------------------------------------------------------------


def field(number: int, value: bytes) -> bytes:
    """A field of bytes or of a message, on the wire."""
    size, rest = b"", len(value)
    while rest > 127:
        size += bytes([rest & 127 | 128])
        rest >>= 7
    return bytes([number << 3 | 2]) + size + bytes([rest]) + value


def beyond_the_parser() -> bytes:
    """An event whose data is nested deeper than any parser of protobuf goes."""
    value = b""
    for _ in range(120):
        value = field(6, field(1, value))  # Value.list_value, ListValue.values
    data = field(1, field(1, b"k") + field(2, value))
    return field(4, b"\x08\x02" + field(2, b"x") + field(4, data))


@pytest.mark.parametrize(
    ("raw", "cause"),
    [
        (field(4, b"\x08\x02" + field(2, b"\xff\xfe")), "UTF-8"),  # event_type
        (field(4, b"\x08\x02" + field(2, b"x") + field(3, b"\xc3")), "UTF-8"),  # agent_role
        # data: a key, then a text
        (field(4, b"\x08\x02" + field(2, b"x") + field(4, field(1, field(1, b"\xff")))), "UTF-8"),
        (
            field(
                4,
                b"\x08\x02"
                + field(2, b"x")
                + field(4, field(1, field(1, b"k") + field(2, field(3, b"\xed\xa0\x80")))),
            ),
            "UTF-8",
        ),
        (beyond_the_parser(), "too deep"),
        (field(4, b"\x08\x02" + field(2, b"x"))[:-1], "truncated"),
        (b"\xff" * 40, "truncated"),
    ],
    ids=["type", "role", "key", "text", "depth", "cut", "noise"],
)
async def test_bytes_that_are_no_message(caller, raw, cause):
    failed = await failure(caller.send(raw))
    assert (failed.code, failed.reason) == ("INVALID_ARGUMENT", "REQUEST_MALFORMED")
    assert failed.metadata == {"type": "lot.v1.RecordEventsRequest"}
    assert cause in failed.message
    await caller.goes_on()


async def test_a_message_of_17_mb(caller):
    """Refused by gRPC's core, which no code of ours sees: hence without a reason."""
    event = EVENT(sequence=2, event_type="x", agent_role="x" * 17 * MEGABYTE)
    raw = PB.RecordEventsRequest(events=[event]).SerializeToString()
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await caller.send(raw)
    assert caught.value.code().name == "RESOURCE_EXHAUSTED"
    assert "larger than max" in str(caught.value.details())
    request = caller.named(PB.RecordEventRequest, event=event)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await caller.stub.RecordEvent(request)
    assert caught.value.code().name == "RESOURCE_EXHAUSTED"
    await caller.goes_on()


async def test_many_large_events_that_each_are_allowed(caller):
    """A message of 15 MB is one that the contract allows."""
    data = struct({"t": "x" * (250 * 1024)})
    batch = PB.RecordEventsRequest(
        events=[EVENT(sequence=n, event_type="x", data=data) for n in range(2, 62)]
    )
    raw = await caller.send(batch.SerializeToString())
    assert PB.RecordEventsResponse.FromString(raw).last_sequence == 61
    await caller.ends(61)


# --- where they do not belong ---------------------------------------------------------------------


async def test_events_before_opening(caller):
    stream = caller.stub.RecordEvents(timeout=30)
    failed = await failure(said(stream, PB.RecordEventsRequest(events=[good(2)])))
    assert (failed.code, failed.reason) == ("FAILED_PRECONDITION", "STREAM_NOT_OPENED")
    assert "episode_id" in failed.message
    await caller.goes_on()


async def test_the_episode_of_another_namespace(caller):
    elsewhere = f"{caller.namespace}-other"
    stream = caller.stub.RecordEvents(timeout=30)
    opening = PB.RecordEventsRequest(namespace=elsewhere, episode_id="e", events=[good(2)])
    requests = {
        "open": said(stream, opening),
        "event": caller.stub.RecordEvent(
            PB.RecordEventRequest(namespace=elsewhere, episode_id="e", event=good())
        ),
        "end": caller.stub.EndEpisode(
            PB.EndEpisodeRequest(namespace=elsewhere, episode_id="e", status=FAILED)
        ),
    }
    for what, call in requests.items():
        failed = await failure(call)
        assert (failed.code, failed.reason) == ("NOT_FOUND", "EPISODE_NOT_FOUND"), what
        assert failed.metadata == {"namespace": elsewhere, "id": "e"}
    await caller.goes_on()


async def test_an_open_stream_cannot_turn_to_another_episode(caller):
    request = PB.RecordEventsRequest(namespace="other", episode_id="e", events=[good(2)])
    failed = await failure(caller.send(request.SerializeToString()))
    assert (failed.code, failed.reason) == ("FAILED_PRECONDITION", "STREAM_NOT_OPENED")
    await caller.goes_on()


# --- ends -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
async def test_an_end_with_metrics_that_are_no_numbers(caller, value):
    end = caller.named(PB.EndEpisodeRequest, status=SUCCEEDED, metrics={"loss": value, "n": 1})
    blamed(await failure(caller.stub.EndEpisode(end)), 'metrics["loss"]', "number.finite")
    await caller.goes_on()


@pytest.mark.parametrize("seconds", [-1, 253_402_300_800, -(2**40)])
async def test_an_end_at_a_time_that_is_none(caller, seconds):
    end = caller.named(PB.EndEpisodeRequest, status=SUCCEEDED, end_time={"seconds": seconds})
    blamed(await failure(caller.stub.EndEpisode(end)), "end_time", "timestamp.range")
    await caller.goes_on()


async def test_an_end_before_the_start(caller):
    end = caller.named(PB.EndEpisodeRequest, status=SUCCEEDED, end_time={"seconds": 1})
    blamed(await failure(caller.stub.EndEpisode(end)), "end_time", "end_time.order")
    await caller.goes_on()


@pytest.mark.parametrize("status", [0, 1, 4, 77, -1])
async def test_an_end_that_is_none(caller, status):
    end = caller.named(PB.EndEpisodeRequest, status=status)
    failed = await failure(caller.stub.EndEpisode(end))
    blamed(failed, "status", "enum.in")
    await caller.goes_on()


@pytest.mark.parametrize(
    "other",
    [
        {"status": FAILED},
        {"status": SUCCEEDED, "summary": "other"},
        {"status": SUCCEEDED, "metrics": {"n": 2}},
    ],
)
async def test_two_ends_that_differ(caller, other):
    await caller.goes_on()
    failed = await failure(caller.stub.EndEpisode(caller.named(PB.EndEpisodeRequest, **other)))
    assert (failed.code, failed.reason) == ("FAILED_PRECONDITION", "EPISODE_ENDED")
    assert failed.metadata == {"episode_id": "e", "status": "SUCCEEDED"}
    await caller.ends()  # the first one stands, and comes again


async def test_events_after_the_end(caller):
    await caller.goes_on()
    one = caller.stub.RecordEvent(caller.named(PB.RecordEventRequest, event=good()))
    stream = caller.stub.RecordEvents(timeout=30)
    for call in (one, said(stream, caller.named(PB.RecordEventsRequest, events=[good(4)]))):
        failed = await failure(call)
        assert (failed.code, failed.reason) == ("FAILED_PRECONDITION", "EPISODE_ENDED")
    await caller.ends()


async def test_a_refused_end_leaves_an_open_stream_open(caller):
    stream = await caller.stream()
    end = caller.named(PB.EndEpisodeRequest, status=SUCCEEDED, metrics={"n": float("nan")})
    await failure(caller.stub.EndEpisode(end))
    raw = await said(stream, PB.RecordEventsRequest(events=[good(2)]).SerializeToString())
    assert PB.RecordEventsResponse.FromString(raw).last_sequence == 2
    await caller.ends(2)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await stream.read()
    assert failure_of(caught.value).reason == "EPISODE_ENDED"
