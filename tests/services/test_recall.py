from __future__ import annotations

import pytest

from lot_grpc.domain.episode import EpisodeStatus
from lot_grpc.domain.memory import MemoryKind
from lot_grpc.domain.outcomes import Outcome
from lot_grpc.domain.query import EpisodeFilter, MemoryFilter, PatternFilter, Ranking
from lot_grpc.services.recall.targets import RecallOptions, episode_request, memory_request
from tests.contract.clock import FixedClock
from tests.services.world import (
    NS,
    SharedStore,
    end,
    memory,
    of_pattern,
    open_world,
    outcome,
    recall,
    save,
    start,
    whole,
)

QUERY = "log in to the site"


def tasks(answer) -> list[str]:
    return [hit.thing.content.task for hit in answer.hits]


async def test_the_nearest_comes_first(world):
    await save(world, "water the plants in the garden")
    await save(world, "log in to the web site")
    await save(world, QUERY)
    answer = await recall(world, QUERY)
    assert tasks(answer)[:2] == [QUERY, "log in to the web site"]
    assert answer.hits[0].similarity == pytest.approx(1.0)
    assert all(0.0 <= hit.similarity <= 1.0 for hit in answer.hits)


async def test_a_limit_is_kept(world):
    for n in range(8):
        await save(world, f"log in to site {n}")
    assert len((await recall(world, QUERY, limit=3)).hits) == 3


async def test_nothing_stored_nothing_found(world):
    answer = await recall(world, QUERY)
    assert answer.hits == []
    assert answer.retrieval_id


async def test_many_nearer_ones_that_do_not_match_hide_none_that_does(world):
    """A filter that ran after the cut would find nothing here."""
    for n in range(300):
        await save(world, f"{QUERY} {n}", language="go")
    await save(world, "something about a site", language="python")
    answer = await recall(world, QUERY, limit=5, narrowed=PatternFilter(languages=("python",)))
    assert tasks(answer) == ["something about a site"]


async def test_every_part_of_a_filter_holds_before_the_cut(world):
    for n in range(120):
        await save(world, f"{QUERY} {n}", tags=("noise",))
    good = await save(world, "enter the site", tags=("a", "b"), labels={"team": "x"})
    await outcome(world, good.pattern.pattern_id)
    for narrowed in (
        PatternFilter(tags_all=("a", "b")),
        PatternFilter(labels={"team": "x"}),
        PatternFilter(min_usage_count=1),
        PatternFilter(min_reliability=0.1),
        PatternFilter(tags_any=("b",), min_success_rate=0.9),
    ):
        assert tasks(await recall(world, QUERY, narrowed=narrowed)) == ["enter the site"]


async def test_what_is_too_far_is_left_out_by_similarity_not_by_score(world):
    near = (await save(world, QUERY)).pattern
    await save(world, "water the plants in the garden")
    for _ in range(20):
        await outcome(world, near.pattern_id, outcome=Outcome.FAILURE, query=QUERY)
    answer = await recall(world, QUERY, min_similarity=0.95)
    assert tasks(answer) == [QUERY]
    assert answer.hits[0].score < 0.95 <= answer.hits[0].similarity


async def test_another_namespace_is_never_found(world):
    await save(world, QUERY)
    from lot_grpc.services.recall.targets import pattern_request

    question = pattern_request(RecallOptions(QUERY, 5), PatternFilter())
    assert (await world.services.recall.patterns.find("other", question)).hits == []


async def test_outcomes_move_the_order_of_near_ties(world):
    words = "log in to the web site of the city library with the password of the reader"
    one, two = [(await save(world, f"{words} {n}")).pattern for n in (1, 2)]
    before = await recall(world, f"{words} 1")
    assert tasks(before) == [one.content.task, two.content.task]
    assert before.hits[0].similarity - before.hits[1].similarity < 0.08
    for _ in range(4):
        await outcome(world, one.pattern_id, outcome=Outcome.FAILURE, query=f"{words} 1")
        await outcome(world, two.pattern_id, query=f"{words} 1")
    after = await recall(world, f"{words} 1")
    assert tasks(after) == [two.content.task, one.content.task]
    plain = await recall(world, f"{words} 1", ranking=Ranking.RELEVANCE)
    assert tasks(plain) == [one.content.task, two.content.task]


async def test_scores_are_the_sums_of_their_parts(world):
    one = (await save(world, QUERY)).pattern
    await save(world, "water the plants in the garden")
    await outcome(world, one.pattern_id, outcome=Outcome.PARTIAL)
    for hit in (await recall(world, QUERY)).hits:
        assert hit.score == sum(part.value * part.weight for part in hit.parts)
        assert hit.parts[0].name == "similarity"


async def test_an_explanation_says_how_the_answer_came_about(world):
    for n in range(60):
        await save(world, f"log in to site {n}", language="go")
    await save(world, QUERY, language="python")
    answer = await recall(
        world, QUERY, limit=5, narrowed=PatternFilter(languages=("go",)), explain=True
    )
    told = answer.explanation
    assert told is not None
    assert (told.ranking, told.matching, told.in_namespace) == (Ranking.BALANCED, 60, 61)
    assert 50 <= told.pool <= 60  # fifty of each leg, of which some are in both
    assert (await recall(world, QUERY)).explanation is None


async def test_a_query_longer_than_the_model_reads_is_told(world):
    assert (await recall(world, "word " * 9000)).truncated
    assert not (await recall(world, QUERY)).truncated


