"""Many callers at once on one thing, each giving way to the others at every call to the store."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from lot_grpc.domain.errors import (
    ContentionError,
    EpisodeEndedError,
    EpisodeStreamOpenError,
    EventConflictError,
    LotError,
    WriterReplacedError,
)
from lot_grpc.domain.outcomes import Outcome
from lot_grpc.domain.pattern import PatternContent
from lot_grpc.services.episodes.event_recorder import TakeoverPolicy
from lot_grpc.services.patterns.patterns import PatternEdit
from lot_grpc.services.records.collections import EVENTS, OUTCOMES, PATTERNS
from lot_grpc.testing.in_memory import InMemoryStore
from tests.contract.clock import FixedClock
from tests.services.world import (
    NS,
    Interleaving,
    SharedStore,
    World,
    draft,
    end,
    event,
    memory,
    open_world,
    outcome,
    save,
    start,
    whole,
)

SEEDS = (7, 100, 102, 120)
"""Interleavings; each of the last three once found a race."""


@pytest.fixture(params=[(make, seed) for make in (InMemoryStore, SharedStore) for seed in SEEDS])
async def worlds(request: pytest.FixtureRequest) -> list[World]:
    """One process on a store of its own, or three on a shared one."""
    make, seed = request.param
    clock = FixedClock()
    first = await open_world(Interleaving(make(clock), seed), clock)
    if make is InMemoryStore:
        return [first]
    return [first, first.another_process(), first.another_process()]


def turn(worlds: list[World], n: int) -> World:
    return worlds[n % len(worlds)]


async def test_fifty_outcomes_of_one_pattern_all_count(worlds):
    made = (await save(worlds[0])).pattern
    kinds = [Outcome.SUCCESS, Outcome.FAILURE, Outcome.PARTIAL]
    await asyncio.gather(
        *(outcome(turn(worlds, n), made.pattern_id, outcome=kinds[n % 3]) for n in range(50))
    )
    found = (await worlds[0].services.patterns.patterns.get(NS, made.pattern_id)).outcomes
    assert (found.success_count, found.failure_count, found.partial_count) == (17, 17, 16)
    assert await worlds[0].store.count(OUTCOMES, NS) == 50


async def test_one_request_sent_twenty_times_counts_once(worlds):
    made = (await save(worlds[0])).pattern
    await asyncio.gather(
        *(outcome(turn(worlds, n), made.pattern_id, request_id="r") for n in range(20))
    )
    assert (
        await worlds[0].services.patterns.patterns.get(NS, made.pattern_id)
    ).outcomes.usage_count == 1
    assert await worlds[0].store.count(OUTCOMES, NS) == 1


async def test_one_content_saved_twenty_times_at_once_is_one_pattern(worlds):
    saved = await asyncio.gather(*(save(turn(worlds, n)) for n in range(20)))
    assert [one.created for one in saved].count(True) == 1
    assert len({one.pattern.pattern_id for one in saved}) == 1
    found = await worlds[0].services.patterns.patterns.get(NS, saved[0].pattern.pattern_id)
    assert found.outcomes.usage_count == 19
    assert await worlds[0].store.count(PATTERNS, NS) == 1


async def test_one_save_request_sent_twenty_times_at_once_is_one_pattern(worlds):
    saved = await asyncio.gather(*(save(turn(worlds, n), request_id="r") for n in range(20)))
    assert len({one.pattern.pattern_id for one in saved}) == 1
    found = await worlds[0].services.patterns.patterns.get(NS, saved[0].pattern.pattern_id)
    assert found.outcomes.usage_count == 0


async def test_batches_of_the_same_contents_at_once_make_each_pattern_once(worlds):
    async def batch(n: int) -> None:
        results = await turn(worlds, n).services.patterns.writer.save_many(
            NS, [draft(f"task {(n + i) % 5}") for i in range(5)]
        )
        assert not [one for one in results if isinstance(one, LotError)]

    await asyncio.gather(*(batch(n) for n in range(6)))
    records = await worlds[0].store.scroll(PATTERNS, NS, [], limit=100)
    assert len(records) == 5
    assert [record.payload["usage_count"] for record in records] == [5] * 5


async def test_an_edit_loses_no_outcome_and_an_outcome_no_edit(worlds):
    made = (await save(worlds[0])).pattern

    async def edit(n: int) -> None:
        content = replace(PatternContent("unused"), tags=(f"tag{n}",))
        await turn(worlds, n).services.patterns.patterns.update(
            NS, made.pattern_id, PatternEdit(content, frozenset({"tags"})), ""
        )

    await asyncio.gather(
        *(outcome(turn(worlds, n), made.pattern_id) for n in range(15)),
        *(edit(n) for n in range(5)),
    )
    found = await worlds[0].services.patterns.patterns.get(NS, made.pattern_id)
    assert found.outcomes.usage_count == 15
    assert found.revision == 6


async def test_of_two_edits_by_one_etag_one_is_refused(worlds):
    made = (await save(worlds[0])).pattern

    async def edit(n: int) -> bool:
        content = replace(PatternContent("unused"), title=f"title {n}")
        wanted = PatternEdit(content, frozenset({"title"}))
        try:
            await turn(worlds, n).services.patterns.patterns.update(
                NS, made.pattern_id, wanted, made.etag
            )
        except LotError:
            return False
        return True

    assert sum(await asyncio.gather(*(edit(n) for n in range(6)))) == 1


async def test_a_content_saved_while_it_is_deleted_is_there_once_or_not_at_all(worlds):
    for round_ in range(10):
        made = (await save(worlds[0], f"task {round_}")).pattern
        results = await asyncio.gather(
            turn(worlds, 1).services.patterns.patterns.delete(NS, made.pattern_id, ""),
            *(save(turn(worlds, n), f"task {round_}") for n in range(3)),
            return_exceptions=True,
        )
        unexpected = [
            r for r in results if isinstance(r, Exception) and not isinstance(r, LotError)
        ]
        assert not unexpected
        again = await save(worlds[0], f"task {round_}")
        records = await worlds[0].store.scroll(PATTERNS, NS, [], limit=100)
        tasks = [record.payload["task"] for record in records]
        assert tasks.count(f"task {round_}") == 1, results
        assert again.pattern.content.task == f"task {round_}"


async def test_single_events_at_once_are_numbered_without_gaps(worlds):
    await worlds[0].services.episodes.creator.start(NS, start(episode_id="e"))
    given = await asyncio.gather(
        *(
            turn(worlds, n).services.episodes.recorder.record_event(
                NS, "e", event(text=f"n{n}"), f"r{n}"
            )
            for n in range(15)
        )
    )
    assert sorted(one.sequence for one in given) == list(range(1, 16))
    page = await worlds[0].services.episodes.episodes.list_events(NS, "e", 0, 100)
    assert {one.data for one in page.items} == {f"n{n}".encode() for n in range(15)}


async def test_one_event_request_sent_ten_times_is_stored_once(worlds):
    await worlds[0].services.episodes.creator.start(NS, start(episode_id="e"))
    await asyncio.gather(
        *(
            turn(worlds, n).services.episodes.recorder.record_event(NS, "e", event(text="x"), "r")
            for n in range(10)
        )
    )
    assert await worlds[0].store.count(EVENTS, NS) == 1


async def test_events_that_cross_an_end_are_refused_or_counted(worlds):
    for round_ in range(8):
        episode_id = f"e{round_}"
        await worlds[0].services.episodes.creator.start(NS, start(episode_id=episode_id))
        results = await asyncio.gather(
            *(
                turn(worlds, n).services.episodes.recorder.record_event(
                    NS, episode_id, event(text="x"), ""
                )
                for n in range(4)
            ),
            turn(worlds, 1).services.episodes.ender.end(NS, episode_id, end(), ""),
            return_exceptions=True,
        )
        refused = [one for one in results if isinstance(one, Exception)]
        assert not [one for one in refused if not isinstance(one, LotError)], refused
        told = 4 - len(refused)
        found = await worlds[0].services.episodes.episodes.get(NS, episode_id)
        assert found.status.ended
        assert found.event_count >= told
        page = await worlds[0].services.episodes.episodes.list_events(NS, episode_id, 0, 100)
        assert len(page.items) == found.event_count


async def test_one_end_sent_many_times_ends_it_once(worlds):
    await worlds[0].services.episodes.creator.start(NS, start(episode_id="e"))
    ended = await asyncio.gather(
        *(turn(worlds, n).services.episodes.ender.end(NS, "e", end(), "r") for n in range(8))
    )
    assert {one.episode.revision for one in ended} == {2}
    others = await asyncio.gather(
        *(
            turn(worlds, n).services.episodes.ender.end(NS, "e", end(summary="x"), "")
            for n in range(3)
        ),
        return_exceptions=True,
    )
    assert all(isinstance(one, EpisodeEndedError) for one in others)


async def test_one_recording_sent_many_times_is_stored_once(worlds):
    recorded = await asyncio.gather(
        *(
            turn(worlds, n).services.episodes.creator.record(NS, whole(7, request_id="r"))
            for n in range(6)
        )
    )
    assert len({one.episode.episode_id for one in recorded}) == 1
    assert await worlds[0].store.count(EVENTS, NS) == 7


async def test_one_memory_request_sent_many_times_is_one_memory(worlds):
    created = await asyncio.gather(
        *(
            turn(worlds, n).services.memories.memories.create(NS, memory(request_id="r"))
            for n in range(8)
        )
    )
    assert len({one.memory.memory_id for one in created}) == 1


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("make", [InMemoryStore, SharedStore])
async def test_streams_that_take_over_from_each_other_leave_no_gap_and_lose_nothing(make, seed):
    """Each writer sends what it has not been acknowledged, as a client that reconnects does."""
    clock = FixedClock()
    worlds = [await open_world(Interleaving(make(clock), seed), clock)]
    if make is SharedStore:
        worlds += [worlds[0].another_process(), worlds[0].another_process()]
    await worlds[0].services.episodes.creator.start(NS, start(episode_id="e"))
    acknowledged: dict[int, bytes | None] = {}
    found: dict[int, int] = {}

    async def client(n: int) -> None:
        recorder = turn(worlds, n).services.episodes.recorder
        for _ in range(n):
            await asyncio.sleep(0)
        try:
            writer = await recorder.open(NS, "e", TakeoverPolicy.REPLACE)
        except WriterReplacedError:
            return
        found[writer.epoch] = writer.last
        try:
            for batch in range(4):
                first = writer.last + 1
                given = [event(k, f"{n}.{batch}.{k}") for k in range(first, first + 3)]
                assert await recorder.append(writer, given) == first + 2
                acknowledged.update({one.sequence: one.data for one in given})
        except WriterReplacedError:
            pass
        finally:
            await recorder.close(writer)

    async def single(n: int) -> None:
        given = event(text=f"single {n}")
        try:
            stored = await turn(worlds, n).services.episodes.recorder.record_event(
                NS, "e", given, f"r{n}"
            )
        except (EpisodeStreamOpenError, ContentionError, EventConflictError):
            return
        acknowledged[stored.sequence] = stored.data

    # A stream and single events of another process cannot see each other: not at the same time.
    await asyncio.gather(*(client(n) for n in range(6)))
    await asyncio.gather(*(single(n) for n in range(6)))
    await asyncio.gather(*(client(n) for n in range(3)))
    ended = (await worlds[-1].services.episodes.ender.end(NS, "e", end(), "")).episode
    page = await worlds[0].services.episodes.episodes.list_events(NS, "e", 0, 1000)
    stored = {one.sequence: one.data for one in page.items}
    assert sorted(stored) == list(range(1, ended.event_count + 1))
    assert acknowledged.items() <= stored.items()
    assert all(last <= ended.event_count for last in found.values())
