"""What another caller writes between a read and the write that rests on it is not overwritten."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lot_grpc.domain.episode import EpisodeStart
from lot_grpc.domain.error_solution import ErrorSolutionContent
from lot_grpc.domain.errors import (
    RequestInvalidError,
)
from lot_grpc.domain.outcomes import Outcome
from lot_grpc.domain.pattern import Pattern, PatternContent
from lot_grpc.domain.transfer import ExportSpec, ImportConflictPolicy, ImportTerms
from lot_grpc.services.distillation.distiller import DistillDefaults, DistillRequest
from lot_grpc.services.episodes.drafts import EpisodeDraft
from lot_grpc.services.errors.drafts import ErrorSolutionEdit
from lot_grpc.services.errors.error_outcomes import ErrorOutcomeDraft
from lot_grpc.services.extraction.pattern_extraction import ExtractionDraft
from lot_grpc.services.learning.decisions import DecisionOutcomeDraft
from lot_grpc.services.outcomes import context_stats
from lot_grpc.services.patterns.lineage import Lineage, Note
from lot_grpc.services.patterns.patterns import PatternEdit
from lot_grpc.services.records.collections import (
    CONTEXT_STATS,
    DECISIONS,
    ERROR_SOLUTIONS,
    META,
    OUTCOMES,
    PATTERNS,
    SESSIONS,
)
from lot_grpc.services.records.patterns import pattern_point
from lot_grpc.services.runtime import PatternLearning
from lot_grpc.services.transfer.importer import ImportRun
from tests.contract.clock import FixedClock
from tests.services.session_steps import SECOND
from tests.services.session_steps import put as put_value
from tests.services.world import (
    MINUTE,
    NS,
    Interrupted,
    SharedStore,
    World,
    decision,
    end,
    error_solution,
    feedback,
    open_world,
    outcome,
    payloads,
    save,
)


@pytest.fixture
async def world() -> World:
    """A process on a shared store in which others may come first."""
    clock = FixedClock()
    learning = PatternLearning(distill=DistillDefaults(0.7), interval=10 * MINUTE)
    return await open_world(Interrupted(SharedStore(clock)), clock, learning)


async def edit(world: World, pattern_id: str = "p", **changes: Any) -> None:
    content = replace(PatternContent("unused"), **changes)
    await world.services.patterns.patterns.update(
        NS, pattern_id, PatternEdit(content, frozenset(changes)), ""
    )


# --- patterns ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("replace", lambda world: edit(world, confidence=0.4)),
        ("update", lambda world: outcome(world, "p", query="how")),
        ("update", lambda world: feedback(world, "p", helpful=False)),
    ],
)
async def test_a_pattern_that_took_the_id_meanwhile_is_not_that_of_the_former(world, name, write):
    await save(world, "former", pattern_id="p", initial_success_rate=0.9, tags=("former",))

    async def reborn() -> None:
        await world.services.patterns.patterns.delete(NS, "p", "")
        world.clock.advance(1)
        await save(world, "another", pattern_id="p", initial_success_rate=0.2)

    world.store.before(name, PATTERNS, reborn)
    await write(world)
    found = await world.services.patterns.patterns.get(NS, "p")
    assert (found.content.task, found.content.tags) == ("another", ())
    assert (found.outcomes.usage_count, found.outcomes.success_rate) == (0, 0.2)
    assert found.feedback.feedback_count == 0


async def test_an_outcome_on_a_query_is_not_that_of_a_pattern_that_took_the_id(world):
    await save(world, "former", pattern_id="p")

    async def reborn() -> None:
        await world.services.patterns.patterns.delete(NS, "p", "")
        world.clock.advance(1)
        await save(world, "another", pattern_id="p")

    world.store.before("update", PATTERNS, reborn)
    await outcome(world, "p", query="how")
    assert await payloads(world, CONTEXT_STATS) == []
    assert await payloads(world, OUTCOMES) == []


async def test_feedback_and_an_edit_of_the_confidence_both_count(world):
    await save(world, pattern_id="p", confidence=0.5)
    world.store.before("update", PATTERNS, lambda: edit(world, confidence=0.1))
    await feedback(world, "p", confidence_adjustment=0.2)
    found = await world.services.patterns.patterns.get(NS, "p")
    assert found.content.confidence < 0.4


async def test_a_mark_of_lineage_rests_on_who_supersedes_now(world):
    await save(world, "task a", pattern_id="a")
    world.store.before(
        "update", PATTERNS, lambda: save(world, "task c", pattern_id="c", supersedes="a")
    )
    await save(world, "task b", pattern_id="b", supersedes="a")
    assert (await world.services.patterns.patterns.get(NS, "a")).superseded_by == "c"


async def test_a_circle_is_broken_in_the_pattern_as_it_is_by_then(world):
    for one, other in ("ab", "ba"):
        await save(world, f"task {one}", pattern_id=one)
        point = pattern_point(NS, one)
        await world.store.update(PATTERNS, NS, point, set={"supersedes": other})
    world.store.before("update", PATTERNS, lambda: edit(world, "a", title="edited"))
    lineage = Lineage(world.store, world.services.runtime.time)
    with pytest.raises(RequestInvalidError):
        await lineage.follow(Note(NS, "note", "a", ("b",)))
    found = await world.services.patterns.patterns.get(NS, "a")
    assert (found.content.title, found.content.supersedes, found.revision) == ("edited", "", 3)


# --- distilled patterns -----------------------------------------------------------------------


async def distil(world: World) -> str:
    request = DistillRequest(similarity=0.7)
    (group,) = (await world.services.distillation.distiller.distil(NS, request)).groups
    return group.pattern.pattern_id


async def logins(world: World, *users: str) -> None:
    for user in users:
        await save(world, f"Log in to the shop site as the user {user} now", pattern_id=user)


async def edits(world: World, head: str) -> None:
    await edit(world, head, title="mine")


@pytest.mark.parametrize("write", [edits, outcome])
async def test_a_head_made_anew_has_what_was_written_to_it_meanwhile(world, write):
    await logins(world, "alice", "bob", "carol")
    head = await distil(world)
    before = await world.services.patterns.patterns.get(NS, head)
    await logins(world, "dave", "erin")
    world.store.before("replace", PATTERNS, lambda: write(world, head))
    assert await distil(world) == head
    after = await world.services.patterns.patterns.get(NS, head)
    used = after.outcomes.usage_count - before.outcomes.usage_count
    assert after.content.title == "mine" or used == 1


async def test_a_member_that_got_an_outcome_meanwhile_is_marked_after_it(world):
    await logins(world, "alice", "bob", "carol")
    world.store.before("update", PATTERNS, lambda: outcome(world, "alice"))
    head = await distil(world)
    stored = {one["pattern_id"]: one for one in await payloads(world, PATTERNS)}
    assert stored["alice"]["parent_pattern_id"] == head
    assert stored["alice"]["stats_revision"] == 2


async def test_of_two_processes_that_find_a_turn_due_one_takes_it(world):
    await logins(world, "alice")
    sweep = world.services.distillation.schedule.sweep
    assert await sweep() == NS
    world.clock.advance(10 * MINUTE)
    turns = []

    async def other() -> None:
        world.clock.advance(1)
        turns.append(await world.another_process().services.distillation.schedule.sweep())

    world.store.before("update", META, other)
    turns.append(await sweep())
    assert turns == [NS, ""]


# --- learned patterns and stats of contexts ---------------------------------------------------


async def ended(world: World, *episode_ids: str) -> None:
    for one in episode_ids:
        start = EpisodeStart(f"Log in as {one}", task_type="login")
        await world.services.episodes.creator.record(NS, EpisodeDraft(start, one, end=end()))


@pytest.mark.parametrize("write", [edits, outcome])
async def test_a_pattern_learned_anew_has_what_was_written_to_it_meanwhile(world, write):
    async def extract() -> Pattern:
        draft = ExtractionDraft(min_samples=2)
        pattern: Pattern
        (pattern,) = (await world.services.extraction.patterns.extract(NS, draft)).patterns
        return pattern

    await ended(world, "a", "b", "c")
    learned = await extract()
    await ended(world, "d", "e", "f")
    world.store.before("replace", PATTERNS, lambda: write(world, learned.pattern_id))
    again = await extract()
    after = await world.services.patterns.patterns.get(NS, learned.pattern_id)
    assert after.content == again.content
    assert after.content.title == "mine" or after.outcomes.usage_count == 1


@pytest.mark.parametrize("name", ["update", "replace"])
async def test_stats_that_count_while_they_are_merged_lose_no_outcome(world, name, monkeypatch):
    monkeypatch.setattr(context_stats, "MAX_CONTEXT_STATS", 2)
    await save(world, pattern_id="p")
    queries = ("open the door", "open the door now", "count the sheep")
    for query in queries[:2]:
        await outcome(world, "p", query=query)

    async def counted() -> None:
        monkeypatch.setattr(context_stats, "MAX_CONTEXT_STATS", 9)
        for query in queries[:2]:
            await outcome(world.another_process(), "p", query=query)

    async def then() -> None:
        world.store.before(name, CONTEXT_STATS, counted)

    world.store.before("scroll", CONTEXT_STATS, then)
    await outcome(world, "p", query=queries[2])
    stats = await payloads(world, CONTEXT_STATS)
    assert sum(stored["count"] for stored in stats) == 5


@pytest.mark.parametrize("earlier", [0, 1])
async def test_a_repeat_that_comes_first_to_the_stats_counts_once(world, earlier):
    await save(world, pattern_id="p")
    for _ in range(earlier):
        await outcome(world, "p", query="how")
    coming = [world.another_process()]

    async def again() -> None:
        if coming:
            await outcome(coming.pop(), "p", query="how", request_id="r")

    async def counted() -> None:
        for name in ("get", "insert", "update"):
            world.store.before(name, CONTEXT_STATS, again)

    world.store.before("update", PATTERNS, counted)
    await outcome(world, "p", query="how", request_id="r")
    assert not coming
    [stats] = await payloads(world, CONTEXT_STATS)
    [pattern] = await payloads(world, PATTERNS)
    assert (stats["count"], pattern["usage_count"]) == (earlier + 1,) * 2


# --- memories, decisions, sessions, imports ---------------------------------------------------


async def test_an_edit_of_a_solution_leaves_an_outcome_and_another_edit(world):
    saved = error_solution(error_solution_id="x", ttl=SECOND * MINUTE)
    await world.services.errors.solutions.save(NS, saved)
    await world.services.outcomes.of_errors.record(NS, ErrorOutcomeDraft("x", Outcome.SUCCESS))

    async def change(**fields: Any) -> None:
        content = replace(ErrorSolutionContent("unused"), **fields)
        edited = ErrorSolutionEdit(content, frozenset(fields))
        await world.services.errors.solutions.update(NS, "x", edited, "")

    world.store.before("replace", ERROR_SOLUTIONS, lambda: change(context="theirs"))
    await change(language="python")
    draft = ErrorOutcomeDraft("x", Outcome.SUCCESS)
    world.store.before(
        "replace",
        ERROR_SOLUTIONS,
        lambda: world.services.outcomes.of_errors.record(NS, draft),
    )
    await change(language="go")
    found = await world.services.errors.solutions.get(NS, "x")
    assert (found.content.context, found.content.language) == ("theirs", "go")
    assert found.outcomes.usage_count == 2


async def test_the_reward_of_feedback_does_not_replace_that_of_an_outcome(world):
    await world.services.learning.decisions.record(NS, decision(decision_id="d"))

    async def own() -> None:
        draft = DecisionOutcomeDraft("d", Outcome.SUCCESS, reward=1.0)
        await world.services.learning.decisions.record_outcome(NS, draft)

    world.store.before("update", DECISIONS, own)
    await world.services.learning.decisions.take_reward(NS, "d", -1.0)
    [stored] = await payloads(world, DECISIONS)
    assert "feedback_reward" not in stored


async def begun_again(world: World) -> None:
    """Clears the session ``s`` and puts a value into a new one."""
    await world.services.sessions.sessions.clear(NS, "s")
    world.clock.advance(1)
    await put_value(world, "first")


async def test_a_value_put_into_a_session_that_was_cleared_meanwhile_goes_into_a_new_one(world):
    await put_value(world, "former")

    world.store.before("update", SESSIONS, lambda: begun_again(world.another_process()))
    await put_value(world, "second")
    session = await world.services.sessions.sessions.get(NS, "s", 0)
    assert sorted(session.values) == ["first", "second"]


async def test_a_session_cleared_by_two_at_once_and_begun_again_stays(world):
    await put_value(world, "former")

    world.store.before("delete", SESSIONS, lambda: begun_again(world.another_process()))
    await world.services.sessions.sessions.clear(NS, "s")
    session = await world.services.sessions.sessions.get(NS, "s", 0)
    assert sorted(session.values) == ["first"]


async def test_an_import_that_replaces_takes_along_what_was_recorded_meanwhile(world):
    await save(world, pattern_id="p")
    exported = world.services.transfer.exporter.rows(ExportSpec(NS))
    rows = [row async for row, _ in exported if row.kind.collection == PATTERNS]
    await edit(world, title="edited")
    world.store.before("replace", PATTERNS, lambda: outcome(world, "p"))
    run = ImportRun(ImportTerms(ImportConflictPolicy.OVERWRITE))
    await world.services.transfer.importer.take(run, rows)
    found = await world.services.patterns.patterns.get(NS, "p")
    assert (found.content.title, found.outcomes.usage_count) == ("", 0)
    assert await payloads(world, OUTCOMES) == []
