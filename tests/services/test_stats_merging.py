"""Context stats of one pattern that are merged while others count and repeat: none is lost, none
counts twice."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress

import pytest

from lot_grpc.domain.errors import ContentionError
from lot_grpc.domain.transfer import ExportSpec, ImportTerms
from lot_grpc.services.outcomes import context_stats
from lot_grpc.services.outcomes.outcome_log import CorrectionDraft
from lot_grpc.services.records.collections import CONTEXT_STATS, PATTERNS
from lot_grpc.services.transfer.importer import ImportRun
from tests.contract.clock import FixedClock
from tests.services.invariants import check_invariants
from tests.services.world import (
    NS,
    Interleaving,
    Interrupted,
    SharedStore,
    World,
    of_pattern,
    open_world,
    outcome,
    payloads,
    rows,
    save,
)

QUERIES = ("alpha beta", "alpha beta gamma", "delta", "epsilon zeta")


@pytest.fixture(autouse=True)
def two_stats_of_a_pattern(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context_stats, "MAX_CONTEXT_STATS", 2)


@pytest.fixture
async def world() -> World:
    """One process over a shared store, in which something may happen before a call."""
    clock = FixedClock()
    world = await open_world(Interrupted(SharedStore(clock)), clock)
    await save(world, pattern_id="p")
    return world


async def counted(world: World) -> int:
    return sum(stats["count"] for stats in await payloads(world, CONTEXT_STATS))


async def logged(world: World) -> list[str]:
    """The ids of the outcomes, oldest first."""
    log = world.services.outcomes.log
    page = await log.list_page(NS, of_pattern("p"), 100, None)
    return [entry.recorded.outcome_id for entry in reversed(page.items)]


async def corrected(world: World, outcome_id: str, **named: str) -> None:
    draft = CorrectionDraft(outcome_id, None, **named)
    await world.services.outcomes.log.correct(NS, draft)


async def test_a_repeat_whose_stats_were_merged_before_it_inserts_them_counts_once(world):
    merged, *others = QUERIES[1], QUERIES[0], QUERIES[2]
    for query in others:
        await outcome(world, "p", query=query)

    async def again() -> None:  # counts it, in stats that are merged at once
        world.clock.advance(1)
        await outcome(world.another_process(), "p", query=merged, request_id="r")

    world.store.before("insert", CONTEXT_STATS, again)
    await outcome(world, "p", query=merged, request_id="r")
    assert await counted(world) == 3
    await check_invariants(world.store, NS)


@pytest.mark.parametrize("stats_first", [0, 1, 2, 3])
async def test_queries_that_recur_in_processes_of_one_clock_lose_no_outcome(world, stats_first):
    """Each process makes its sort keys by itself, so that two of them may be equal."""
    for query in QUERIES[:stats_first]:
        await outcome(world, "p", query=query)
    for _ in range(3):
        for query in QUERIES[:3]:
            await outcome(world.another_process(), "p", query=query)
    assert await counted(world) == stats_first + 9
    await check_invariants(world.store, NS)


async def test_outcomes_on_a_merged_query_that_recurs_can_be_corrected(world):
    for query in (QUERIES[0], QUERIES[1], QUERIES[1], QUERIES[1], QUERIES[2], QUERIES[1]):
        await outcome(world, "p", query=query)
    for outcome_id in (await logged(world))[1:4]:
        await corrected(world, outcome_id)
    assert await counted(world) == 3
    await check_invariants(world.store, NS)


async def test_a_correction_is_repeated_while_its_query_comes_again(world, monkeypatch):
    for query in QUERIES[:3]:  # the second is merged
        await outcome(world, "p", query=query)
    wrong = (await logged(world))[1]

    async def again() -> None:
        monkeypatch.setattr(context_stats, "MAX_CONTEXT_STATS", 9)
        await outcome(world.another_process(), "p", query=QUERIES[1])
        await corrected(world.another_process(), wrong, request_id="r")

    world.store.before("update", CONTEXT_STATS, again)
    await corrected(world, wrong, request_id="r")
    assert await counted(world) == 3
    await check_invariants(world.store, NS)


async def test_outcomes_whose_query_was_merged_are_corrected_once_after_an_import(world):
    for query in QUERIES[:3]:  # the second is merged
        await outcome(world, "p", query=query)
    await outcome(world, "p", query=QUERIES[1])
    exported = world.services.transfer.exporter.rows(ExportSpec(NS))
    everything = [row async for row, _ in exported]
    clock = FixedClock()
    other = await open_world(Interleaving(SharedStore(clock)), clock)
    await other.services.transfer.importer.take(ImportRun(ImportTerms()), everything)
    assert await counted(other) == 4
    first, wrong, *_ = await logged(other)
    processes = (other, other.another_process())
    await asyncio.gather(
        *(corrected(processes[n % 2], wrong, request_id="r") for n in range(4)),
        *(corrected(processes[n % 2], first, request_id="s") for n in range(4)),
    )
    assert await counted(other) == 2
    await check_invariants(other.store, NS)


async def test_a_pattern_that_is_deleted_before_its_stats_are_merged_is_left_alone(world):
    for query in QUERIES[:2]:
        await outcome(world, "p", query=query)

    async def gone() -> None:
        await world.another_process().services.patterns.patterns.delete(NS, "p", "")

    world.store.before("scroll", CONTEXT_STATS, gone)
    await outcome(world, "p", query=QUERIES[2])
    assert not await payloads(world, PATTERNS)


async def test_a_late_write_after_the_pattern_is_deleted_does_not_block_new_outcomes(world):
    """What a late write leaves behind leads to nothing, and the next outcome finds that out."""
    for query in QUERIES[:3]:  # the second is merged
        await outcome(world, "p", query=query)
    [left] = [one for one in await rows(world.store, CONTEXT_STATS) if not one.payload["count"]]
    await world.services.patterns.patterns.delete(NS, "p", "")
    await save(world, pattern_id="p")
    await world.store.insert(CONTEXT_STATS, [left])
    await outcome(world, "p", query=QUERIES[1], request_id="r")
    assert await counted(world) == 1


def _seeds(count: int, exhaustive: int) -> list[object]:
    more = [pytest.param(n, marks=pytest.mark.exhaustive) for n in range(count, exhaustive)]
    return [*range(count), *more]


@pytest.mark.parametrize("seed", _seeds(24, 400))
async def test_repeats_and_corrections_from_two_processes_count_once(seed):
    drawn = random.Random(seed)
    clock = FixedClock()
    store = Interleaving(SharedStore(clock), seed)
    world = await open_world(store, clock)
    processes = (world, world.another_process())
    for pattern_id in ("p", "q"):
        await save(world, f"task {pattern_id}", pattern_id=pattern_id)
    expected = {"p": 0, "q": 0}

    async def send(query: str, pattern_ids: tuple[str, ...], request_id: str, turns: int) -> None:
        for _ in range(turns):
            await asyncio.sleep(0)
        process = drawn.choice(processes)
        for _ in range(20):
            with suppress(ContentionError):
                await outcome(process, *pattern_ids, query=query, request_id=request_id)
                return

    calls = []
    for number in range(drawn.randrange(2, 14)):
        pattern_ids = drawn.choice((("p",), ("q",), ("p", "q")))
        query = drawn.choice(QUERIES)
        for one in pattern_ids:
            expected[one] += 1
        for _ in range(drawn.randrange(1, 4)):
            turns = drawn.choice((0, 0, 5, 20, 60, 120))
            calls.append(send(query, pattern_ids, f"r{number}", turns))
    await asyncio.gather(*calls)
    wrong = [one for one in await logged(world) if drawn.random() < 0.3]
    again = [one for one in wrong for _ in range(drawn.randrange(1, 4))]
    await asyncio.gather(
        *(corrected(drawn.choice(processes), one, request_id=f"c{one}") for one in again)
    )
    usage = {one["pattern_id"]: one["usage_count"] for one in await payloads(world, PATTERNS)}
    assert sum(usage.values()) <= sum(expected.values())
    if not wrong:
        assert usage == expected
    await check_invariants(store, NS)
