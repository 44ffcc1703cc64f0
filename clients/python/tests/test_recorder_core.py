"""The bookkeeping of a recorder against a server of its own, over thousands of cuts at random."""

import random

import grpc
import pytest
from lot_client.errors import LotError
from lot_client.pb.lot.v1.episode_pb2 import EpisodeEvent
from lot_client.pb.lot.v1.episode_service_pb2 import RecordEventsRequest, RecordEventsResponse
from lot_client.recorder_core import RecorderCore
from lot_client.recorder_policy import RecorderPolicy
from lot_client.recorder_spill import Spill, SpillOwner
from lot_client.retry import RetryPolicy

GONE = LotError(grpc.StatusCode.UNAVAILABLE, "gone")


def core_of(policy: RecorderPolicy, spill: Spill | None = None) -> RecorderCore:
    opening = RecordEventsRequest(episode_id="e-1")
    return RecorderCore(opening, policy, RetryPolicy(), 30.0, spill)


class Store:
    """What a server keeps, and what it says to a message."""

    def __init__(self, before: int = 0) -> None:
        self.events = [EpisodeEvent(sequence=n + 1) for n in range(before)]

    def take(self, message: RecordEventsRequest) -> RecordEventsResponse:
        for event in message.events:
            assert event.sequence <= len(self.events) + 1, "a gap"
            if event.sequence == len(self.events) + 1:
                self.events.append(event)
            assert self.events[event.sequence - 1] == event, "another event under its number"
        return RecordEventsResponse(last_sequence=len(self.events))


@pytest.mark.parametrize("when_full", ["BLOCK", "DROP", "SPILL"])
@pytest.mark.parametrize("seed", range(5))
def test_everything_is_stored_once_in_order(tmp_path, when_full: str, seed: int):
    dice = random.Random(seed)
    path = tmp_path / "spill" if when_full == "SPILL" else None
    policy = RecorderPolicy(
        max_batch_events=10,
        max_in_flight=3,
        max_buffer_events=40,
        when_full=when_full,  # type: ignore[arg-type]
        spill_path=path,
    )
    spill = None
    if path:
        spill = Spill(path, 100_000)
        spill.begin(SpillOwner("a", "e-1"))
    core, store = core_of(policy, spill), Store(before=3)
    now, n, on_the_way = 0.0, 0, [core_of(policy).start(0.0)]
    core.start(now)
    taken: list[int] = []
    while n < 10_000 or not core.is_acknowledged:
        now += dice.random() * 0.1
        act = dice.random()
        if act < 0.5 and n < 10_000 and core.ready:
            for _ in range(dice.randrange(1, 30)):
                event = EpisodeEvent(event_type="step", agent_role=str(n))
                before = core.stats.dropped
                if n < 10_000 and core.offer(event, now):
                    taken += [] if core.stats.dropped > before else [n]
                    n += 1
        elif act < 0.7 and (message := core.next(now)) is not None:
            on_the_way.append(message)
        elif act < 0.95 and on_the_way:
            core.answered(store.take(on_the_way.pop(0)), now)
        elif act > 0.98:
            for message in on_the_way[: dice.randrange(len(on_the_way) + 1)]:
                store.take(message)  # it came, but the answer is lost
            assert core.lost(GONE, now) is not None
            on_the_way = [core.start(now)]
        stats = core.stats
        assert stats.recorded == stats.acknowledged + stats.buffered + stats.spilled
        assert stats.buffered <= 41

    steps = [int(event.agent_role) for event in store.events if event.event_type == "step"]
    told = [event for event in store.events if event.event_type == "recorder.dropped"]
    assert steps == taken
    assert sum(event.data["count"] for event in told) == core.stats.dropped == n - len(taken)
    assert (core.stats.dropped > 0) == (when_full == "DROP")
    assert core.acknowledged == len(store.events)
    assert core.stats.reconnects > 0


def opened(policy: RecorderPolicy) -> RecorderCore:
    core = core_of(policy)
    core.start(0.0)
    core.answered(RecordEventsResponse(), 0.0)
    return core


def test_a_message_waits_for_company_but_not_longer_than_it_may():
    core = opened(RecorderPolicy(max_batch_events=3, max_delay=0.2))
    core.offer(EpisodeEvent(event_type="a"), 1.0)

    assert core.next(1.1) is None
    assert core.wait(1.1) == pytest.approx(0.1)
    assert core.next(1.2 + 1e-9) is not None


def test_a_full_batch_goes_at_once_and_a_flush_too():
    core = opened(RecorderPolicy(max_batch_events=2, max_delay=9.0))
    for _ in range(3):
        core.offer(EpisodeEvent(event_type="a"), 1.0)

    first = core.next(1.0)
    assert first is not None
    assert [event.sequence for event in first.events] == [1, 2]
    assert core.next(1.0) is None
    assert core.hurry() == 3
    last = core.next(1.0)
    assert last is not None
    assert [event.sequence for event in last.events] == [3]


def test_so_many_messages_are_in_flight_and_no_more():
    core = opened(RecorderPolicy(max_batch_events=1, max_in_flight=2))
    for _ in range(3):
        core.offer(EpisodeEvent(event_type="a"), 1.0)

    assert core.next(1.0) is not None
    assert core.next(1.0) is not None
    assert core.next(1.0) is None
    core.answered(RecordEventsResponse(last_sequence=1), 1.0)
    assert core.next(1.0) is not None


def test_a_heartbeat_goes_when_nothing_else_did():
    core = opened(RecorderPolicy(heartbeat=60.0))

    assert core.next(59.0) is None
    assert core.wait(59.0) == pytest.approx(1.0)
    periodic = core.next(60.0)
    assert periodic == RecordEventsRequest()
    assert core.next(119.0) is None
    core.answered(RecordEventsResponse(), 61.0)
    assert core.next(119.0) is None
    assert core.next(120.0) is not None
    assert core.is_silent(150.0)


def test_its_own_stream_that_looks_alive_is_waited_out_but_not_for_ever():
    still_open = LotError(grpc.StatusCode.FAILED_PRECONDITION, "open", "EPISODE_STREAM_OPEN")
    core = opened(RecorderPolicy())
    assert core.lost(GONE, 100.0) is not None
    assert core.lost(still_open, 180.0) is not None
    assert core.lost(still_open, 200.0) is None
    assert core.error is still_open


def test_a_stream_that_the_server_ended_is_not_taken_for_its_own():
    still_open = LotError(grpc.StatusCode.FAILED_PRECONDITION, "open", "EPISODE_STREAM_OPEN")
    forgotten = LotError(grpc.StatusCode.INTERNAL, "Internal error from Core")
    core = opened(RecorderPolicy())
    assert core.lost(forgotten, 100.0, by_server=True) is not None
    assert core.lost(still_open, 101.0) is not None
    assert core.lost(still_open, 104.0) is None


def test_an_acknowledgement_of_less_is_none():
    core = opened(RecorderPolicy(max_batch_events=2))
    for _ in range(2):
        core.offer(EpisodeEvent(event_type="a"), 1.0)
    core.next(1.0)
    with pytest.raises(LotError, match="only 1 of 2 events"):
        core.answered(RecordEventsResponse(last_sequence=1), 1.0)

    assert core.acknowledged == 0
    assert core.stats.buffered == 2
