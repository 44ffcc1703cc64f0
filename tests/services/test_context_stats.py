"""What is learned of a pattern is learned for the query it answered, and for like ones."""

from __future__ import annotations

import asyncio

import pytest

from lot_grpc.domain.context_stats import MAX_CONTEXT_STATS, Fading
from lot_grpc.domain.outcomes import Outcome
from lot_grpc.domain.query import PatternFilter, Ranking
from lot_grpc.services.outcomes import context_stats
from lot_grpc.services.records.collections import CONTEXT_STATS, OUTCOMES, RETRIEVALS
from tests.contract.clock import FixedClock
from tests.services.invariants import check_invariants
from tests.services.world import (
    DAY,
    NS,
    Interleaving,
    SharedStore,
    World,
    open_world,
    outcome,
    payloads,
    recall,
    rows,
    save,
)

LIBRARY = "log in to the web site of the city library with the password of the reader"
TICKETS = "cancel the tickets of the night train that leaves from the old harbour station"


def tasks(answer) -> list[str]:
    return [hit.thing.content.task for hit in answer.hits]


async def two_near_ties(world: World) -> tuple[str, str]:
    one, two = [(await save(world, f"{LIBRARY} {n}")).pattern.pattern_id for n in (1, 2)]
    return one, two


async def test_outcomes_on_another_kind_of_query_say_nothing_of_this_one(world):
    one, two = await two_near_ties(world)
    for _ in range(6):
        await outcome(world, one, outcome=Outcome.FAILURE, query=TICKETS)
        await outcome(world, two, query=TICKETS)
    answer = await recall(world, f"{LIBRARY} 1", explain=True)
    assert tasks(answer)[0] == f"{LIBRARY} 1"
    assert [hit.evidence.trials for hit in answer.hits] == [0, 0]


async def test_a_near_query_counts_as_one_trial_however_often_it_was_asked(world):
    one, two = await two_near_ties(world)
    for _ in range(6):
        await outcome(world, two, query=f"{LIBRARY} 1 now")
    hits = {hit.thing.pattern_id: hit for hit in (await recall(world, f"{LIBRARY} 1")).hits}
    assert 0.0 < hits[two].evidence.trials <= 1.0
    assert hits[two].evidence.neighbours[0].trials > 4.0
    assert hits[one].evidence.trials == 0.0


async def test_an_outcome_without_a_query_counts_for_the_pattern_as_a_whole_only(world):
    one, two = await two_near_ties(world)
    for _ in range(6):
        await outcome(world, one, outcome=Outcome.FAILURE)
    answer = await recall(world, f"{LIBRARY} 1")
    assert tasks(answer)[0] == f"{LIBRARY} 1"
    assert answer.hits[0].thing.outcomes.usage_count == 6
    assert await payloads(world, CONTEXT_STATS) == []
    assert two


async def test_one_query_in_other_letters_and_spaces_has_one_record_of_stats(world):
    one, _ = await two_near_ties(world)
    await outcome(world, one, query="How to  log in")
    await outcome(world, one, query=" how TO log in ", outcome=Outcome.PARTIAL)
    (stats,) = await payloads(world, CONTEXT_STATS)
    assert (stats["count"], stats["query"]) == (2, "How to  log in")
    assert stats["successes"] == pytest.approx(Fading().decay + 0.5)


async def test_a_recall_is_remembered_with_its_vector(world):
    one, _ = await two_near_ties(world)
    answer = await recall(world, "how to log in")
    embedded = world.embedder.embed_query

    async def broken(text: str):
        raise AssertionError(f"embedded again: {text}")

    world.embedder.embed_query = broken
    await outcome(world, one, retrieval_id=answer.retrieval_id)
    world.embedder.embed_query = embedded
    (known,) = [
        hit.evidence
        for hit in (await recall(world, "how to log in")).hits
        if hit.thing.pattern_id == one
    ]
    assert known.trials == pytest.approx(1.0)
    assert known.neighbours[0].cosine == pytest.approx(1.0)


async def test_an_explanation_tells_the_outcomes_that_counted_and_what_each_filter_kept_out(world):
    one, two = await two_near_ties(world)
    await save(world, "water the plants", language="go")
    await outcome(world, one, outcome=Outcome.FAILURE, query=f"{LIBRARY} 1")
    await outcome(world, two, query=f"{LIBRARY} 1")
    await outcome(world, two, query=f"{LIBRARY} 3")
    narrowed = PatternFilter(min_success_rate=0.75, min_usage_count=1)
    answer = await recall(world, f"{LIBRARY} 1", narrowed=narrowed, explain=True)
    assert tasks(answer) == [f"{LIBRARY} 2"]
    (hit,) = answer.hits
    assert [near.query for near in hit.evidence.neighbours] == [f"{LIBRARY} 1", f"{LIBRARY} 3"]
    assert hit.evidence.neighbours[0].weight == pytest.approx(1.0)
    assert hit.evidence.neighbours[1].weight < 1.0
    assert answer.explanation is not None
    assert answer.explanation.removed == {
        "min_success_rate": 1,
        "min_usage_count": 1,
        "superseded": 0,
        "reviews": 0,
    }
    assert (answer.explanation.matching, answer.explanation.in_namespace) == (1, 3)


async def test_old_outcomes_fade(world):
    one, two = await two_near_ties(world)
    await outcome(world, two, query=f"{LIBRARY} 1")
    fresh = (await recall(world, f"{LIBRARY} 1")).hits[0]
    assert fresh.thing.pattern_id == two
    world.clock.advance(5 * 180 * DAY)
    later = {h.thing.pattern_id: h for h in (await recall(world, f"{LIBRARY} 1")).hits}
    assert later[two].evidence.trials == pytest.approx(1 / 32)
    assert one in later