# --- what was asked ---------------------------------------------------------------------------


async def test_an_outcome_may_name_the_recall_at_once(world):
    one = (await save(world, QUERY)).pattern
    answer = await recall(world, QUERY)
    await outcome(world, one.pattern_id, retrieval_id=answer.retrieval_id)
    found = await world.services.runtime.retrievals.find(NS, answer.retrieval_id)
    assert found is not None
    assert (found.query, found.shown) == (QUERY, (of_pattern(one.pattern_id),))


async def test_a_recall_that_was_written_survives_the_process_and_one_that_was_not_is_lost(world):
    written = (await recall(world, QUERY)).retrieval_id
    await world.services.runtime.retrievals.flush()
    lost = (await recall(world, QUERY)).retrieval_id
    restarted = world.another_process()
    found = await restarted.services.runtime.retrievals.find(NS, written)
    assert found is not None
    assert found.query == QUERY
    assert await restarted.services.runtime.retrievals.find(NS, lost) is None


async def test_recalls_are_forgotten_after_a_week(world):
    answer = await recall(world, QUERY)
    await world.services.runtime.retrievals.flush()
    world.clock.advance(7 * 24 * 3600)
    assert await world.services.runtime.retrievals.find(NS, answer.retrieval_id) is None
    assert await world.services.housekeeping.drop_expired() == 1


async def test_recalls_that_were_written_stay_known_and_a_clear_forgets_them(world):
    answer = await recall(world, QUERY)
    retrievals = world.services.runtime.retrievals
    before = await retrievals.find(NS, answer.retrieval_id)
    await retrievals.flush()
    after = await retrievals.find(NS, answer.retrieval_id)
    restarted = await world.another_process().services.runtime.retrievals.find(
        NS, answer.retrieval_id
    )
    assert before is not None
    assert after is not None
    assert restarted is not None
    assert list(after.vector) == list(restarted.vector) == pytest.approx(list(before.vector))
    assert (after.query, after.shown) == (restarted.query, restarted.shown)
    await world.services.clearing.clearer.clear(NS)
    assert await retrievals.find(NS, answer.retrieval_id) is None


async def test_a_recall_of_a_namespace_that_another_process_cleared_is_gone():
    world = await open_world(SharedStore(clock := FixedClock()), clock)
    answer = await recall(world, QUERY)
    await world.services.runtime.retrievals.flush()
    await world.another_process().services.clearing.clearer.clear(NS)
    assert await world.services.runtime.retrievals.find(NS, answer.retrieval_id) is None


async def test_a_recall_belongs_to_its_namespace(world):
    answer = await recall(world, QUERY)
    assert await world.services.runtime.retrievals.find("other", answer.retrieval_id) is None
    await world.services.runtime.retrievals.flush()
    assert await world.services.runtime.retrievals.find("other", answer.retrieval_id) is None


async def test_many_recalls_are_all_written_behind(world):
    ids = [(await recall(world, f"query {n}")).retrieval_id for n in range(600)]
    await world.services.runtime.retrievals.flush()
    restarted = world.another_process()
    assert all([await restarted.services.runtime.retrievals.find(NS, one) for one in ids])


# --- the other kinds --------------------------------------------------------------------------


async def test_episodes_are_found_by_meaning_and_may_be_narrowed_to_successes(world):
    creator = world.services.episodes.creator
    await creator.start(NS, start("deploy the web site", "running"))
    await creator.record(NS, whole(2, "good"))
    await creator.record(NS, whole(2, "bad", end=end(EpisodeStatus.FAILED)))
    asked = RecallOptions("deploy the site", 5)

    async def found(narrowed: EpisodeFilter, *, success_only: bool = False) -> list[str]:
        question = episode_request(asked, narrowed, success_only=success_only)
        answer = await world.services.recall.episodes.find(NS, question)
        return [hit.thing.episode_id for hit in answer.hits]

    assert set(await found(EpisodeFilter())) == {"running", "good", "bad"}
    assert await found(EpisodeFilter(), success_only=True) == ["good"]
    failed = EpisodeFilter(statuses=(EpisodeStatus.FAILED,))
    assert await found(failed) == ["bad"]
    assert await found(failed, success_only=True) == []


async def test_episodes_found_say_how_many_events_they_have(world):
    await world.services.episodes.creator.start(NS, start("deploy the site", "e"))
    for _ in range(3):
        from tests.services.world import event

        await world.services.episodes.recorder.record_event(NS, "e", event(), "")
    question = episode_request(RecallOptions("deploy", 5), EpisodeFilter(), success_only=False)
    answer = await world.services.recall.episodes.find(NS, question)
    assert answer.hits[0].thing.event_count == 3
    assert [part.name for part in answer.hits[0].parts] == ["similarity", "bm25", "learned"]


async def test_memories_are_found_by_meaning_within_their_filter():
    world = await open_world()
    for n in range(100):
        await world.services.memories.memories.create(NS, memory(f"the port is 80{n}"))
    kept = await world.services.memories.memories.create(
        NS, memory("ports are open", kind=MemoryKind.FACT, importance=0.9)
    )
    for narrowed in (MemoryFilter(kinds=(MemoryKind.FACT,)), MemoryFilter(min_importance=0.8)):
        question = memory_request(RecallOptions("the port is 8080", 3), narrowed)
        answer = await world.services.recall.memories.find(NS, question)
        assert [hit.thing.memory_id for hit in answer.hits] == [kept.memory.memory_id]
