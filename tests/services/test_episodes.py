from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

import pytest

from lot_grpc.domain.complexity import Complexity
from lot_grpc.domain.episode import Episode, EpisodeError, EpisodeStatus
from lot_grpc.domain.errors import (
    EmbeddingUnavailableError,
    EpisodeEndedError,
    EpisodeIdInUseError,
    EpisodeNotFoundError,
    EventConflictError,
    RequestIdReusedError,
    RequestInvalidError,
)
from lot_grpc.domain.query import EpisodeFilter
from lot_grpc.ports import Embedding
from lot_grpc.services.records.collections import (
    EPISODES,
    EVENTS,
    SOLVED_VECTOR,
    SPARSE_VECTOR,
    TEXT_VECTOR,
)
from lot_grpc.testing.hashing import HashingEmbedder
from tests.services.world import (
    DAY,
    NS,
    World,
    end,
    event,
    open_world,
    payloads,
    start,
    whole,
)

FAILED = EpisodeStatus.FAILED


def told(episode: Episode) -> Episode:
    """As callers are told: an end that gave no time has the one it was stored with."""
    assert episode.end is not None
    return replace(episode, end=replace(episode.end, end_time=episode.end_time))


async def record_events(world: World, episode_id: str, count: int) -> None:
    for n in range(count):
        await world.services.episodes.recorder.record_event(NS, episode_id, event(text=f"n{n}"), "")


class Interrupted(HashingEmbedder):
    """Lets something happen while it embeds."""

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile: list[Callable[[], Awaitable[object]]] = []

    async def embed_documents(self, texts: Sequence[str]) -> list[Embedding]:
        if self.meanwhile:
            await self.meanwhile.pop()()
        return await super().embed_documents(texts)


async def test_what_others_write_while_a_summary_is_embedded_is_kept():
    world = await open_world(embedder=(embedder := Interrupted()))
    module = world.services.episodes
    for name in ("e", "f"):
        await module.creator.start(NS, start(episode_id=name))
    other = end(used_episode_ids=("e",))
    embedder.meanwhile.append(lambda: module.ender.end(NS, "f", other, ""))
    await module.ender.end(NS, "e", end(summary="done"), "")
    episode = await module.episodes.get(NS, "e")
    assert (episode.status, episode.reused_count) == (EpisodeStatus.SUCCEEDED, 1)


async def test_a_summary_that_cannot_be_embedded_ends_nothing_and_a_retry_does(world):
    failing = Interrupted()
    failing.meanwhile.append(fails)
    other = await open_world(world.store, world.clock, embedder=failing)
    await world.services.episodes.creator.start(NS, start(episode_id="e"))
    with pytest.raises(EmbeddingUnavailableError):
        await other.services.episodes.ender.end(NS, "e", end(summary="done"), "r")
    assert (await world.services.episodes.episodes.get(NS, "e")).status is EpisodeStatus.RUNNING
    ended = await other.services.episodes.ender.end(NS, "e", end(summary="done"), "r")
    assert ended.episode.status is EpisodeStatus.SUCCEEDED
    [record] = await world.store.scroll(EPISODES, NS, [], limit=9, vectors=True)
    assert set(record.vectors) == {TEXT_VECTOR, SOLVED_VECTOR, SPARSE_VECTOR}


async def fails() -> None:
    raise EmbeddingUnavailableError("the endpoint is away", url="http://here")


# --- starting ---------------------------------------------------------------------------------


async def test_a_started_episode_runs_from_now_with_the_complexity_of_its_points(world):
    started = await world.services.episodes.creator.start(
        NS, start("x" * 201, category="auth", dependencies=("a",), effort=3.0)
    )
    assert started.created
    episode = started.episode
    assert episode.status is EpisodeStatus.RUNNING
    assert episode.start.complexity is Complexity.MEDIUM  # 2 + 2 + 1 + 1
    assert (episode.start_time, episode.end_time, episode.event_count) == (
        world.clock.now(), None, 0,
    )  # fmt: skip
    assert await world.services.episodes.episodes.get(NS, episode.episode_id) == episode


async def test_a_complexity_that_is_given_stands(world):
    started = await world.services.episodes.creator.start(
        NS, start("x", complexity=Complexity.HIGH)
    )
    assert started.episode.start.complexity is Complexity.HIGH


async def test_starting_again_under_the_same_id_answers_alike(world):
    first = await world.services.episodes.creator.start(NS, start(episode_id="e"))
    await record_events(world, "e", 2)
    again = await world.services.episodes.creator.start(NS, start(episode_id="e"))
    assert not again.created
    assert again.episode.event_count == 2
    assert again.episode.create_time == first.episode.create_time
    with pytest.raises(EpisodeIdInUseError):
        await world.services.episodes.creator.start(NS, start("another task", episode_id="e"))


