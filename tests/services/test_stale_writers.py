"""A writer of an episode whose place another has taken overwrites nothing."""

from __future__ import annotations

from typing import Any

import pytest

from lot_grpc.domain.episode import EpisodeStart, EpisodeStatus
from lot_grpc.domain.errors import (
    EventConflictError,
    WriterReplacedError,
)
from lot_grpc.services.distillation.distiller import DistillDefaults
from lot_grpc.services.episodes.drafts import EpisodeDraft
from lot_grpc.services.episodes.event_log import EventLog
from lot_grpc.services.episodes.event_recorder import TakeoverPolicy
from lot_grpc.services.records.collections import (
    EPISODES,
    EVENTS,
)
from lot_grpc.services.records.episodes import EXTRACTION, episode_point
from lot_grpc.services.runtime import PatternLearning
from tests.contract.clock import FixedClock
from tests.services.world import (
    MINUTE,
    NS,
    Interrupted,
    SharedStore,
    World,
    call,
    end,
    event,
    events,
    open_world,
    payloads,
    start,
    whole,
)


@pytest.fixture
async def world() -> World:
    """A process on a shared store in which others may come first."""
    clock = FixedClock()
    learning = PatternLearning(distill=DistillDefaults(0.7), interval=10 * MINUTE)
    return await open_world(Interrupted(SharedStore(clock)), clock, learning)


# --- episodes ---------------------------------------------------------------------------------


async def stored_episode(world: World) -> dict[str, Any]:
    [payload] = await payloads(world, EPISODES)
    return dict(payload)


async def taken_over(world: World) -> None:
    await world.another_process().services.episodes.recorder.open(NS, "e", TakeoverPolicy.REPLACE)


async def test_a_writer_that_was_replaced_before_it_looked_is_refused(world):
    await world.services.episodes.creator.start(NS, start(episode_id="e"))

    async def then() -> None:  # after its epoch was written, before it says what it found
        world.store.before("update", EPISODES, lambda: taken_over(world))

    world.store.before("update", EPISODES, then)
    with pytest.raises(WriterReplacedError):
        await world.services.episodes.recorder.open(NS, "e", TakeoverPolicy.REPLACE)


async def test_an_episode_that_is_abandoned_while_it_is_taken_over_runs_again(world):
    await world.services.episodes.creator.start(NS, start(episode_id="e"))
    point, abandoned = episode_point(NS, "e"), {"status": EpisodeStatus.ABANDONED.value}
    world.store.before(
        "update", EPISODES, lambda: world.store.update(EPISODES, NS, point, set=abandoned)
    )
    await world.services.episodes.recorder.open(NS, "e", TakeoverPolicy.REPLACE)
    assert (await world.services.episodes.episodes.get(NS, "e")).status is EpisodeStatus.RUNNING


async def test_an_end_that_lost_its_turn_counts_again(world):
    await world.services.episodes.creator.start(NS, start(episode_id="e"))

    async def recorded() -> None:
        recorder = world.another_process().services.episodes.recorder
        writer = await recorder.open(NS, "e", TakeoverPolicy.REPLACE)
        await recorder.append(writer, [event(1)])

    async def then() -> None:  # after its epoch was written, before the end is
        world.store.before("update", EPISODES, recorded)

    world.store.before("update", EPISODES, then)
    ended = await world.services.episodes.ender.end(NS, "e", end(), "")
    assert ended.episode.event_count == 1


@pytest.mark.parametrize("summary", ["", "It went well"])
async def test_an_end_is_that_of_the_episode_as_it_stands(world, summary):
    """An import, say, replaces it, and no epoch tells."""
    await world.services.episodes.creator.start(NS, start(episode_id="e"))
    point = episode_point(NS, "e")

    async def changed() -> None:
        await world.store.update(EPISODES, NS, point, set={"revision": 5})

    async def then() -> None:
        world.store.before("update", EPISODES, changed)

    world.store.before(*(("replace", EPISODES, changed) if summary else ("update", EPISODES, then)))
    ended = await world.services.episodes.ender.end(NS, "e", end(summary=summary), "")
    assert ended.episode.revision == 6


async def test_an_end_with_a_summary_leaves_what_was_counted_meanwhile(world):
    await world.services.episodes.creator.start(NS, start(episode_id="u"))

    async def used() -> None:
        other = world.another_process().services.episodes.creator
        await other.record(NS, whole(1, "e", end=end(used_episode_ids=("u",))))

    world.store.before("replace", EPISODES, used)
    ended = await world.services.episodes.ender.end(NS, "u", end(summary="It went well"), "")
    assert ended.episode.status.ended
    assert (await world.services.episodes.episodes.get(NS, "u")).reused_count == 1


async def test_an_event_of_a_writer_that_came_later_is_not_replaced(world):
    log = EventLog(world.store)
    await log.append(NS, "e", [event(1, "first")], 0, 1)

    async def later() -> None:
        await EventLog(world.store).append(NS, "e", [event(1, "third")], 0, 3)

    world.store.before("replace", EVENTS, later)
    with pytest.raises(EventConflictError):
        await log.append(NS, "e", [event(1, "second")], 0, 2)
    [stored] = await payloads(world, EVENTS)
    assert stored["epoch"] == 3


async def test_a_delete_spares_the_events_of_an_episode_that_took_the_id(world):
    await world.services.episodes.creator.record(NS, whole(3, "e"))

    async def begun_again() -> None:
        other = world.another_process().services.episodes
        world.clock.advance(1)
        await other.creator.start(NS, start(episode_id="e"))
        await other.recorder.record_event(NS, "e", event(text="new"), "")

    world.store.before("delete", EVENTS, begun_again)
    await world.services.episodes.episodes.delete_with_events(NS, "e")
    assert await world.store.count(EVENTS, NS) == 1
    assert (await stored_episode(world))["writer_epoch"] == 1  # nobody had to take it over


async def test_a_stream_of_a_deleted_episode_writes_nothing_to_another_that_took_its_id(world):
    await world.services.episodes.creator.start(NS, start(episode_id="e"))
    recorder, other = world.services.episodes.recorder, world.another_process().services.episodes
    former = await recorder.open(NS, "e", TakeoverPolicy.REPLACE)
    await other.episodes.delete_with_events(NS, "e")
    world.clock.advance(1)
    await other.creator.start(NS, start(episode_id="e"))
    writer = await other.recorder.open(NS, "e", TakeoverPolicy.REPLACE)
    with pytest.raises(WriterReplacedError):
        await recorder.append(former, events(1, 2))
    assert await other.recorder.append(writer, [event(1, "new")]) == 1
    page = await other.episodes.list_events(NS, "e", 0, 10)
    assert [one.data for one in page.items] == [b"new"]


async def test_what_an_episode_taught_is_not_noted_of_another_that_took_its_id(world):
    given = EpisodeDraft(
        EpisodeStart("Deploy"), "e", end=end(), events=(call("ssh"),), extract=True
    )
    await world.services.episodes.creator.record(NS, given)

    async def reborn() -> None:
        await world.services.episodes.episodes.delete_with_events(NS, "e")
        world.clock.advance(1)
        await world.services.episodes.creator.start(NS, start(episode_id="e"))

    world.store.before("update", EPISODES, reborn)
    await world.services.extraction.episodes.take(NS, "e")
    [stored] = await payloads(world, EPISODES)
    assert EXTRACTION not in stored
