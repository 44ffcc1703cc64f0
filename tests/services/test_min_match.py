"""``min_match``: what is unlikely to fit is left out, before the page is cut."""

from __future__ import annotations

from typing import Any

import pytest

from lot_grpc.domain.errors import MatchUnavailableError
from lot_grpc.domain.match_probability import JUDGED
from lot_grpc.domain.memory import MemoryKind
from lot_grpc.domain.pattern import PatternKind
from lot_grpc.domain.query import EpisodeFilter, MemoryFilter, PatternFilter, Ranking
from lot_grpc.ports import VectorStore
from lot_grpc.services.errors.error_finder import ErrorAnswer, ErrorQuery
from lot_grpc.services.recall.recall import Answer
from lot_grpc.services.recall.targets import (
    RecallOptions,
    episode_request,
    memory_request,
    pattern_request,
)
from tests.services.test_task_context import ask, episode_ids, pattern_ids, ran
from tests.services.world import (
    NS,
    CalibratedDouble,
    World,
    error_solution,
    memory,
    open_world,
    outcome,
    save,
)

TASK = "Enable backups of the orders database"
OPPOSITE = "Disable backups of the orders database"
SHORTER = "Enable database backups"
"""For the same task, but less similar than ``OPPOSITE``."""
FAR = "Translate our holiday brochure into French"
ERROR = "the disk of the build machine is full"
OTHER = "the disk of a laptop is slow"


@pytest.fixture
async def world() -> World:
    return await open_world(embedder=CalibratedDouble())


async def patterns(world: World, query: str = TASK, limit: int = 5, **named: Any) -> Answer[Any]:
    request = pattern_request(RecallOptions(query, limit, **named), PatternFilter())
    return await world.services.recall.patterns.find(NS, request)


async def memories(world: World, query: str = TASK, limit: int = 5, **named: Any) -> Answer[Any]:
    request = memory_request(RecallOptions(query, limit, **named), MemoryFilter())
    return await world.services.recall.memories.find(NS, request)


async def episodes(world: World, query: str = TASK, limit: int = 5, **named: Any) -> Answer[Any]:
    options = RecallOptions(query, limit, ranking=Ranking.RELEVANCE, **named)
    request = episode_request(options, EpisodeFilter(), success_only=False)
    return await world.services.recall.episodes.find(NS, request)


async def solutions(world: World, error: str = ERROR, **named: Any) -> ErrorAnswer:
    return await world.services.errors.finder.find(NS, ErrorQuery("", error, **named))


def tasks(answer: Answer[Any]) -> list[str]:
    return [hit.thing.content.task for hit in answer.hits]


async def opposites(world: World, count: int) -> None:
    """Patterns that are nearer to ``TASK`` than a mention of it, and for the opposite."""
    for number in range(count):
        await save(world, OPPOSITE, pattern_id=f"opposite-{number}")


async def test_what_is_unlikely_is_left_out_and_counted(world):
    await save(world, TASK)
    await opposites(world, 3)
    assert len((await patterns(world)).hits) == 4
    answer = await patterns(world, min_match=0.5)
    assert tasks(answer) == [TASK]
    assert answer.left_out.count == 3
    assert 0 < answer.left_out.best < 0.5


async def test_the_page_is_filled_from_what_is_below_it(world):
    await opposites(world, JUDGED - 1)
    await save(world, SHORTER, pattern_id="fits")
    plain = await patterns(world, limit=JUDGED, ranking=Ranking.SIMILARITY)
    assert plain.hits[-1].thing.pattern_id == "fits"
    strict = await patterns(world, limit=1, min_match=0.5, ranking=Ranking.SIMILARITY)
    [hit] = strict.hits
    assert hit.thing.pattern_id == "fits"


async def test_no_more_is_judged_than_is_said(world):
    await opposites(world, JUDGED)
    await save(world, SHORTER, pattern_id="fits")
    by: dict[str, Any] = {"min_match": 0.5, "ranking": Ranking.SIMILARITY}
    answer = await patterns(world, limit=1, **by)
    assert (answer.hits, answer.left_out.count) == ([], JUDGED)
    deeper = await patterns(world, limit=JUDGED + 1, **by)
    assert [hit.thing.pattern_id for hit in deeper.hits] == ["fits"]


async def test_what_fits_keeps_its_order_and_what_it_learned(world):
    await opposites(world, 2)
    for name in ("first", "second"):
        await save(world, f"{TASK} {name}", pattern_id=name)
    plain = [hit.thing.pattern_id for hit in (await patterns(world)).hits]
    worse = [name for name in plain if not name.startswith("opposite")][1]
    for _ in range(5):
        await outcome(world, worse, query=TASK)
    learned = await patterns(world, min_match=0.5)
    assert learned.hits[0].thing.pattern_id == worse
    assert [(hit.thing.pattern_id, hit.score) for hit in learned.hits] == [
        (hit.thing.pattern_id, hit.score)
        for hit in (await patterns(world)).hits
        if not hit.thing.pattern_id.startswith("opposite")
    ]


async def test_only_what_was_shown_can_get_an_outcome(world):
    await save(world, TASK, pattern_id="fits")
    await opposites(world, 2)
    answer = await patterns(world, min_match=0.5)
    retrieval = await world.services.runtime.retrievals.find(NS, answer.retrieval_id)
    assert retrieval is not None
    assert [item.resource.id for item in retrieval.items] == ["fits"]


