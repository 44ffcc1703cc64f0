"""Leases: what other processes see of an open stream."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from lot_grpc.domain.errors import (
    EpisodeEndedError,
    EpisodeNotFoundError,
    EpisodeStreamOpenError,
    LotError,
    StoreUnavailableError,
    WriterReplacedError,
)
from lot_grpc.services.episodes.active_streams import OpenStream
from lot_grpc.services.episodes.event_recorder import TakeoverPolicy
from lot_grpc.services.records.collections import EPISODES
from tests.contract.clock import FixedClock
from tests.services.world import (
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

REPLACE, REFUSE = TakeoverPolicy.REPLACE, TakeoverPolicy.REFUSE


@pytest.fixture
async def two() -> tuple[World, World]:
    """Two processes over one store, and a running episode ``e``."""
    clock = FixedClock()
    first = await open_world(SharedStore(clock), clock)
    await first.services.episodes.creator.start(NS, start(episode_id="e"))
    return first, first.another_process()


async def opened(
    world: World, takeover_policy: TakeoverPolicy = REPLACE, episode_id: str = "e"
) -> OpenStream:
    return await world.services.episodes.recorder.open(NS, episode_id, takeover_policy)


async def single(world: World) -> int:
    return (await world.services.episodes.recorder.record_event(NS, "e", event(), "")).sequence


def told_by(writer: OpenStream) -> list[LotError]:
    told: list[LotError] = []
    writer.on_stop = told.append
    return told


async def test_who_is_polite_is_refused_while_another_process_has_a_stream(two):
    first, second = two
    writer = await opened(first)
    with pytest.raises(EpisodeStreamOpenError, match="open with REPLACE to replace it"):
        await opened(second, REFUSE)
    assert await first.services.episodes.recorder.append(writer, events(1, 2)) == 2
    assert (await payloads(first, EPISODES))[0]["writer_epoch"] == 1


async def test_a_single_event_is_refused_while_another_process_has_a_stream(two):
    first, second = two
    writer = await opened(first)
    with pytest.raises(EpisodeStreamOpenError, match="send the event over that stream"):
        await single(second)
    await first.services.episodes.recorder.close(writer)
    assert await single(second) == 1


async def test_a_closed_stream_holds_nothing(two):
    first, second = two
    await first.services.episodes.recorder.close(await opened(first))
    writer = await opened(second, REFUSE)
    assert writer.epoch == 2
    await second.services.episodes.recorder.close(writer)
    assert await single(first) == 1


async def test_that_of_a_dead_process_lapses(two):
    first, second = two
    await opened(first)
    second.clock.advance(29)
    with pytest.raises(EpisodeStreamOpenError):
        await opened(second, REFUSE)
    with pytest.raises(EpisodeStreamOpenError):
        await single(second)
    second.clock.advance(1)
    assert await single(second) == 1
    assert (await opened(second, REFUSE)).last == 1


async def test_it_is_renewed_while_the_process_lives(two):
    first, second = two
    await opened(first)
    for _ in range(5):
        first.clock.advance(20)
        await first.services.episodes.leases.renew()
    with pytest.raises(EpisodeStreamOpenError):
        await opened(second, REFUSE)


async def test_a_closed_stream_is_not_renewed(two):
    first, second = two
    await first.services.episodes.recorder.close(await opened(first))
    await first.services.episodes.leases.renew()
    assert (await opened(second, REFUSE)).epoch == 2


async def test_taking_over_heeds_no_lease_and_has_its_own(two):
    first, second = two
    writer = await opened(first)
    other = await opened(second, REPLACE)
    assert other.epoch == 2
    await first.services.episodes.recorder.close(writer)
    with pytest.raises(EpisodeStreamOpenError):
        await opened(first, REFUSE)
    await second.services.episodes.recorder.close(other)
    assert (await opened(first, REFUSE)).epoch == 3


async def test_of_two_who_are_polite_at_once_one_is_refused(two):
    first, second = two
    done = await asyncio.gather(
        *(opened(world, REFUSE) for world in (first, second)), return_exceptions=True
    )
    assert sorted(type(one).__name__ for one in done) == ["EpisodeStreamOpenError", "OpenStream"]


async def test_between_the_new_epoch_and_its_look_who_is_polite_is_refused_too(two):
    """The lease comes with the epoch, not after it."""
    first, second = two
    log = first.services.episodes.recorder._log
    look = log.last_sequence

    async def meanwhile(*given: Any) -> int:
        with pytest.raises(EpisodeStreamOpenError):
            await opened(second, REFUSE)
        return int(await look(*given))

    log.last_sequence = meanwhile
    assert (await opened(first, REFUSE)).epoch == 1


async def test_a_stream_that_was_replaced_elsewhere_is_told_though_it_says_nothing(two):
    first, second = two
    told = told_by(await opened(first))
    await opened(second)
    await first.services.episodes.leases.renew()
    assert [type(one) for one in told] == [WriterReplacedError]


async def test_a_stream_whose_episode_ended_elsewhere_is_told(two):
    first, second = two
    told = told_by(await opened(first))
    await second.services.episodes.ender.end(NS, "e", end(), "")
    await first.services.episodes.leases.renew()
    assert [type(one) for one in told] == [EpisodeEndedError]


async def test_a_stream_whose_episode_was_deleted_elsewhere_is_told(two):
    first, second = two
    told = told_by(await opened(first))
    await second.services.episodes.episodes.delete_with_events(NS, "e")
    await first.services.episodes.leases.renew()
    assert [type(one) for one in told] == [EpisodeNotFoundError]


async def test_an_end_heeds_no_lease(two):
    first, second = two
    writer = await opened(first)
    await first.services.episodes.recorder.append(writer, events(1, 3))
    assert (await second.services.episodes.ender.end(NS, "e", end(), "")).episode.event_count == 3


async def test_one_that_cannot_be_renewed_keeps_no_other_from_it_and_is_told_of(two):
    first, second = two
    for name in ("f", "g"):
        await first.services.episodes.creator.start(NS, start(episode_id=name))
    for name in ("e", "f", "g"):
        await opened(first, episode_id=name)
    first.clock.advance(20)
    fence = first.services.episodes.leases._fence
    renew = fence.renew
    renewed: list[str] = []

    async def failing(writer: OpenStream) -> bool:
        if writer.episode_id == "f":
            raise StoreUnavailableError("away")
        for _ in range(5):
            await asyncio.sleep(0)
        renewed.append(writer.episode_id)
        return bool(await renew(writer))

    fence.renew = failing
    with pytest.raises(StoreUnavailableError):
        await first.services.episodes.leases.renew()
    assert renewed == ["e", "g"]
    first.clock.advance(20)
    for name in ("e", "g"):
        with pytest.raises(EpisodeStreamOpenError):
            await opened(second, REFUSE, name)
    assert (await opened(second, REFUSE, "f")).epoch == 2


async def test_a_stream_closes_though_the_store_is_away(two):
    first, second = two
    writer = await opened(first)
    fence = first.services.episodes.leases._fence

    async def failing(writer: OpenStream) -> None:
        raise StoreUnavailableError("away")

    fence.release = failing
    await first.services.episodes.recorder.close(writer)
    assert first.services.episodes.recorder._active_streams._places == {}
    second.clock.advance(30)
    assert (await opened(second, REFUSE)).epoch == 2


async def test_a_store_of_one_process_has_no_leases():
    world = await open_world()
    await world.services.episodes.creator.start(NS, start(episode_id="e"))
    writer = await opened(world)
    await world.services.episodes.leases.renew()
    assert "writer_until" not in (await payloads(world, EPISODES))[0]
    await world.services.episodes.recorder.close(writer)
    assert "writer_until" not in (await payloads(world, EPISODES))[0]
