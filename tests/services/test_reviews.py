"""What a policy holds back, who sees it, and what a review makes of it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.error_solution import ErrorSolutionContent, ErrorSolutionFilter
from lot_grpc.domain.errors import EtagMismatchError
from lot_grpc.domain.memory import MemoryContent
from lot_grpc.domain.origin import (
    AGENT,
    Editor,
    Origin,
    OriginKind,
    Review,
    ReviewState,
)
from lot_grpc.domain.pattern import PatternContent, PatternKind
from lot_grpc.domain.query import MemoryFilter, PatternFilter
from lot_grpc.services.context.request import ContextRequest
from lot_grpc.services.errors.drafts import ErrorSolutionEdit
from lot_grpc.services.errors.error_finder import ErrorQuery
from lot_grpc.services.memories.drafts import MemoryEdit
from lot_grpc.services.patterns.patterns import PatternEdit
from lot_grpc.services.recall.targets import RecallOptions, memory_request
from lot_grpc.services.records.collections import ERROR_SOLUTIONS, MEMORIES, PATTERNS
from lot_grpc.services.reviews import ReviewDraft, Reviewed, ReviewItem
from lot_grpc.testing.in_memory import InMemoryStore
from tests.contract.clock import FixedClock
from tests.services.invariants import check_invariants
from tests.services.steps.reviews import (
    IDS,
    MODEL,
    approved,
    held_back,
    reviews_models,
    writes,
)
from tests.services.world import (
    NS,
    Interrupted,
    World,
    error_solution,
    memory,
    open_world,
    outcome,
    recall,
    save,
)

KINDS = list(IDS)
PERSON = Origin(OriginKind.PERSON, "alice")
TASK = "how it is done"


async def review(
    world: World, kind: ResourceKind, state: ReviewState, etag: str = "", note: str = ""
) -> Reviewed:
    given = ReviewDraft(kind, (ReviewItem(IDS[kind], etag),), state, note)
    [result] = await world.services.reviewer.review(NS, given)
    return result


async def stored(world: World, kind: ResourceKind) -> Any:
    return await world.services.resources.of(kind).get(NS, IDS[kind])


async def found(world: World, kind: ResourceKind) -> bool:
    """Whether a recall of the kind finds the one that the model wrote."""
    if kind is ResourceKind.PATTERN:
        hits = (await recall(world, TASK, limit=20)).hits
        return "new" in {hit.thing.pattern_id for hit in hits}
    if kind is ResourceKind.MEMORY:
        request = memory_request(RecallOptions("port", 20), MemoryFilter())
        return bool((await world.services.recall.memories.find(NS, request)).hits)
    answer = await world.services.errors.finder.find(NS, ErrorQuery(error_message="KeyError: 'a'"))
    return bool(answer.hits or answer.unsolved)


async def edit_text(world: World, kind: ResourceKind, editor: Editor) -> None:
    services, names = world.services, frozenset({"title"})
    if kind is ResourceKind.PATTERN:
        pattern_edit = PatternEdit(PatternContent("", title="N"), names, editor=editor)
        await services.patterns.patterns.update(NS, "new", pattern_edit, "")
    elif kind is ResourceKind.MEMORY:
        memory_edit = MemoryEdit(MemoryContent("", title="N"), names, editor=editor)
        await services.memories.memories.update(NS, "m", memory_edit, "")
    else:
        content = ErrorSolutionContent("", resolution="N")
        solution_edit = ErrorSolutionEdit(content, frozenset({"resolution"}), editor=editor)
        await services.errors.solutions.update(NS, "s", solution_edit, "")


each = pytest.mark.parametrize("kind", KINDS)


@each
async def test_what_the_policy_holds_back_is_recalled_once_it_is_approved(world, kind):
    await held_back(world, NS)
    before = await stored(world, kind)
    assert before.review == Review(ReviewState.PENDING)
    assert not await found(world, kind)
    result = await review(world, kind, ReviewState.APPROVED, note="read it")
    now = world.clock.now()
    assert result == Reviewed(IDS[kind], Review(ReviewState.APPROVED, "read it", now), changed=True)
    after = await stored(world, kind)
    assert after.review == result.review
    assert (after.etag, after.update_time) == (before.etag, before.update_time)
    assert await found(world, kind)
    await review(world, kind, ReviewState.REJECTED)
    assert (await stored(world, kind)).review == Review(ReviewState.REJECTED, "", now)
    assert not await found(world, kind)
    await check_invariants(world.store, NS)


@each
async def test_a_review_that_is_sent_again_changes_nothing(world, kind):
    await held_back(world, NS)
    first = await review(world, kind, ReviewState.APPROVED, note="n")
    world.clock.advance(60)
    rows = await world.services.resources.of(kind).find_record(NS, IDS[kind])
    again = await review(world, kind, ReviewState.APPROVED, note="n")
    assert (again.review, again.changed) == (first.review, False)
    assert await world.services.resources.of(kind).find_record(NS, IDS[kind]) == rows
    other = await review(world, kind, ReviewState.APPROVED, note="another")
    assert other.changed
    assert other.review == Review(ReviewState.APPROVED, "another", world.clock.now())


@each
async def test_each_item_is_reviewed_by_itself(world, kind):
    await held_back(world, NS)
    items = (ReviewItem("nobody"), ReviewItem(IDS[kind], "old etag"), ReviewItem(IDS[kind]))
    draft = ReviewDraft(kind, items, ReviewState.APPROVED)
    missing, mismatch, done = await world.services.reviewer.review(NS, draft)
    assert missing.error is not None
    assert missing.error.reason.endswith("NOT_FOUND")
    assert isinstance(mismatch.error, EtagMismatchError)
    assert (done.error, done.changed) == (None, True)


@each
async def test_what_needs_no_review_can_be_rejected(world, kind):
    await save(world, "how it was done", pattern_id="old")
    await writes(world, NS, kind, AGENT)
    assert (await stored(world, kind)).review is None
    assert await found(world, kind)
    await review(world, kind, ReviewState.REJECTED)
    assert not await found(world, kind)


# --- edits and reviews at once ----------------------------------------------------------------


@pytest.fixture
async def interrupted() -> World:
    clock = FixedClock()
    return await open_world(Interrupted(InMemoryStore(clock)), clock)


COLLECTION = {
    ResourceKind.PATTERN: PATTERNS,
    ResourceKind.MEMORY: MEMORIES,
    ResourceKind.ERROR_SOLUTION: ERROR_SOLUTIONS,
}


@each
async def test_a_text_that_comes_during_a_review_is_not_approved_unseen(interrupted, kind):
    world = interrupted
    await held_back(world, NS)
    etag = (await stored(world, kind)).etag
    world.store.before(
        "update", COLLECTION[kind], lambda: edit_text(world, kind, Editor(MODEL, named=True))
    )
    result = await review(world, kind, ReviewState.APPROVED, etag)
    assert isinstance(result.error, EtagMismatchError)
    assert (await stored(world, kind)).review.state is ReviewState.PENDING
    assert not await found(world, kind)


@each
async def test_a_text_that_is_rewritten_during_a_recall_is_not_shown_unseen(interrupted, kind):
    world = interrupted
    await approved(world, NS)
    assert await found(world, kind)
    world.store.before("get", COLLECTION[kind], lambda: edit_text(world, kind, Editor()))
    assert not await found(world, kind)


@each
async def test_a_review_during_an_edit_is_not_lost(interrupted, kind):
    world = interrupted
    await held_back(world, NS)
    world.store.before(
        "replace", COLLECTION[kind], lambda: review(world, kind, ReviewState.REJECTED, note="bad")
    )
    await edit_text(world, kind, Editor(PERSON, named=True))
    after = await stored(world, kind)
    assert (after.review.state, after.review.note) == (ReviewState.REJECTED, "bad")
    assert after.content.origin == MODEL


async def test_a_review_while_a_long_memory_is_indexed_is_not_lost(interrupted):
    world = interrupted
    await reviews_models(world, NS)
    long = memory("A sentence of some words. " * 1000, memory_id="m", origin=MODEL)
    await world.services.memories.memories.create(NS, long)
    rejected = lambda: review(world, ResourceKind.MEMORY, ReviewState.REJECTED)  # noqa: E731
    world.store.before("replace", MEMORIES, rejected)
    for _ in range(2):
        await asyncio.create_task(world.services.memories.indexing.step())
    after = await stored(world, ResourceKind.MEMORY)
    assert after.review.state is ReviewState.REJECTED


# --- edits ------------------------------------------------------------------------------------


@each
async def test_an_approved_text_that_a_model_rewrites_is_held_back_again(world, kind):
    await approved(world, NS)
    await edit_text(world, kind, Editor())
    after = await stored(world, kind)
    assert after.review == Review(ReviewState.PENDING)
    assert not await found(world, kind)


@each
async def test_a_person_may_correct_an_approved_text_but_does_not_approve_one(world, kind):
    await approved(world, NS)
    await edit_text(world, kind, Editor(PERSON))
    after = await stored(world, kind)
    assert after.review.state is ReviewState.APPROVED
    assert after.content.origin == MODEL
    await review(world, kind, ReviewState.PENDING)
    await edit_text(world, kind, Editor(PERSON, named=True))
    assert (await stored(world, kind)).review.state is ReviewState.PENDING


@each
async def test_what_was_deleted_and_is_stored_again_is_a_new_write(world, kind):
    await approved(world, NS)
    await world.services.resources.of(kind).delete(NS, IDS[kind])
    await writes(world, NS, kind)
    assert (await stored(world, kind)).review == Review(ReviewState.PENDING)


# --- repeats and merges -----------------------------------------------------------------------


async def test_a_repeat_neither_raises_nor_approves_nor_lowers_what_is_stored(world):
    await reviews_models(world, NS)
    first = await save(world, "one", origin=MODEL)
    again = await save(world, "one", origin=PERSON)
    assert again.pattern.pattern_id == first.pattern.pattern_id
    assert again.pattern.content.origin == MODEL
    assert again.pattern.review == Review(ReviewState.PENDING)
    assert "origin" in again.unchanged_fields
    trusted = await save(world, "two", origin=PERSON)
    by_model = await save(world, "two", origin=MODEL)
    assert (by_model.pattern.content.origin, by_model.pattern.review) == (PERSON, None)
    memories = world.services.memories.memories
    await memories.create(NS, memory("a fact", unique=True, origin=PERSON))
    fact = (await memories.create(NS, memory("a fact", unique=True, origin=MODEL))).memory
    assert (fact.content.origin, fact.review) == (PERSON, None)
    solutions = world.services.errors.solutions
    await solutions.save(NS, error_solution(origin=MODEL))
    solution = (await solutions.save(NS, error_solution(origin=PERSON))).error_solution
    assert (solution.content.origin, solution.review) == (MODEL, Review(ReviewState.PENDING))
    assert trusted.pattern.pattern_id == by_model.pattern.pattern_id


# --- what a successor hides -------------------------------------------------------------------


async def superseded(world: World) -> str:
    found = await world.services.patterns.patterns.get(NS, "old")
    return found.superseded_by


async def test_what_is_held_back_does_not_hide_what_it_supersedes(world):
    await held_back(world, NS)
    assert await superseded(world) == ""
    await review(world, ResourceKind.PATTERN, ReviewState.APPROVED)
    assert await superseded(world) == "new"
    await edit_text(world, ResourceKind.PATTERN, Editor())  # by the model: to be reviewed again
    assert await superseded(world) == ""
    await review(world, ResourceKind.PATTERN, ReviewState.APPROVED)
    await review(world, ResourceKind.PATTERN, ReviewState.REJECTED)
    assert await superseded(world) == ""
    await check_invariants(world.store, NS)


async def test_an_approved_pattern_cannot_hide_another_without_a_review(world):
    await approved(world, NS)
    await save(world, "trusted", pattern_id="t")
    edit = PatternEdit(PatternContent("", supersedes="t"), frozenset({"supersedes"}))
    await world.services.patterns.patterns.update(NS, "new", edit, "")
    assert (await stored(world, ResourceKind.PATTERN)).review == Review(ReviewState.PENDING)
    for pattern_id in ("t", "old"):
        assert not (await world.services.patterns.patterns.get(NS, pattern_id)).superseded_by


async def test_a_review_that_is_sent_again_settles_what_a_dead_one_left(world):
    await held_back(world, NS)
    point = world.services.patterns.patterns.spec.point_of(NS, "new")
    await world.store.update(PATTERNS, NS, point, set={"review": "approved"})
    result = await review(world, ResourceKind.PATTERN, ReviewState.APPROVED)
    assert not result.changed
    assert await superseded(world) == "new"


# --- contexts, filters, the feed --------------------------------------------------------------


async def test_a_context_leaves_out_what_is_held_back_and_names_who_wrote_the_rest(world):
    await held_back(world, NS)
    builder = world.services.task_contexts
    request = ContextRequest("How it is done on the port. KeyError: 'a'", min_similarity=0.0)
    before = await builder.gather(NS, request)
    shown = {hit.thing.pattern_id for hit in before.patterns.hits}
    assert (shown, before.memories, before.errors) == ({"old"}, [], [])
    for kind in KINDS:
        await review(world, kind, ReviewState.APPROVED)
    text = (await builder.gather(NS, request)).prompt.text
    assert text.count("by a model, without evidence `m1`") == 3


async def test_the_expression_of_a_held_back_pattern_reserves_no_place(world):
    await reviews_models(world, NS)
    await save(
        world, "something else", pattern_id="x", kind=PatternKind.LEARNED, task_type_pattern=".*",
        origin=MODEL,
    )  # fmt: skip
    request = ContextRequest("water the plants", min_similarity=0.0)
    given = await world.services.task_contexts.gather(NS, request)
    assert (given.patterns.hits, given.patterns.matched) == ([], ())


async def test_lists_show_everything_and_filters_choose(world):
    await held_back(world, NS)
    await save(world, "by nobody in particular", pattern_id="plain", origin=Origin(name="planner"))
    patterns = world.services.patterns.patterns

    async def ids(**named: Any) -> set[str]:
        page = await patterns.list_page(NS, PatternFilter(**named), 100, None)
        return {one.pattern_id for one in page.items}

    assert await ids() == {"old", "new", "plain"}
    assert await ids(origins=(OriginKind.AGENT,)) == {"old", "plain"}
    assert await ids(origins=(OriginKind.MODEL,)) == {"new"}
    assert await ids(origins=(OriginKind.AGENT, OriginKind.MODEL)) == {"old", "new", "plain"}
    assert await ids(reviews=(ReviewState.PENDING,)) == {"new"}
    assert await ids(reviews=(ReviewState.APPROVED,)) == set()
    solutions = await world.services.errors.solutions.list_page(
        NS, ErrorSolutionFilter(reviews=(ReviewState.PENDING,)), 9, None
    )
    assert [one.error_solution_id for one in solutions.items] == ["s"]
    named = PatternFilter(reviews=(ReviewState.PENDING,))
    hits = (await recall(world, TASK, narrowed=named)).hits
    assert [hit.thing.pattern_id for hit in hits] == ["new"]


async def test_what_only_a_reviewer_finds_is_not_told_to_watchers(world):
    await held_back(world, NS)
    seen: list[Any] = []
    patterns = world.services.recall.patterns
    patterns._target = replace(patterns._target, on_recall=lambda *given: seen.append(given[2]))
    named = PatternFilter(reviews=(ReviewState.PENDING,))
    assert (await recall(world, TASK, narrowed=named)).hits
    assert seen == [[]]


async def test_feedback_is_not_asked_for_what_is_held_back(world):
    await held_back(world, NS)
    await outcome(world, "new")
    await outcome(world, "old")
    find = world.services.patterns.feedback_candidates.find
    found = await find(NS, PatternFilter(), 10)
    assert [one.pattern_id for one, _ in found.patterns] == ["old"]