async def test_explore_samples_by_seed_and_tells_the_seed(world):
    for pattern in await two_near_ties(world):
        await outcome(world, pattern, outcome=Outcome.PARTIAL, query=f"{LIBRARY} 1")
    answers = [await explored(world, seed) for seed in range(150)]
    assert [answer.explanation.seed for answer in answers] == list(range(150))
    orders = [tasks(answer) for answer in answers]
    assert [tasks(await explored(world, seed)) for seed in range(10)] == orders[:10]
    assert len({tuple(order) for order in orders}) == 2  # the rarer one comes up in 5 to 25 percent
    told = (await explored(world, None)).explanation.seed
    assert tasks(await explored(world, told)) == tasks(await explored(world, told))


async def explored(world: World, seed: int | None):
    from lot_grpc.services.recall.targets import RecallOptions, pattern_request

    asked = RecallOptions(f"{LIBRARY} 1", 5, ranking=Ranking.EXPLORE, seed=seed, explain=True)
    return await world.services.recall.patterns.find(NS, pattern_request(asked, PatternFilter()))


async def test_a_pattern_keeps_a_bounded_number_of_context_stats_and_loses_no_outcome(world):
    one, two = await two_near_ties(world)
    for n in range(MAX_CONTEXT_STATS + 20):
        await outcome(world, one, query=f"query number {n}")
    await outcome(world, two, query="query number 1")
    everything = await rows(world.store, CONTEXT_STATS)
    merged = [record for record in everything if "merged_into" in record.payload]
    found = await world.store.scroll(CONTEXT_STATS, NS, [], limit=999, vectors=True)
    assert {record.id for record in found if not record.vectors} == {one.id for one in merged}
    all_stats = [record.payload for record in everything if record not in merged]
    mine = [stats for stats in all_stats if stats["resource_id"] == one]
    assert len(mine) <= MAX_CONTEXT_STATS
    assert sum(stats["count"] for stats in mine) == MAX_CONTEXT_STATS + 20
    assert len(all_stats) - len(mine) == 1
    await check_invariants(world.store, NS)


async def test_a_query_that_comes_again_after_it_was_merged_is_counted(world, monkeypatch):
    monkeypatch.setattr(context_stats, "MAX_CONTEXT_STATS", 2)
    await save(world, pattern_id="p")
    near, again, far = "open the door", "open the door now", "count the sheep"
    for query in (near, again, far, again, near, again):
        await outcome(world, "p", query=query)
    assert sum(stats["count"] for stats in await payloads(world, CONTEXT_STATS)) == 6


async def test_only_stats_of_one_pattern_are_merged(world, monkeypatch):
    monkeypatch.setattr(context_stats, "MAX_CONTEXT_STATS", 2)
    for pattern_id, queries in (("p", (LIBRARY, f"{LIBRARY} now")), ("q", (TICKETS, "dance"))):
        await save(world, f"task {pattern_id}", pattern_id=pattern_id)
        for query in queries:
            await outcome(world, pattern_id, query=query)
    stored = [stats["resource_id"] for stats in await payloads(world, CONTEXT_STATS)]
    assert stored.count("p") == 2


async def test_stats_go_with_their_pattern(world):
    one, two = await two_near_ties(world)
    await outcome(world, one, two, query="how")
    await world.services.patterns.patterns.delete(NS, one, "")
    (stats,) = await payloads(world, CONTEXT_STATS)
    assert stats["resource_id"] == two


async def test_a_pattern_that_takes_the_id_of_an_expired_one_inherits_nothing(world):
    hour = 3600 * 1_000_000
    await save(world, LIBRARY, pattern_id="p", ttl=hour)
    await outcome(world, "p", query=LIBRARY)
    world.clock.advance(DAY)
    await save(world, TICKETS, pattern_id="p")
    assert await payloads(world, CONTEXT_STATS) == []
    assert await payloads(world, OUTCOMES) == []


@pytest.mark.parametrize("repeated", [False, True])
async def test_parallel_outcomes_from_two_processes_all_count_once(repeated):
    clock = FixedClock()
    store = Interleaving(SharedStore(clock))
    world = await open_world(store, clock)
    other = world.another_process()
    ids = [(await save(world, f"{LIBRARY} {n}")).pattern.pattern_id for n in range(3)]

    async def client(process: World, which: int) -> None:
        for n in range(6):
            kind = Outcome.SUCCESS if (n + which) % 3 else Outcome.FAILURE
            request_id = f"r{which}.{n}" if repeated else ""
            for _ in range(2 if repeated else 1):
                await outcome(
                    process, *ids[: 1 + n % 3], outcome=kind, query=f"q{n % 2}",
                    request_id=request_id,
                )  # fmt: skip

    await asyncio.gather(*(client((world, other)[n % 2], n) for n in range(4)))
    await check_invariants(store, NS)
    told = await world.services.patterns.patterns.get(NS, ids[0])
    assert told.outcomes.usage_count == 24


async def test_a_lost_recall_row_is_embedded_anew_when_rolling_forward(world):
    one, _ = await two_near_ties(world)
    answer = await recall(world, "how to log in")
    await world.services.runtime.retrievals.flush()
    assert len(await payloads(world, RETRIEVALS)) == 1
    world.clock.advance(8 * DAY)
    await outcome(world, one, retrieval_id=answer.retrieval_id, query="how to log in")
    (stats,) = await payloads(world, CONTEXT_STATS)
    assert stats["query"] == "how to log in"
