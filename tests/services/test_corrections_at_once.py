"""Corrections while others correct the same entry, and while what was used is deleted and made
anew: the counters stay what the log adds up to."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import replace

import pytest

from lot_grpc.domain.episode import EpisodeStart
from lot_grpc.domain.errors import LotError, OutcomeCorrectedError, OutcomeNotFoundError
from lot_grpc.domain.ids import ResourceRef
from lot_grpc.domain.outcomes import Outcome
from lot_grpc.services.episodes.drafts import EpisodeDraft
from lot_grpc.services.outcomes.outcome_log import CorrectionDraft
from lot_grpc.services.outcomes.outcomes import OutcomeDraft
from lot_grpc.services.records.collections import (
    CONTEXT_STATS,
    MEMORIES,
    OUTCOMES,
    PATTERNS,
    TOMBSTONES,
)
from tests.contract.clock import FixedClock
from tests.services.world import (
    NS,
    Interrupted,
    SharedStore,
    World,
    end,
    memory,
    of_pattern,
    open_world,
    payloads,
    save,
)

SUCCESS, FAILURE, PARTIAL = Outcome.SUCCESS, Outcome.FAILURE, Outcome.PARTIAL


class DeathError(Exception):
    """The process dies."""


@pytest.fixture
async def world() -> World:
    clock = FixedClock()
    world = await open_world(Interrupted(SharedStore(clock)), clock)
    await save(world, pattern_id="p")
    await world.services.memories.memories.create(NS, memory(memory_id="m"))
    return world


async def used(world: World, outcome: Outcome = SUCCESS) -> str:
    draft = OutcomeDraft(("p",), outcome, query="log in", memory_ids=("m",))
    return (await world.services.outcomes.recorder.record(NS, draft)).outcome_id


async def correct(world: World, outcome_id: str, instead: Outcome | None, **named: str) -> None:
    draft = CorrectionDraft(outcome_id, instead, **named)
    await world.services.outcomes.log.correct(NS, draft)


async def check(world: World) -> None:
    """The counters of each record, and its stats, are what stands in its log."""
    entries = await payloads(world, OUTCOMES)
    undone = {(one.get("corrects_outcome_id"), one["resource_id"]) for one in entries}
    for collection, id_key in ((PATTERNS, "pattern_id"), (MEMORIES, "memory_id")):
        for record in await payloads(world, collection):
            name = record[id_key]
            theirs = [one for one in entries if one["resource_id"] == name]
            stand = Counter(
                one["outcome"]
                for one in theirs
                if one.get("outcome") and (one["outcome_id"], name) not in undone
            )
            counts = {each: record.get(f"{each}_count", 0) for each in Outcome}
            assert counts == {each: stand[each] for each in Outcome}
            stats = await payloads(world, CONTEXT_STATS)
            learned = sum(one["count"] for one in stats if one["resource_id"] == name)
            assert learned == sum(stand.values())


@pytest.mark.parametrize("collection", [PATTERNS, MEMORIES, CONTEXT_STATS])
async def test_who_loses_a_correction_does_not_count_it_as_its_own(world, collection):
    wrong = await used(world)

    async def other_correction() -> None:
        with suppress(OutcomeCorrectedError):
            await correct(world.another_process(), wrong, PARTIAL)

    world.store.before("update", collection, other_correction)
    with suppress(OutcomeCorrectedError):
        await correct(world, wrong, FAILURE)
    await check(world)
    await world.services.housekeeping.roll_forward(starting=True)
    await check(world)


async def anew(world: World, *, memory_too: bool) -> None:
    """What was used is deleted, and something else takes its id."""
    services = world.another_process().services
    await services.patterns.patterns.delete(NS, "p", "")
    await save(world, "Water the plants", pattern_id="p")
    if memory_too:
        await services.memories.memories.delete(NS, "m")
        await services.memories.memories.create(NS, memory("water", memory_id="m"))


@pytest.mark.parametrize("memory_too", [True, False])
@pytest.mark.parametrize("twice", [True, False])
@pytest.mark.parametrize(
    ("call", "collection"),
    [("insert", OUTCOMES), ("update", PATTERNS), ("update", MEMORIES), ("update", CONTEXT_STATS)],
)
async def test_a_correction_is_not_counted_for_what_took_the_id(
    world, call, collection, twice, memory_too
):
    wrong = await used(world)
    if twice:
        await correct(world, wrong, PARTIAL)
        entries = await payloads(world, OUTCOMES)
        [wrong] = {one["outcome_id"] for one in entries if one.get("corrects_outcome_id")}
    world.store.before(call, collection, lambda: anew(world, memory_too=memory_too))
    with suppress(LotError):
        await correct(world, wrong, FAILURE)
    await check(world)
    await world.services.housekeeping.roll_forward(starting=True)
    await check(world)
    log = world.services.outcomes.log
    assert (await log.list_page(NS, of_pattern("p"), 10, None)).items == []


@pytest.mark.parametrize("died_before", ["update", "insert"])
async def test_a_correction_that_died_is_not_finished_for_what_took_the_id(world, died_before):
    """Its entry is in the log when the record is deleted; the delete dies before it drops that."""
    wrong = await used(world)

    async def die() -> None:
        raise DeathError

    world.store.before("update", PATTERNS, die)
    with suppress(DeathError):
        await correct(world, wrong, FAILURE)
    world.store.before("update" if died_before == "update" else "insert", TOMBSTONES, die)
    with suppress(DeathError):
        await anew(world, memory_too=False)
    await world.services.housekeeping.roll_forward(starting=True)
    await check(world)


async def test_an_entry_of_what_was_deleted_is_not_found(world):
    wrong = await used(world)
    await anew(world, memory_too=True)
    with pytest.raises(OutcomeNotFoundError):
        await correct(world, wrong, FAILURE)


async def test_an_outcome_of_what_was_just_deleted_leaves_no_entry_to_what_takes_the_id(world):
    """For an episode, nothing looks for older entries when another takes its id."""
    episodes = world.services.episodes
    ended = EpisodeDraft(EpisodeStart("Log in"), "e", end=end())
    await episodes.creator.record(NS, ended)

    async def deleted() -> None:
        await world.another_process().services.episodes.episodes.delete_with_events(NS, "e")

    world.store.before("insert", OUTCOMES, deleted)
    draft = OutcomeDraft(("p",), SUCCESS, query="log in", episode_ids=("e",))
    recorded = await world.services.outcomes.recorder.record(NS, draft)
    assert recorded.episodes == []
    await episodes.creator.record(NS, replace(ended, start=EpisodeStart("Water the plants")))
    log = world.services.outcomes.log
    assert (await log.list_page(NS, ResourceRef("episode", "e"), 10, None)).items == []
    assert len((await log.list_page(NS, of_pattern("p"), 10, None)).items) == 1
    await check(world)
