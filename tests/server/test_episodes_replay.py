"""ReplayEpisode on the wire: what was sent comes back, in order, from anywhere, and as it comes."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import grpc.aio
import pytest
from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lot_grpc.pb.lot.v1 import episode_pb2
from tests.server.episodes import SUCCEEDED, started
from tests.server.service import Lot, output_only, serving
from tests.server.test_episodes_stream import Stream, events
from tests.server.wire import failure, until

EVENT: Any = episode_pb2.EpisodeEvent


async def replayed(lot: Lot, episode_id: str = "e", **fields: Any) -> list[Any]:
    """All events of a replay to its end."""
    call = lot.episodes.ReplayEpisode(episode_id=episode_id, **fields)
    return [event async for answer in call for event in answer.events]


async def recorded(lot: Lot, sent: list[Any], episode_id: str = "e", batch: int = 1000) -> None:
    """Record events over a stream, so many a message, and leave the episode running."""
    await started(lot, episode_id=episode_id)
    stream = Stream(lot)
    await stream.open(episode_id)
    for start in range(0, len(sent), batch):
        await stream.send(events=sent[start : start + batch])
    await stream.close()


def as_sent(event: Any) -> Any:
    return output_only(event, "record_time")


# --- replay equals what was sent ------------------------------------------------------------------

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
METRICS = st.fixed_dictionaries({"metrics": st.dictionaries(TEXTS, NUMBERS, max_size=5)})
NESTED = st.integers(1, 16).map(lambda depth: nest(depth))
DATA: Any = st.dictionaries(TEXTS, VALUES, max_size=5) | METRICS | NESTED | st.just({}) | st.none()
MICROS = st.integers(0, 253_402_300_799_999_999)


def nest(depth: int) -> dict[str, Any]:
    inner: dict[str, Any] = {"end": None}
    for _ in range(depth - 1):
        inner = {"in": inner}
    return inner


def struct(values: dict[str, Any]) -> Struct:
    made = Struct()
    made.update(values)
    return made


def timestamp(micros: int) -> Timestamp:
    return Timestamp(seconds=micros // 1_000_000, nanos=micros % 1_000_000 * 1000)


@st.composite
def messages(draw: st.DrawFn) -> Any:
    """An event of any shape, with its time: an absent one comes back as that of recording."""
    given: Any = {
        "event_type": draw(TEXTS.filter(bool)),
        "agent_role": draw(TEXTS),
        "event_time": timestamp(draw(MICROS)),
    }
    data = draw(DATA)
    if data is not None:
        given["data"] = struct(data)
    return EVENT(**given)


@given(
    sent=st.lists(messages(), max_size=60),
    after=st.integers(0, 70),
    batch=st.integers(1, 25),
)
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_replay_equals_what_was_sent(sent: list[Any], after: int, batch: int):
    for number, event in enumerate(sent, 1):
        event.sequence = number

    async def check() -> None:
        async with serving() as lot:
            await recorded(lot, sent, batch=batch)
            assert list(map(as_sent, await replayed(lot, after_sequence=after))) == sent[after:]
            await lot.episodes.EndEpisode(episode_id="e", status=SUCCEEDED)
            assert list(map(as_sent, await replayed(lot))) == sent
            followed = await replayed(lot, after_sequence=after, follow=True)
            assert list(map(as_sent, followed)) == sent[after:]

    asyncio.run(check())


async def test_a_replay_gives_what_the_list_gives(lot):
    await recorded(lot, [EVENT(**each) for each in events(range(1, 501), data={"n": 1})])
    listed = (await lot.episodes.ListEpisodeEvents(episode_id="e", page_size=1000)).events
    assert await replayed(lot) == list(listed)
    assert len(listed) == 500


@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 48, 112, 240, 241])
async def test_every_event_comes_once_whatever_the_borders_of_batches(lot, count):
    await recorded(lot, [EVENT(**each) for each in events(range(1, count + 1))])
    for after in {0, 1, count - 1, count, count + 1} - {-1}:
        got = [event.sequence for event in await replayed(lot, after_sequence=after)]
        assert got == list(range(after + 1, count + 1))
    await lot.episodes.EndEpisode(episode_id="e", status=SUCCEEDED)
    for follow in (False, True):
        got = [event.sequence for event in await replayed(lot, follow=follow)]
        assert got == list(range(1, count + 1))


async def test_large_events_come_in_answers_that_any_client_takes(lot):
    data = struct({"text": "x" * (255 * 1024)})
    sent = [EVENT(sequence=n, event_type="x", data=data) for n in range(1, 41)]
    await recorded(lot, sent, batch=20)
    call = lot.episodes.ReplayEpisode(episode_id="e")
    answers = [answer async for answer in call]
    assert sum(len(answer.events) for answer in answers) == 40
    assert max(answer.ByteSize() for answer in answers) < 2 * 2**20
    assert len(answers) < 40
    assert all(event.data == data for answer in answers for event in answer.events)


async def test_an_empty_struct_is_told_from_none(lot):
    sent = [EVENT(event_type="x", data=struct({})), EVENT(event_type="x")]
    await started(lot, episode_id="e")
    for event in sent:
        await lot.episodes.RecordEvent(episode_id="e", event=event)
    for got in (
        await replayed(lot),
        (await lot.episodes.ListEpisodeEvents(episode_id="e")).events,
    ):
        assert [event.HasField("data") for event in got] == [True, False]


async def test_an_event_without_a_time_happened_when_it_was_recorded(lot):
    await recorded(lot, [EVENT(sequence=1, event_type="x")])
    [event] = await replayed(lot)
    assert event.event_time == event.record_time


# --- what is refused ------------------------------------------------------------------------------


async def test_an_episode_that_is_not_there_is_not_replayed(lot):
    for follow in (False, True):
        failed = await failure(replayed(lot, "none", follow=follow))
        assert (failed.code, failed.reason) == ("NOT_FOUND", "EPISODE_NOT_FOUND")
        assert failed.metadata == {"namespace": lot.namespace, "id": "none"}


async def test_another_namespace_sees_nothing(lot):
    await recorded(lot, [EVENT(sequence=1, event_type="x")])
    other = lot.on(f"{lot.namespace}-other")
    assert (await failure(replayed(other))).reason == "EPISODE_NOT_FOUND"


@pytest.mark.parametrize(
    ("field", "value"),
    [("speed", -1.0), ("speed", 1e7), ("speed", float("nan")), ("after_sequence", -1)],
)
async def test_what_no_replay_can_do_is_refused_with_its_path(lot, field, value):
    await started(lot, episode_id="e")
    failed = await failure(replayed(lot, **{field: value}))
    assert failed.reason == "REQUEST_INVALID"
    assert set(failed.fields) == {field}


# --- following ------------------------------------------------------------------------------------


class Following:
    """A replay that follows, an answer at a time."""

    def __init__(self, lot: Lot, **fields: Any) -> None:
        self.call = lot.episodes.ReplayEpisode(episode_id="e", follow=True, **fields)

    async def read(self) -> Any:
        answer = await self.call.read()
        return answer if answer is not grpc.aio.EOF else await self.call

    async def until_caught_up(self) -> list[int]:
        """The sequences up to and with the answer that says so."""
        got: list[int] = []
        while True:
            answer = await self.read()
            got += [event.sequence for event in answer.events]
            if answer.caught_up:
                return got

    async def rest(self) -> list[int]:
        """The sequences to the end of the stream."""
        got: list[int] = []
        while (answer := await self.call.read()) is not grpc.aio.EOF:
            got += [event.sequence for event in answer.events]
        assert (await self.call.code()).name == "OK"
        return got


async def test_a_follower_gets_what_there_is_and_then_what_comes(lot):
    await started(lot, episode_id="e")
    stream = Stream(lot)
    await stream.open(events=events(range(1, 41)))
    following = Following(lot)
    assert await following.until_caught_up() == list(range(1, 41))
    await stream.send([41, 42])
    assert await following.until_caught_up() == [41, 42]
    await stream.close()
    await lot.episodes.RecordEvent(episode_id="e", event={"event_type": "x"})
    assert await following.until_caught_up() == [43]
    await lot.episodes.EndEpisode(episode_id="e", status=SUCCEEDED)
    assert await following.rest() == []


async def test_a_follower_of_an_episode_without_events_is_told_that_it_follows(lot):
    await started(lot, episode_id="e")
    following = Following(lot)
    assert await following.until_caught_up() == []
    await lot.episodes.EndEpisode(episode_id="e", status=SUCCEEDED)
    assert await following.rest() == []


async def test_a_follower_may_begin_behind_what_is_there(lot):
    await recorded(lot, [EVENT(sequence=1, event_type="x")])
    following = Following(lot, after_sequence=3)
    assert await following.until_caught_up() == []
    for _ in range(4):
        await lot.episodes.RecordEvent(episode_id="e", event={"event_type": "x"})
    await lot.episodes.EndEpisode(episode_id="e", status=SUCCEEDED)
    assert await following.rest() == [4, 5]


async def test_followers_get_all_of_what_streams_at_the_same_time(lot):
    await started(lot, episode_id="e")
    followers = [asyncio.create_task(Following(lot).rest()) for _ in range(20)]
    stream = Stream(lot)
    await stream.open()
    for first in range(1, 2001, 50):
        await stream.send(range(first, first + 50))
    await lot.episodes.EndEpisode(episode_id="e", status=SUCCEEDED)
    for got in await asyncio.gather(*followers):
        assert got == list(range(1, 2001))


async def test_a_follower_of_a_deleted_episode_is_told(lot):
    await recorded(lot, [EVENT(sequence=1, event_type="x")])
    following = Following(lot)
    assert await following.until_caught_up() == [1]
    await lot.episodes.DeleteEpisode(episode_id="e")
    failed = await failure(following.read())
    assert (failed.code, failed.reason) == ("NOT_FOUND", "EPISODE_NOT_FOUND")
    assert "deleted" in failed.message


async def test_a_follower_does_not_go_over_to_another_episode_of_the_id(lot):
    await recorded(lot, [EVENT(sequence=1, event_type="x")])
    following = Following(lot)
    assert await following.until_caught_up() == [1]
    await lot.episodes.DeleteEpisode(episode_id="e")
    await recorded(lot, [EVENT(sequence=n, event_type="other") for n in (1, 2, 3)])
    assert (await failure(following.read())).reason == "EPISODE_NOT_FOUND"


async def test_without_follow_a_replay_of_a_running_episode_ends_with_what_is_there(lot):
    await recorded(lot, [EVENT(sequence=1, event_type="x")])
    call = lot.episodes.ReplayEpisode(episode_id="e")
    answers = [answer async for answer in call]
    assert [len(answer.events) for answer in answers] == [1]
    assert not answers[0].caught_up


# --- cancelling -----------------------------------------------------------------------------------


def own_tasks() -> set[Any]:
    """The tasks that run code in Python: those of gRPC itself, which come and go, are compiled."""
    return {task for task in asyncio.all_tasks() if inspect.iscoroutine(task.get_coro())}


async def test_a_cancelled_replay_leaves_nothing_behind(lot):
    if lot.server is None:
        pytest.skip("looks inside a server of its own")
    server = lot.server
    late = [timestamp(0), timestamp(10**12)]  # the second is due in eleven days
    sent = [EVENT(sequence=n, event_type="x", event_time=t) for n, t in enumerate(late, 1)]
    await recorded(lot, sent)
    await until(lambda: server.calls_in_flight == 0)
    before = own_tasks()
    calls = [
        lot.episodes.ReplayEpisode(episode_id="e", follow=True),
        lot.episodes.ReplayEpisode(episode_id="e", speed=1),
        lot.episodes.ReplayEpisode(episode_id="e", speed=1, follow=True),
    ]
    for call in calls:
        assert (await call.read()).events[0].sequence == 1
    assert server.calls_in_flight == len(calls)
    assert own_tasks() - before
    for call in calls:
        call.cancel()
    await until(lambda: server.calls_in_flight == 0)
    await until(lambda: not (own_tasks() - before))


async def test_a_replay_in_a_long_gap_ends_when_the_episode_is_deleted(lot):
    times = [timestamp(0), timestamp(10**12)]
    sent = [EVENT(sequence=n, event_type="x", event_time=t) for n, t in enumerate(times, 1)]
    await recorded(lot, sent)
    call = lot.episodes.ReplayEpisode(episode_id="e", speed=1)
    assert len((await call.read()).events) == 1
    await lot.episodes.DeleteEpisode(episode_id="e")

    async def rest() -> Any:
        answer = await call.read()
        return answer if answer is not grpc.aio.EOF else await call

    assert (await failure(rest())).reason == "EPISODE_NOT_FOUND"
