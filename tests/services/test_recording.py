from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import pytest

from lot_grpc.domain.episode import EpisodeStatus
from lot_grpc.domain.errors import (
    EpisodeEndedError,
    EpisodeNotFoundError,
    EpisodeStreamOpenError,
    EventConflictError,
    EventSequenceGapError,
    RequestIdReusedError,
    WriterReplacedError,
)
from lot_grpc.services.episodes.active_streams import OpenStream
from lot_grpc.services.episodes.event_recorder import TakeoverPolicy
from lot_grpc.services.records.collections import EPISODES, EVENTS
from lot_grpc.testing.faults import InjectedFault
from tests.contract.clock import FixedClock
from tests.services.world import (
    DAY,
    NS,
    SharedStore,
    World,
    end,
    event,
    events,
    open_world,
    payloads,
    start,
)

Step: TypeAlias = Callable[[], Awaitable[None]]
REPLACE, REFUSE = TakeoverPolicy.REPLACE, TakeoverPolicy.REFUSE


@pytest.fixture
async def world() -> World:
    """A world with a running episode ``e``."""
    opened = await open_world()
    await opened.services.episodes.creator.start(NS, start(episode_id="e"))
    return opened


@pytest.fixture
async def two() -> tuple[World, World]:
    """Two processes over one store, and a running episode ``e``."""
    clock = FixedClock()
    first = await open_world(SharedStore(clock), clock)
    await first.services.episodes.creator.start(NS, start(episode_id="e"))
    return first, first.another_process()


async def opened(world: World, takeover_policy: TakeoverPolicy = REPLACE) -> OpenStream:
    return await world.services.episodes.recorder.open(NS, "e", takeover_policy)


async def append(world: World, writer: OpenStream, first: int, last: int) -> int:
    return await world.services.episodes.recorder.append(writer, events(first, last))


async def stored(world: World) -> list[tuple[int, bytes | None]]:
    page = await world.services.episodes.episodes.list_events(NS, "e", 0, 10_000)
    return [(one.sequence, one.data) for one in page.items]


def numbered(count: int) -> list[tuple[int, bytes]]:
    return [(n, f"event {n}".encode()) for n in range(1, count + 1)]


# --- one event a call -------------------------------------------------------------------------


async def test_single_events_are_numbered_from_one(world):
    given = [
        await world.services.episodes.recorder.record_event(NS, "e", event(), "") for _ in range(3)
    ]
    assert [one.sequence for one in given] == [1, 2, 3]
    assert (await world.services.episodes.episodes.get(NS, "e")).event_count == 3
    assert given[0].record_time == given[0].event_time == world.clock.now()


async def test_a_single_event_by_request_id_is_stored_once(world):
    recorder = world.services.episodes.recorder
    first = await recorder.record_event(NS, "e", event(text="a"), "r")
    await recorder.record_event(NS, "e", event(text="b"), "")
    world.clock.advance(5)
    again = await recorder.record_event(NS, "e", event(text="a"), "r")
    assert again == first
    with pytest.raises(RequestIdReusedError):
        await recorder.record_event(NS, "e", event(text="c"), "r")
    assert [data for _, data in await stored(world)] == [b"a", b"b"]


async def test_a_single_event_by_request_id_is_answered_after_the_end_too(world):
    first = await world.services.episodes.recorder.record_event(NS, "e", event(), "r")
    await world.services.episodes.ender.end(NS, "e", end(), "")
    assert await world.services.episodes.recorder.record_event(NS, "e", event(), "r") == first


async def test_a_single_event_beside_an_open_stream_is_refused(world):
    writer = await opened(world)
    with pytest.raises(EpisodeStreamOpenError, match="send the event over that stream"):
        await world.services.episodes.recorder.record_event(NS, "e", event(), "")
    await world.services.episodes.recorder.close(writer)
    assert (await world.services.episodes.recorder.record_event(NS, "e", event(), "")).sequence == 1


async def test_an_event_of_an_unknown_episode_is_refused(world):
    with pytest.raises(EpisodeNotFoundError):
        await world.services.episodes.recorder.record_event(NS, "nope", event(), "")
    with pytest.raises(EpisodeNotFoundError):
        await world.services.episodes.recorder.open(NS, "nope", REPLACE)


# --- streams ----------------------------------------------------------------------------------


async def test_batches_are_acknowledged_by_their_last_number(world):
    writer = await opened(world)
    assert (writer.last, writer.epoch) == (0, 1)
    assert await append(world, writer, 1, 3) == 3
    assert await append(world, writer, 4, 4) == 4
    assert await stored(world) == numbered(4)
    assert (await world.services.episodes.episodes.get(NS, "e")).event_count == 4