async def test_starting_again_by_request_id_answers_alike(world):
    first = await world.services.episodes.creator.start(NS, start(request_id="r"))
    again = await world.services.episodes.creator.start(NS, start(request_id="r"))
    assert again.created
    assert again.episode.episode_id == first.episode.episode_id
    with pytest.raises(RequestIdReusedError):
        await world.services.episodes.creator.start(NS, start("another", request_id="r"))
    assert len(await payloads(world, EPISODES)) == 1


# --- ending -----------------------------------------------------------------------------------


async def test_an_end_is_stored_with_all_that_it_says(world):
    await world.services.episodes.creator.start(NS, start(episode_id="e", approach="standard"))
    await record_events(world, "e", 3)
    world.clock.advance(9)
    given = end(
        FAILED,
        summary="it did not work",
        error=EpisodeError("TimeoutError", "too late"),
        error_patterns=("timeout",),
        success_factors=("none",),
        tools_used=("browser",),
        metrics={"seconds": 9.5},
        reward=-0.25,
        used_pattern_ids=("p-1",),
        approach="incremental",
    )
    ended = (await world.services.episodes.ender.end(NS, "e", given, "")).episode
    assert (ended.status, ended.event_count) == (FAILED, 3)
    assert (ended.end_time, ended.approach) == (world.clock.now(), "incremental")
    found = await world.services.episodes.episodes.get(NS, "e")
    assert found.end is not None
    assert found.end.metrics == {"seconds": 9.5}
    assert (found.end.error, found.end.reward) == (given.error, -0.25)
    assert found.start.approach == "standard"
    for asked in (
        EpisodeFilter(error_types=("TimeoutError",)),
        EpisodeFilter(approaches=("incremental",)),
        EpisodeFilter(tools_any=("browser", "x")),
    ):
        page = await world.services.episodes.episodes.list_page(NS, asked, 5, None)
        assert [one.episode_id for one in page.items] == ["e"]
    page = await world.services.episodes.episodes.list_page(
        NS, EpisodeFilter(approaches=("standard",)), 5, None
    )
    assert page.items == []


@pytest.mark.parametrize("request_id", ["", "r"])
async def test_the_same_end_again_answers_alike(world, request_id):
    await world.services.episodes.creator.start(NS, start(episode_id="e"))
    first = (
        await world.services.episodes.ender.end(NS, "e", end(summary="good"), request_id)
    ).episode
    world.clock.advance(60)
    again = (
        await world.services.episodes.ender.end(NS, "e", end(summary="good"), request_id)
    ).episode
    assert (again.end_time, again.etag) == (first.end_time, first.etag)
    with pytest.raises(EpisodeEndedError, match="cannot be ended again with a different end"):
        await world.services.episodes.ender.end(NS, "e", end(summary="bad"), "")


async def test_an_end_before_the_start_is_refused_and_the_episode_runs_on(world):
    await world.services.episodes.creator.start(NS, start(episode_id="e"))
    with pytest.raises(RequestInvalidError, match="must not be before"):
        await world.services.episodes.ender.end(NS, "e", end(end_time=5), "")
    with pytest.raises(RequestInvalidError, match="only allowed with status FAILED"):
        await world.services.episodes.ender.end(NS, "e", end(error=EpisodeError("x", "y")), "")
    await record_events(world, "e", 1)
    assert (await world.services.episodes.episodes.get(NS, "e")).status is EpisodeStatus.RUNNING


async def test_what_was_never_started_cannot_end(world):
    with pytest.raises(EpisodeNotFoundError):
        await world.services.episodes.ender.end(NS, "nope", end(), "")


async def test_an_ended_episode_takes_no_events(world):
    await world.services.episodes.creator.start(NS, start(episode_id="e"))
    await world.services.episodes.ender.end(NS, "e", end(), "")
    with pytest.raises(EpisodeEndedError, match="it accepts no more events"):
        await world.services.episodes.recorder.record_event(NS, "e", event(), "")
    assert await payloads(world, EVENTS) == []


# --- recording whole --------------------------------------------------------------------------


async def test_an_episode_is_recorded_whole(world):
    recorded = await world.services.episodes.creator.record(NS, whole(3, "e"))
    assert recorded.created
    assert (recorded.episode.status, recorded.episode.event_count) == (EpisodeStatus.SUCCEEDED, 3)
    assert told(await world.services.episodes.episodes.get(NS, "e")) == told(recorded.episode)
    page = await world.services.episodes.episodes.list_events(NS, "e", 0, 10)
    assert [(one.sequence, one.data) for one in page.items] == [
        (1, b"step 1"), (2, b"step 2"), (3, b"step 3"),
    ]  # fmt: skip


async def test_many_events_are_recorded_whole(world):
    recorded = await world.services.episodes.creator.record(NS, whole(2500, "e"))
    assert recorded.episode.event_count == 2500
    assert len(await payloads(world, EVENTS)) == 2500