@pytest.mark.parametrize("least", [None, 0.0])
async def test_without_a_minimum_nothing_changes(world, least):
    await opposites(world, 3)
    plain, answer = await patterns(world), await patterns(world, min_match=least)
    assert [hit.record.id for hit in answer.hits] == [hit.record.id for hit in plain.hits]
    assert answer.left_out.count == 0


async def test_the_more_important_memory_that_fits_comes_first(world):
    create = world.services.memories.memories.create
    for name, text, importance in (
        ("minor", TASK, 0.1),
        ("major", TASK, 0.9),
        ("opposite", OPPOSITE, 1.0),
    ):
        draft = memory(text, memory_id=name, importance=importance, kind=MemoryKind.NOTE)
        await create(NS, draft)
    answer = await memories(world, min_match=0.5)
    assert [hit.thing.memory_id for hit in answer.hits] == ["major", "minor"]
    assert all((hit.match or 0.0) > 0.8 for hit in answer.hits)


async def test_episodes_that_do_not_fit_are_left_out(world):
    for name, task in (("same", TASK), ("opposite", OPPOSITE), ("far", FAR)):
        await ran(world, name, task)
    answer = await episodes(world, min_match=0.5)
    assert [hit.thing.episode_id for hit in answer.hits] == ["same"]
    nothing = await episodes(world, "Tune a piano", min_match=0.5)
    assert (nothing.hits, nothing.left_out.count) == ([], 3)


async def saved_error(world: World, message: str, name: str, **named: Any) -> None:
    draft = error_solution(message, error_solution_id=name, **named)
    await world.services.errors.solutions.save(NS, draft)


async def test_the_same_error_stays_whatever_the_minimum(world):
    await saved_error(world, ERROR, "same")
    await saved_error(world, OTHER, "similar")
    answer = await solutions(world)
    assert [hit.exact for hit in answer.hits] == [True, False]
    assert [hit.match for hit in answer.hits] == [None, None]
    rated = await solutions(world, min_match=0.0)
    assert rated.hits[0].match is None
    assert rated.hits[1].match is not None
    strict = await solutions(world, min_match=1.0)
    assert [hit.exact for hit in strict.hits] == [True]
    assert strict.left_out.count == 1


async def test_what_did_not_help_with_an_unlikely_error_is_left_out(world):
    await saved_error(world, OTHER, "vain", worked=False)
    assert (await solutions(world, include_unsolved=True)).unsolved
    strict = await solutions(world, include_unsolved=True, min_match=1.0)
    assert (strict.hits, strict.unsolved, strict.left_out.count) == ([], [], 1)


async def fill(world: World) -> None:
    """One of each kind that is for the opposite of ``TASK``."""
    await save(world, OPPOSITE)
    await ran(world, "ended", OPPOSITE)
    await ran(world, "failed", OPPOSITE, error=("KeyError", "'orders'"))
    await world.services.memories.memories.create(NS, memory(OPPOSITE))


async def test_a_context_holds_only_what_fits(world):
    await fill(world)
    plain = await ask(world, TASK, min_similarity=0.0)
    assert plain.patterns.hits
    assert plain.episodes
    assert plain.memories
    assert plain.warnings
    strict = await ask(world, TASK, min_similarity=0.0, min_match=0.5)
    assert not strict.near.found
    assert strict.warnings == ()
    assert strict.near.below_min_match.count == 4  # a pattern, two episodes, a memory
    await save(world, TASK, pattern_id="fits")
    await ran(world, "fits", TASK)
    fitting = await ask(world, TASK, min_similarity=0.0, min_match=0.5)
    assert (pattern_ids(fitting), episode_ids(fitting)) == (["fits"], ["fits"])


async def test_a_context_also_leaves_out_what_is_unlikely_beside_the_best(world):
    await save(world, TASK, pattern_id="fits")
    await save(world, FAR, pattern_id="far")
    context = await ask(world, TASK, min_match=0.001)
    assert pattern_ids(context) == ["fits"]


async def test_a_pattern_that_matches_by_its_expression_stays_in_a_context(world):
    await save(world, FAR, kind=PatternKind.LEARNED, task_type_pattern="backups", pattern_id="own")
    context = await ask(world, TASK, min_match=0.9)
    assert pattern_ids(context) == ["own"]
    assert (await patterns(world, min_match=0.9)).hits == []


async def test_a_model_that_was_not_calibrated_is_refused_before_anything_is_searched(monkeypatch):
    world = await open_world()
    await fill(world)

    async def unexpected(*given: Any, **named: Any) -> Any:
        raise AssertionError("searched")

    store: VectorStore = world.store
    for least in (0.0, 0.5):
        with monkeypatch.context() as patched:
            patched.setattr(store, "search", unexpected, raising=False)
            for call in (patterns, episodes, memories, solutions):
                with pytest.raises(MatchUnavailableError, match="min_similarity"):
                    await call(world, min_match=least)
        with pytest.raises(MatchUnavailableError):
            await ask(world, TASK, min_match=least)
    assert (await patterns(world)).hits