async def test_a_gap_is_refused_with_the_number_expected_and_nothing_is_stored(world):
    writer = await opened(world)
    await append(world, writer, 1, 2)
    with pytest.raises(EventSequenceGapError, match="expects event 3, got 5; resend from 3"):
        await append(world, writer, 5, 6)
    with pytest.raises(EventSequenceGapError):
        await world.services.episodes.recorder.append(writer, [event(3), event(5)])
    assert await stored(world) == numbered(2)
    assert await append(world, writer, 3, 5) == 5


async def test_a_repeat_is_acknowledged_and_stored_once(world):
    writer = await opened(world)
    await append(world, writer, 1, 3)
    assert await append(world, writer, 2, 3) == 3
    assert await append(world, writer, 2, 5) == 5
    assert await stored(world) == numbered(5)


async def test_a_repeat_within_a_message_is_stored_once(world):
    writer = await opened(world)
    given = [event(1), event(2), event(2), event(1), event(3)]
    assert await world.services.episodes.recorder.append(writer, given) == 3
    assert await stored(world) == numbered(3)


async def test_a_repeat_with_other_content_is_refused_and_nothing_is_stored(world):
    writer = await opened(world)
    await append(world, writer, 1, 3)
    with pytest.raises(EventConflictError, match="event 2 of episode 'e'"):
        await world.services.episodes.recorder.append(writer, [event(2, "changed"), event(4)])
    with pytest.raises(EventConflictError):
        await world.services.episodes.recorder.append(writer, [event(4), event(4, "changed")])
    assert await stored(world) == numbered(3)
    assert await append(world, writer, 4, 4) == 4


async def test_an_event_without_a_number_is_refused_in_a_stream(world):
    writer = await opened(world)
    with pytest.raises((EventConflictError, EventSequenceGapError)):
        await world.services.episodes.recorder.append(writer, [event(0)])
    assert await stored(world) == []


async def test_a_stream_that_was_cut_is_taken_up_where_it_stood(world):
    writer = await opened(world)
    await append(world, writer, 1, 3)
    await world.services.episodes.recorder.close(writer)
    again = await opened(world, REFUSE)
    assert (again.last, again.epoch) == (3, 2)
    assert await append(world, again, 3, 6) == 6
    assert await stored(world) == numbered(6)


async def test_after_a_restart_a_stream_goes_on(world):
    writer = await opened(world)
    await append(world, writer, 1, 3)
    restarted = world.another_process()
    again = await opened(restarted)
    assert again.last == 3
    await append(restarted, again, 4, 5)
    ended = (await restarted.services.episodes.ender.end(NS, "e", end(), "")).episode
    assert ended.event_count == 5


async def test_who_takes_over_stops_the_other(world):
    writer = await opened(world)
    told: list[Exception] = []
    writer.on_stop = told.append
    await append(world, writer, 1, 2)
    other = await opened(world, REPLACE)
    assert (other.last, other.epoch) == (2, 2)
    assert isinstance(told[0], WriterReplacedError)
    with pytest.raises(WriterReplacedError, match="reopen with REPLACE only if"):
        await append(world, writer, 3, 3)
    assert await append(world, other, 3, 4) == 4
    assert await stored(world) == numbered(4)


async def test_the_one_replaced_does_not_close_the_other_when_it_leaves(world):
    writer = await opened(world)
    other = await opened(world, REPLACE)
    await world.services.episodes.recorder.close(writer)
    with pytest.raises(EpisodeStreamOpenError):
        await opened(world, REFUSE)
    assert await append(world, other, 1, 1) == 1


async def test_who_is_polite_is_refused_while_a_stream_is_open(world):
    writer = await opened(world)
    with pytest.raises(EpisodeStreamOpenError, match="open with REPLACE to replace it"):
        await opened(world, REFUSE)
    assert await append(world, writer, 1, 1) == 1
    assert (await payloads(world, EPISODES))[0]["writer_epoch"] == 1


async def test_an_end_closes_the_stream(world):
    writer = await opened(world)
    told: list[Exception] = []
    writer.on_stop = told.append
    await append(world, writer, 1, 2)
    ended = (await world.services.episodes.ender.end(NS, "e", end(), "")).episode
    assert ended.event_count == 2
    assert isinstance(told[0], EpisodeEndedError)
    with pytest.raises(EpisodeEndedError):
        await append(world, writer, 3, 3)
    with pytest.raises(EpisodeEndedError):
        await opened(world)
    assert await stored(world) == numbered(2)