async def test_recording_again_answers_alike_and_stores_nothing(world):
    for request_id in ("", "r"):
        first = await world.services.episodes.creator.record(
            NS, whole(3, f"e{request_id}", request_id)
        )
        again = await world.services.episodes.creator.record(
            NS, whole(3, f"e{request_id}", request_id)
        )
        assert told(again.episode) == told(first.episode)
        assert again.created == bool(request_id)
    assert len(await payloads(world, EVENTS)) == 6


async def test_recording_by_request_id_alone_finds_its_episode(world):
    first = await world.services.episodes.creator.record(NS, whole(3, request_id="r"))
    again = await world.services.episodes.creator.record(NS, whole(3, request_id="r"))
    assert told(again.episode) == told(first.episode)
    with pytest.raises(RequestIdReusedError):
        await world.services.episodes.creator.record(NS, whole(4, request_id="r"))


@pytest.mark.parametrize("count", [0, 2, 4])
async def test_other_events_under_an_id_in_use_are_refused_and_none_is_stored(world, count):
    await world.services.episodes.creator.record(NS, whole(3, "e"))
    with pytest.raises(EpisodeIdInUseError):
        await world.services.episodes.creator.record(NS, whole(count, "e"))
    assert len(await payloads(world, EVENTS)) == 3


async def test_changed_events_under_an_id_in_use_are_refused(world):
    await world.services.episodes.creator.record(NS, whole(1, "e"))
    other = whole(1, "e")
    changed = type(other)(
        other.start, other.episode_id, "", other.end, (event(text="something else"),)
    )
    with pytest.raises((EpisodeIdInUseError, EventConflictError)):
        await world.services.episodes.creator.record(NS, changed)
    (stored,) = (await world.services.episodes.episodes.list_events(NS, "e", 0, 5)).items
    assert stored.data == b"step 1"


async def test_another_episode_under_an_id_in_use_is_refused_before_any_event(world):
    await world.services.episodes.creator.start(NS, start(episode_id="e"))
    with pytest.raises(EpisodeIdInUseError):
        await world.services.episodes.creator.record(NS, whole(3, "e"))
    assert await payloads(world, EVENTS) == []
    assert (await world.services.episodes.episodes.get(NS, "e")).status is EpisodeStatus.RUNNING


async def test_events_out_of_order_are_refused_before_any_is_stored(world):
    given = whole(0)
    wrong = type(given)(given.start, "e", "", given.end, (event(0), event(3)))
    with pytest.raises(RequestInvalidError, match="sequence must be 0 or 2"):
        await world.services.episodes.creator.record(NS, wrong)
    assert await payloads(world, EVENTS) == []
    assert await payloads(world, EPISODES) == []


async def test_a_refused_recording_leaves_nothing_behind_for_the_sweep(world):
    await world.services.episodes.creator.start(NS, start(episode_id="e"))
    await record_events(world, "e", 2)
    with pytest.raises(EpisodeIdInUseError):
        await world.services.episodes.creator.record(NS, whole(5, "e"))
    world.clock.advance(DAY / 2)
    await world.services.housekeeping.roll_forward()
    assert (await world.services.episodes.episodes.get(NS, "e")).event_count == 2


# --- reading ----------------------------------------------------------------------------------


async def test_episodes_are_listed_newest_first_and_counted_while_they_run(world):
    for n in range(5):
        await world.services.episodes.creator.start(NS, start(f"task {n}", f"e{n}"))
    await record_events(world, "e3", 4)
    seen, after = [], None
    while True:
        page = await world.services.episodes.episodes.list_page(NS, EpisodeFilter(), 2, after)
        seen += [(one.episode_id, one.event_count) for one in page.items]
        if page.next is None:
            break
        after = page.next
    assert seen == [("e4", 0), ("e3", 4), ("e2", 0), ("e1", 0), ("e0", 0)]


@pytest.mark.parametrize("size", [1, 2, 3, 6, 7, 50])
async def test_events_are_listed_in_order_by_pages(world, size):
    await world.services.episodes.creator.record(NS, whole(7, "e"))
    seen, after = [], 0
    while True:
        page = await world.services.episodes.episodes.list_events(NS, "e", after, size)
        seen += [one.sequence for one in page.items]
        if page.next is None:
            break
        after = page.next
    assert seen == list(range(1, 8))


async def test_events_of_an_unknown_episode_are_not_found(world):
    with pytest.raises(EpisodeNotFoundError):
        await world.services.episodes.episodes.list_events(NS, "nope", 0, 5)


async def test_episodes_of_another_namespace_are_not_seen():
    world = await open_world()
    await world.services.episodes.creator.record(NS, whole(2, "e"))
    with pytest.raises(EpisodeNotFoundError):
        await world.services.episodes.episodes.get("other", "e")
    other = await world.services.episodes.creator.record("other", whole(1, "e"))
    assert other.created
    assert (await world.services.episodes.episodes.get(NS, "e")).event_count == 2
