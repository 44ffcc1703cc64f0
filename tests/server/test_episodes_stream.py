"""RecordEvents on the wire: opening, acknowledging, resuming, taking over, being closed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import grpc.aio
import pytest

from lot_grpc.pb.lot.v1 import episode_pb2, episode_service_pb2
from tests.server.episodes import FAILED, SUCCEEDED, events_of, started
from tests.server.service import Lot
from tests.server.wire import failure, until

PB: Any = episode_service_pb2


def events(numbers: Iterable[int], event_type: str = "x", **fields: Any) -> list[dict[str, Any]]:
    return [{"sequence": n, "event_type": event_type, **fields} for n in numbers]


class Stream:
    """One RecordEvents call, a message and its acknowledgement at a time."""

    def __init__(self, lot: Lot) -> None:
        self.call = lot.episodes.RecordEvents()
        self.namespace = lot.namespace

    async def open(self, episode_id: str = "e", **fields: Any) -> Any:
        return await self.send(namespace=self.namespace, episode_id=episode_id, **fields)

    async def send(self, numbers: Iterable[int] = (), **fields: Any) -> Any:
        fields.setdefault("events", events(numbers))
        await self.call.write(PB.RecordEventsRequest(**fields))
        answer = await self.call.read()
        if answer is grpc.aio.EOF:  # the status says why
            answer = await self.call
            raise AssertionError(f"the stream ended without an error, {answer!r}")
        return answer

    async def close(self) -> Any:
        """Say that no more comes; the status."""
        await self.call.done_writing()
        assert await self.call.read() is grpc.aio.EOF
        return await self.call.code()

    async def ended(self) -> Any:
        """The failure that it ended with, without another message."""
        return await failure(self._read())

    async def _read(self) -> Any:
        answer = await self.call.read()
        return answer if answer is not grpc.aio.EOF else await self.call


async def opened(lot: Lot, **fields: Any) -> Stream:
    stream = Stream(lot)
    await stream.open(**fields)
    return stream


async def test_batches_are_acknowledged_once_they_are_stored(lot):
    await started(lot, episode_id="e")
    stream = Stream(lot)
    answer = await stream.open()
    assert (answer.last_sequence, answer.writer_epoch) == (0, 1)
    assert (await stream.send([1, 2, 3])).last_sequence == 3
    assert [event.sequence for event in await events_of(lot, "e")] == [1, 2, 3]
    assert (await lot.episodes.GetEpisode(episode_id="e")).episode.event_count == 3
    answer = await stream.send([4])
    assert (answer.last_sequence, answer.writer_epoch) == (4, 1)
    assert (await stream.send([])).last_sequence == 4
    assert (await stream.close()).name == "OK"
    ended = await lot.episodes.EndEpisode(episode_id="e", status=SUCCEEDED)
    assert ended.episode.event_count == 4


async def test_the_first_message_may_carry_events(lot):
    await started(lot, episode_id="e")
    stream = Stream(lot)
    assert (await stream.open(events=events([1, 2]))).last_sequence == 2
    assert len(await events_of(lot, "e")) == 2


async def test_events_come_back_as_they_were_sent(lot):
    await started(lot, episode_id="e")
    stream = await opened(lot)
    at = datetime(2024, 1, 1, tzinfo=UTC)
    event: Any = episode_pb2.EpisodeEvent
    given = event(
        sequence=1,
        event_type="tool_call",
        agent_role="builder",
        data={"a.b": [1, None, {"": "x"}], "n": 0.1},
        event_time=at,
        record_time=at,
    )
    await stream.send(events=[given])
    [stored] = await events_of(lot, "e")
    assert stored.record_time != given.record_time
    stored.record_time.CopyFrom(given.record_time)
    assert stored == given


async def test_a_thousand_events_fit_in_a_message_and_no_more(lot):
    await started(lot, episode_id="e")
    stream = await opened(lot)
    assert (await stream.send(range(1, 1001))).last_sequence == 1000
    failed = await failure(stream.send(range(1001, 2002)))
    assert (failed.code, set(failed.fields)) == ("INVALID_ARGUMENT", {"events"})
    assert (await lot.episodes.GetEpisode(episode_id="e")).episode.event_count == 1000


# --- opening ----------------------------------------------------------------------------------


async def test_a_first_message_without_an_episode_opens_nothing(lot):
    await started(lot, episode_id="e")
    failed = await failure(Stream(lot).send([1]))
    assert (failed.code, failed.reason) == ("FAILED_PRECONDITION", "STREAM_NOT_OPENED")
    assert "episode_id" in failed.message
    assert await events_of(lot, "e") == []


@pytest.mark.parametrize(
    "again",
    [{"episode_id": "e"}, {"namespace": "n"}, {"takeover_policy": PB.TAKEOVER_POLICY_REFUSE}],
)
async def test_a_later_message_does_not_open_again(lot, again):
    await started(lot, episode_id="e")
    stream = await opened(lot, events=events([1]))
    failed = await failure(stream.send([2], **again))
    assert (failed.code, failed.reason) == ("FAILED_PRECONDITION", "STREAM_NOT_OPENED")
    assert len(await events_of(lot, "e")) == 1


async def test_a_stream_creates_no_episode_and_records_no_ended_one(lot):
    failed = await failure(Stream(lot).open(events=events([1])))
    assert (failed.code, failed.reason) == ("NOT_FOUND", "EPISODE_NOT_FOUND")
    assert failed.metadata == {"namespace": lot.namespace, "id": "e"}
    await started(lot, episode_id="e")
    await lot.episodes.EndEpisode(episode_id="e", status=FAILED)
    failed = await failure(Stream(lot).open(events=events([1])))
    assert (failed.code, failed.reason) == ("FAILED_PRECONDITION", "EPISODE_ENDED")
    assert failed.metadata == {"episode_id": "e", "status": "FAILED"}
    assert await events_of(lot, "e") == []


async def test_another_namespace_cannot_record(lot):
    await started(lot, episode_id="e")
    other = lot.on(f"{lot.namespace}-other")
    failed = await failure(Stream(other).open())
    assert failed.reason == "EPISODE_NOT_FOUND"


async def test_a_stream_that_says_nothing_ends_well(lot):
    assert (await Stream(lot).close()).name == "OK"


# --- sequences --------------------------------------------------------------------------------


async def test_a_repeat_is_acknowledged_and_stored_once(lot):
    await started(lot, episode_id="e")
    stream = await opened(lot)
    await stream.send([1, 2, 3])
    assert (await stream.send([2, 3])).last_sequence == 3
    assert (await stream.send([3, 4])).last_sequence == 4
    assert (await stream.send([5, 5, 6])).last_sequence == 6
    assert [event.sequence for event in await events_of(lot, "e")] == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(("numbers", "other"), [([1, 2], 0), ([2, 1], 1), ([2, 2], 1)])
async def test_a_repeat_with_other_content_is_refused_and_nothing_of_its_batch_stored(
    lot, numbers, other
):
    await started(lot, episode_id="e")
    stream = await opened(lot, events=events([1]))
    batch = events(numbers)
    batch[other]["event_type"] = "other"
    failed = await failure(stream.send(events=batch))
    assert (failed.code, failed.reason) == ("ALREADY_EXISTS", "EVENT_CONFLICT")
    assert failed.metadata == {"episode_id": "e", "sequence": str(numbers[other])}
    assert [event.event_type for event in await events_of(lot, "e")] == ["x"]


@pytest.mark.parametrize(
    "changed", [{"event_type": "y"}, {"agent_role": "r"}, {"data": {"a": 2}}, {"event_time": 5}]
)
async def test_every_part_of_an_event_is_compared(lot, changed):
    await started(lot, episode_id="e")
    first = {"sequence": 1, "event_type": "x", "data": {"a": 1}}
    stream = await opened(lot, events=[first])
    assert (await stream.send(events=[first])).last_sequence == 1
    if "event_time" in changed:
        changed = {"event_time": datetime(2024, 1, 1, tzinfo=UTC)}
    failed = await failure(stream.send(events=[first | changed]))
    assert failed.reason == "EVENT_CONFLICT"


async def test_a_gap_is_refused_with_the_number_expected(lot):
    await started(lot, episode_id="e")
    stream = await opened(lot, events=events([1]))
    failed = await failure(stream.send([2, 4]))
    assert (failed.code, failed.reason) == ("FAILED_PRECONDITION", "EVENT_SEQUENCE_GAP")
    assert failed.metadata == {"episode_id": "e", "expected": "2", "given": "4"}
    assert [event.sequence for event in await events_of(lot, "e")] == [1]
    far = await failure(Stream(lot).open(events=events([2**63 - 1])))
    assert far.metadata["expected"] == "2"


@pytest.mark.parametrize("number", [0, -1])
async def test_sequences_begin_with_one(lot, number):
    await started(lot, episode_id="e")
    failed = await failure(Stream(lot).open(events=events([number])))
    assert (failed.code, failed.reason) == ("INVALID_ARGUMENT", "REQUEST_INVALID")
    assert all(path.startswith("events[0]") for path in failed.fields)


# --- resuming and taking over -----------------------------------------------------------------


async def test_a_stream_cut_in_the_middle_goes_on_from_what_was_stored(lot):
    await started(lot, episode_id="e")
    stream = await opened(lot)
    await stream.send([1, 2])
    await stream.call.write(PB.RecordEventsRequest(events=events([3, 4])))
    stream.call.cancel()  # whether 3 and 4 were stored, the client does not know
    again = Stream(lot)
    answer = await again.open()
    assert answer.last_sequence in (2, 4)
    assert answer.writer_epoch == 2
    assert (await again.send([3, 4, 5])).last_sequence == 5
    assert (await again.close()).name == "OK"
    assert [event.sequence for event in await events_of(lot, "e")] == [1, 2, 3, 4, 5]


async def test_a_replaced_stream_is_told_while_it_waits(lot):
    await started(lot, episode_id="e")
    first = await opened(lot, events=events([1, 2]))
    waiting = asyncio.create_task(first.ended())
    await asyncio.sleep(0)
    second = Stream(lot)
    answer = await second.open()
    assert (answer.last_sequence, answer.writer_epoch) == (2, 2)
    failed = await waiting
    assert (failed.code, failed.reason) == ("ABORTED", "WRITER_REPLACED")
    assert failed.metadata == {"episode_id": "e"}
    assert (await second.send([3])).last_sequence == 3
    assert [event.sequence for event in await events_of(lot, "e")] == [1, 2, 3]


async def test_what_a_replaced_stream_had_on_its_way_is_acknowledged_or_not_stored(lot):
    for n in range(5):
        name = f"e{n}"
        await started(lot, episode_id=name)
        first = Stream(lot)
        await first.open(name)
        await first.call.write(PB.RecordEventsRequest(events=events([1], "first")))
        second = Stream(lot)
        answer = await second.open(name)
        told = await first.call.read()  # an acknowledgement, or the end
        assert answer.last_sequence == (0 if told is grpc.aio.EOF else told.last_sequence)
        failed = await first.ended()
        assert failed.reason == "WRITER_REPLACED"
        mine = answer.last_sequence + 1
        await second.send(events=events([mine], "second"))
        stored = [event.event_type for event in await events_of(lot, name)]
        assert stored == ["first"] * answer.last_sequence + ["second"]


async def test_a_stream_may_refuse_to_take_over(lot):
    await started(lot, episode_id="e")
    first = await opened(lot)
    failed = await failure(Stream(lot).open(takeover_policy=PB.TAKEOVER_POLICY_REFUSE))
    assert (failed.code, failed.reason) == ("FAILED_PRECONDITION", "EPISODE_STREAM_OPEN")
    assert failed.metadata == {"episode_id": "e"}
    assert (await first.send([1])).last_sequence == 1
    await first.close()
    later = Stream(lot)
    assert (await later.open(takeover_policy=PB.TAKEOVER_POLICY_REFUSE)).last_sequence == 1


async def test_a_cancelled_stream_no_longer_holds_the_episode(lot):
    await started(lot, episode_id="e")
    first = await opened(lot, events=events([1]))
    first.call.cancel()

    async def free() -> bool:
        try:
            await lot.episodes.RecordEvent(episode_id="e", event={"event_type": "y"})
        except grpc.aio.AioRpcError as error:
            return error.code().name != "FAILED_PRECONDITION"
        return True

    async with asyncio.timeout(10):
        while not await free():
            await asyncio.sleep(0.005)
    assert [event.event_type for event in await events_of(lot, "e")] == ["x", "y"]


async def test_one_event_a_call_is_refused_beside_an_open_stream(lot):
    await started(lot, episode_id="e")
    stream = await opened(lot, events=events([1]))
    ask = {"episode_id": "e", "event": {"event_type": "y"}, "request_id": "r"}
    failed = await failure(lot.episodes.RecordEvent(**ask))
    assert (failed.code, failed.reason) == ("FAILED_PRECONDITION", "EPISODE_STREAM_OPEN")
    assert failed.metadata == {"episode_id": "e"}
    assert (await stream.send([2])).last_sequence == 2
    await stream.close()
    answer = await lot.episodes.RecordEvent(**ask)
    assert answer.event.sequence == 3


async def test_the_end_of_an_episode_closes_its_stream_with_a_reason(lot):
    await started(lot, episode_id="e")
    stream = await opened(lot, events=events([1]))
    waiting = asyncio.create_task(stream.ended())
    ended = await lot.episodes.EndEpisode(episode_id="e", status=SUCCEEDED)
    assert ended.episode.event_count == 1
    failed = await waiting
    assert (failed.code, failed.reason) == ("FAILED_PRECONDITION", "EPISODE_ENDED")
    assert failed.metadata == {"episode_id": "e", "status": "SUCCEEDED"}
    failed = await failure(Stream(lot).open())
    assert failed.reason == "EPISODE_ENDED"


async def test_streams_of_several_episodes_do_not_meet(lot):
    names = [f"e{n}" for n in range(5)]
    for name in names:
        await started(lot, name, episode_id=name)

    async def record(name: str) -> None:
        stream = Stream(lot)
        await stream.open(name)
        for first in range(1, 40, 10):
            batch = events(range(first, first + 10), name)
            answer = await stream.send(events=batch)
            assert answer.last_sequence == first + 9
        await stream.close()

    await asyncio.gather(*map(record, names))
    for name in names:
        stored = await events_of(lot, name)
        assert [event.sequence for event in stored] == list(range(1, 41))
        assert {event.event_type for event in stored} == {name}


async def test_messages_sent_ahead_are_all_stored_and_acknowledged_in_order(lot):
    await started(lot, episode_id="e")
    stream = Stream(lot)
    await stream.open()
    for first in range(1, 100, 10):
        await stream.call.write(PB.RecordEventsRequest(events=events(range(first, first + 10))))
    await stream.call.done_writing()
    seen = [(await stream.call.read()).last_sequence for _ in range(10)]
    assert await stream.call.read() is grpc.aio.EOF
    assert seen == list(range(10, 101, 10))


async def test_an_error_ends_the_stream_and_not_the_episode(lot):
    await started(lot, episode_id="e")
    stream = await opened(lot, events=events([1]))
    await failure(stream.send([7]))
    again = Stream(lot)
    assert (await again.open()).last_sequence == 1
    assert (await again.send([2])).last_sequence == 2
    assert (await again.close()).name == "OK"


async def test_no_open_stream_is_remembered_once_all_are_over(lot):
    if lot.server is None:
        pytest.skip("looks inside a server of its own")
    server = lot.server
    await started(lot, episode_id="e")
    first = await opened(lot)
    second = await opened(lot)
    await first.ended()
    second.call.cancel()
    await until(lambda: server.calls_in_flight == 0)
    assert lot.own_services is not None
    await lot.episodes.GetEpisode(episode_id="e")
    assert not lot.own_services.episodes.recorder._active_streams._places