async def test_an_abandoned_episode_is_taken_up_by_an_event_or_an_end(world):
    async def abandon() -> None:
        (record,) = await world.store.scroll(EPISODES, NS, [], limit=5)
        await world.store.update(EPISODES, NS, record.id, set={"status": "abandoned"})

    await abandon()
    writer = await opened(world)
    assert (await world.services.episodes.episodes.get(NS, "e")).status is EpisodeStatus.RUNNING
    await append(world, writer, 1, 1)
    await world.services.episodes.recorder.close(writer)
    await abandon()
    await world.services.episodes.recorder.record_event(NS, "e", event(2), "")
    assert (await world.services.episodes.episodes.get(NS, "e")).status is EpisodeStatus.RUNNING
    await abandon()
    assert (await world.services.episodes.ender.end(NS, "e", end(), "")).episode.event_count == 2


async def test_a_stream_that_waits_for_its_turn_holds_up_no_other(world):
    await world.services.episodes.creator.start(NS, start(episode_id="f"))
    slow = await opened(world)
    other = await world.services.episodes.recorder.open(NS, "f", REPLACE)
    async with world.services.episodes.recorder._active_streams.turn(NS, "e"):
        waiting = asyncio.create_task(append(world, slow, 1, 2))
        assert await append(world, other, 1, 3) == 3
        assert not waiting.done()
    assert await waiting == 2


async def test_nothing_is_kept_of_streams_that_ended(world):
    for _ in range(3):
        await world.services.episodes.recorder.close(await opened(world))
        await world.services.episodes.recorder.record_event(NS, "e", event(), "")
    await world.services.episodes.ender.end(NS, "e", end(), "")
    assert world.services.episodes.recorder._active_streams._places == {}


# --- two processes over one store -------------------------------------------------------------


class _Once:
    """A store whose next insert has something done before or after it."""

    def __init__(self, writing: Any, before: Step | None, after: Step | None) -> None:
        self._writing = writing
        self._store = writing._store
        self._before = before
        self._after = after
        writing._store = self

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def insert(self, collection: str, records: Any) -> Any:
        self._writing._store = self._store
        if self._before is not None:
            await self._before()
        inserted = await self._store.insert(collection, records)
        if self._after is not None:
            await self._after()
        return inserted


def meanwhile(world: World, *, before: Step | None = None, after: Step | None = None) -> None:
    """Let others act just before or just after this process's next insert of events."""
    _Once(world.services.episodes.recorder._log._writing, before, after)


async def test_another_process_takes_over_where_the_first_one_stood(two):
    first, second = two
    writer = await opened(first)
    await append(first, writer, 1, 3)
    other = await opened(second)
    assert (other.last, other.epoch) == (3, 2)
    with pytest.raises(WriterReplacedError):
        await append(first, writer, 4, 5)
    assert await stored(first) == numbered(3)
    await append(second, other, 4, 5)
    assert await stored(first) == numbered(5)


async def test_a_late_batch_of_the_one_replaced_is_taken_back(two):
    first, second = two
    writer = await opened(first)
    await append(first, writer, 1, 3)
    others: list[OpenStream] = []

    async def take_over() -> None:
        others.append(await opened(second))

    meanwhile(first, before=take_over)
    with pytest.raises(WriterReplacedError):
        await first.services.episodes.recorder.append(writer, [event(4, "late"), event(5, "late")])
    assert await stored(first) == numbered(3)
    await append(second, others[0], 4, 6)
    assert await stored(first) == numbered(6)


async def test_what_the_new_writer_stored_first_is_not_taken_back(two):
    """The client reconnects to another process and sends again what is still on its way."""
    first, second = two
    writer = await opened(first)
    await append(first, writer, 1, 3)

    async def take_over_and_write() -> None:
        other = await opened(second)
        await append(second, other, 4, 6)

    meanwhile(first, before=take_over_and_write)
    with pytest.raises(WriterReplacedError):
        await append(first, writer, 4, 6)
    assert await stored(first) == numbered(6)


async def test_what_the_old_writer_stored_late_is_the_new_writers_once_it_sent_it_too(two):
    first, second = two
    writer = await opened(first)
    await append(first, writer, 1, 3)
    others: list[OpenStream] = []

    async def take_over() -> None:
        others.append(await opened(second))

    async def write() -> None:
        assert others[0].last == 3
        assert await append(second, others[0], 4, 6) == 6

    meanwhile(first, before=take_over, after=write)
    with pytest.raises(WriterReplacedError):
        await append(first, writer, 4, 6)
    assert await stored(first) == numbered(6), "acknowledged to the new writer"


async def test_what_the_new_writer_found_stored_is_not_taken_back(two):
    first, second = two
    writer = await opened(first)
    await append(first, writer, 1, 3)
    others: list[OpenStream] = []

    async def take_over() -> None:
        others.append(await opened(second))

    meanwhile(first, after=take_over)
    with pytest.raises(WriterReplacedError):
        await append(first, writer, 4, 6)
    last = others[0].last
    assert [number for number, _ in await stored(first)] == list(range(1, last + 1))
    await append(second, others[0], last + 1, last + 2)
    assert await stored(first) == numbered(last + 2)


async def test_a_third_writer_does_not_count_what_is_about_to_be_taken_back(two):
    """The first one knows that it was replaced by the second, and removes; the third looks."""
    first, second = two
    third = first.another_process()
    writer = await opened(first)
    await append(first, writer, 1, 3)
    others: list[OpenStream] = []
    log = first.services.episodes.recorder._log
    store = log._store

    class BeforeDelete:
        def __getattr__(self, name: str) -> Any:
            return getattr(store, name)

        async def delete(self, *given: Any) -> int:
            others.append(await opened(third))
            return int(await store.delete(*given))

    async def take_over() -> None:
        await opened(second)

    log._store = BeforeDelete()
    meanwhile(first, before=take_over)
    with pytest.raises(WriterReplacedError):
        await append(first, writer, 4, 6)
    assert others[0].last == 3
    assert await append(third, others[0], 4, 5) == 5
    assert await stored(third) == numbered(5)


@pytest.mark.parametrize("when", ["before", "after"])
async def test_an_end_by_another_process_counts_what_it_keeps(two, when):
    first, second = two
    writer = await opened(first)
    await append(first, writer, 1, 3)

    async def finish() -> None:
        await second.services.episodes.ender.end(NS, "e", end(), "")

    meanwhile(first, **{when: finish})
    with pytest.raises(EpisodeEndedError):
        await append(first, writer, 4, 5)
    found = await second.services.episodes.episodes.get(NS, "e")
    assert found.event_count == (3 if when == "before" else 5)
    assert await stored(second) == numbered(found.event_count)
    assert len(await payloads(first, EVENTS)) == found.event_count


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_single_event_that_crosses_an_end_is_refused_or_counted(two, when):
    first, second = two

    async def finish() -> None:
        await second.services.episodes.ender.end(NS, "e", end(), "")

    meanwhile(first, **{when: finish})
    try:
        await first.services.episodes.recorder.record_event(NS, "e", event(1), "r")
        told = 1
    except EpisodeEndedError:
        told = 0
    found = await second.services.episodes.episodes.get(NS, "e")
    assert found.event_count == told
    assert await stored(second) == numbered(told)


async def test_single_events_of_two_processes_get_numbers_of_their_own(two):
    for n in range(6):
        await two[n % 2].services.episodes.recorder.record_event(NS, "e", event(text=f"n{n}"), "")
    assert await stored(two[0]) == [(n, f"n{n - 1}".encode()) for n in range(1, 7)]


async def test_epochs_only_grow(two):
    epochs = []
    for n in range(4):
        writer = await opened(two[n % 2])
        epochs.append(writer.epoch)
    assert epochs == [1, 2, 3, 4]


async def test_a_request_of_yesterday_is_an_event_anew(two):
    first, _ = two
    await first.services.episodes.recorder.record_event(NS, "e", event(), "r")
    first.clock.advance(DAY)
    assert (
        await first.services.episodes.recorder.record_event(NS, "e", event(), "r")
    ).sequence == 2
    assert len(await payloads(first, EVENTS)) == 2


async def test_a_retry_never_answers_with_an_event_that_came_too_late(two):
    first, second = two
    await first.services.episodes.creator.start(NS, start(episode_id="late"))
    log = first.services.episodes.recorder._log
    store_it = log.put_first

    async def late(*given: Any) -> bool:
        """Another process takes the episode over, then the event comes, then this one dies."""
        writer = await second.services.episodes.recorder.open(NS, "late", TakeoverPolicy.REPLACE)
        await second.services.episodes.recorder.close(writer)
        assert await store_it(*given)
        raise InjectedFault

    log.put_first = late
    with pytest.raises(InjectedFault):
        await first.services.episodes.recorder.record_event(NS, "late", event(text="x"), "r")
    again = first.another_process().services
    stored = await again.episodes.recorder.record_event(NS, "late", event(text="x"), "r")
    assert stored.sequence == 1
    page = await again.episodes.episodes.list_events(NS, "late", 0, 10)
    assert [one.sequence for one in page.items] == [1]
    repeated = await again.episodes.recorder.record_event(NS, "late", event(text="x"), "r")
    assert repeated == stored


async def test_a_gap_within_a_batch_says_from_where_nothing_was_stored(world):
    writer = await world.services.episodes.recorder.open(NS, "e", TakeoverPolicy.REPLACE)
    await world.services.episodes.recorder.append(writer, events(1, 1))
    with pytest.raises(EventSequenceGapError, match="resend from 2"):
        await world.services.episodes.recorder.append(writer, [event(2), event(4)])
    assert await world.services.episodes.recorder.append(writer, events(2, 4)) == 4
