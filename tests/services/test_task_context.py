"""What is gathered for a task."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lot_grpc.domain.change import ChangeType, ResourceKind
from lot_grpc.domain.episode import EpisodeEnd, EpisodeError, EpisodeStart, EpisodeStatus
from lot_grpc.domain.errors import EpisodeNotFoundError
from lot_grpc.domain.outcomes import Outcome
from lot_grpc.domain.pattern import PatternKind
from lot_grpc.services.context.preferences import MOST, MOST_LEARNED, MOST_OF_TASK
from lot_grpc.services.context.request import ContextRequest, filled_in
from lot_grpc.services.episodes.drafts import EpisodeDraft
from lot_grpc.services.errors.error_outcomes import ErrorOutcomeDraft
from lot_grpc.services.learning.feedback_handler import FeedbackTextDraft
from lot_grpc.services.preferences.preferences import PreferenceDraft
from lot_grpc.services.records.collections import CONTEXT_STATS, RETRIEVALS
from lot_grpc.testing.hashing import HashingEmbedder
from tests.services.watching import change_watcher
from tests.services.world import (
    DAY,
    NS,
    error_solution,
    memory,
    open_world,
    outcome,
    payloads,
    save,
)

TASK = "Deploy the web service to the cluster"


class CountingEmbedder(HashingEmbedder):
    """Counts the queries it embeds."""

    def __init__(self) -> None:
        super().__init__()
        self.queries: list[str] = []

    async def embed_query(self, text):
        self.queries.append(text)
        return await super().embed_query(text)


async def ask(world, task=TASK, **named):
    return await world.services.task_contexts.gather(NS, ContextRequest(task, **named))


async def ran(world, episode_id, task=TASK, error=None, **named):
    status = EpisodeStatus.FAILED if error else EpisodeStatus.SUCCEEDED
    end = EpisodeEnd(status, error=EpisodeError(*error) if error else None)
    draft = EpisodeDraft(EpisodeStart(task, **named), episode_id, end=end)
    await world.services.episodes.creator.record(NS, draft)


def pattern_ids(context):
    return [hit.thing.pattern_id for hit in context.patterns.hits]


def episode_ids(context):
    return [hit.thing.episode_id for hit in context.episodes]


async def test_all_is_asked_with_one_embedding_and_remembered_once():
    embedder = CountingEmbedder()
    world = await open_world(embedder=embedder)
    await save(world, TASK, pattern_id="p")
    await ran(world, "e", category="ops")
    await world.services.memories.memories.create(NS, memory(f"{TASK}: on Tuesdays", memory_id="m"))
    await world.services.errors.solutions.save(NS, error_solution("KeyError: 'a'"))
    task = f"{TASK} fails with KeyError: 'b'"
    context = await ask(world, task, category="ops")
    assert embedder.queries == [task]
    assert pattern_ids(context) == ["p"]
    assert episode_ids(context) == ["e"]
    assert [hit.thing.memory_id for hit in context.memories] == ["m"]
    [error] = context.errors
    assert error.exact
    assert context.recommended.recommendations.similar_count == 1
    await world.services.runtime.retrievals.flush()
    [row] = await payloads(world, RETRIEVALS)
    assert row["query"] == task
    solution_id = error.error_solution.error_solution_id
    assert row["shown"] == [
        *("pattern", "memory", "episode", "error_solution"),
        *("pattern/p", "memory/m", "episode/e", f"error_solution/{solution_id}"),
    ]


async def test_an_outcome_by_its_retrieval_is_learned_for_the_task():
    world = await open_world()
    await save(world, TASK, pattern_id="p")
    context = await ask(world)
    [used] = await outcome(world, "p", outcome=Outcome.FAILURE, retrieval_id=context.retrieval_id)
    assert used.outcomes.failure_count == 1
    [cell] = await payloads(world, CONTEXT_STATS)
    assert cell["query"] == TASK
    solution = error_solution("KeyError: 'a'", error_solution_id="s")
    await world.services.errors.solutions.save(NS, solution)
    context = await ask(world, "KeyError: 'a'")
    tried = ErrorOutcomeDraft("s", Outcome.SUCCESS, retrieval_id=context.retrieval_id)
    assert (await world.services.outcomes.of_errors.record(NS, tried)).outcomes.success_count == 1


async def test_an_empty_namespace_is_no_error():
    world = await open_world()
    context = await ask(world)
    for found in (context.patterns.hits, context.episodes, context.memories, context.errors):
        assert not found
    assert "Nothing yet" in context.prompt.text
    assert context.retrieval_id


async def test_other_namespaces_are_not_looked_into():
    world = await open_world()
    await save(world, TASK, pattern_id="p")
    await ran(world, "e", error=("KeyError", "'a'"), task_id="T-1")
    await world.services.preferences.put(NS, PreferenceDraft("k", 1))
    context = await world.services.task_contexts.gather("other", ContextRequest(TASK))
    assert "Nothing yet" in context.prompt.text
    with pytest.raises(EpisodeNotFoundError, match="T-1") as failed:
        await world.services.task_contexts.gather("other", ContextRequest(task_id="T-1"))
    assert failed.value.metadata["field"] == "task_id"


async def test_a_task_id_stands_for_its_newest_episode():
    world = await open_world()
    await ran(world, "old", "Paint the fence", task_id="T-1", category="garden")
    await ran(world, "new", TASK, task_id="T-1", category="ops", task_type="deploy")
    await save(world, TASK, pattern_id="p")
    await save(
        world,
        "of a type",
        pattern_id="typed",
        kind=PatternKind.LEARNED,
        task_type_pattern="^deploy$",
    )
    context = await ask(world, "", task_id="T-1")
    assert pattern_ids(context) == ["p", "typed"]
    assert context.patterns.matched == ("typed",)
    assert context.recommended.similar[0].episode.episode_id == "new"
    other = await ask(world, "", task_id="T-1", category="garden", task_type="x")
    assert other.recommended.similar[0].episode.episode_id == "old"
    assert other.patterns.matched == ()


async def test_a_learned_pattern_that_matches_has_a_place():
    world = await open_world()
    for number in range(9):
        await save(world, f"{TASK} number {number}", pattern_id=f"p{number}")
    await save(
        world, "zzz", pattern_id="learned", kind=PatternKind.LEARNED, task_type_pattern="web.*clus"
    )
    context = await ask(world)
    assert len(context.patterns.hits) == 3
    assert context.patterns.matched == ("learned",)
    assert pattern_ids(context)[0] != "learned"  # the best one leads
    strict = await ask(world, min_similarity=0.5)
    assert strict.patterns.matched == ("learned",)


async def test_a_single_place_is_for_the_best_whether_it_matches_or_not():
    world = await open_world()
    learned = {"kind": PatternKind.LEARNED, "task_type_pattern": "web.*cluster"}
    await save(world, "zzz", pattern_id="far", **learned)
    await save(world, TASK, pattern_id="known")
    alone = await ask(world, limit=1)
    assert (pattern_ids(alone), alone.patterns.matched) == (["known"], ())
    await save(world, f"{TASK} now", pattern_id="near", **learned)
    alone = await ask(world, f"{TASK} now", limit=1)
    assert (pattern_ids(alone), alone.patterns.matched) == (["near"], ("near",))


async def test_patterns_that_say_the_same_leave_room_for_others():
    world = await open_world()
    for number in range(3):
        await save(world, f"Deploy the web service {'!' * number}", pattern_id=f"same{number}")
    await save(world, "Roll back the broken database", pattern_id="other")
    task = "Deploy the web service, then roll back the broken database"
    found = await ask(world, task, limit=2)
    assert {one[:4] for one in pattern_ids(found)} == {"same", "othe"}
    assert len({hit.score for hit in found.patterns.hits}) == 2


async def test_failures_of_like_tasks_warn():
    world = await open_world()
    await ran(world, "good")
    for number in range(2):
        world.clock.advance(DAY)
        await ran(world, f"bad{number}", error=("KeyError", f"'host{number}'"))
    await ran(world, "far", "Paint the fence", error=("PaintError", "no paint"))
    [warning] = (await ask(world)).warnings
    assert warning.error_type == "KeyError"
    assert sorted(warning.episode_ids) == ["bad0", "bad1"]
    assert "last on 2023-11-16" in warning.message
    assert not (await ask(world, "Bake a cake")).warnings


async def test_running_episodes_are_not_told():
    world = await open_world()
    await world.services.episodes.creator.start(NS, EpisodeDraft(EpisodeStart(TASK), "running"))
    assert not (await ask(world)).episodes


async def test_things_of_other_languages_are_left_out():
    world = await open_world()
    for language in ("python", "rust", ""):
        name = language or "none"
        await save(world, f"{TASK} {name}", pattern_id=f"p-{name}", language=language)
        await world.services.memories.memories.create(
            NS, memory(f"{TASK} {name}", memory_id=f"m-{name}", language=language)
        )
        await world.services.errors.solutions.save(
            NS,
            error_solution("KeyError: 'a'", error_solution_id=f"s-{name}", language=language),
        )
    context = await ask(world, f"{TASK}: KeyError: 'a'", language="Py")
    assert set(pattern_ids(context)) == {"p-python", "p-none"}
    assert {hit.thing.memory_id for hit in context.memories} == {"m-python", "m-none"}
    solutions = {hit.error_solution.error_solution_id for hit in context.errors}
    assert solutions == {"s-python", "s-none"}


async def test_what_did_not_help_comes_behind_what_did():
    world = await open_world()
    save_error = world.services.errors.solutions.save
    message = "KeyError: 'a'"
    await save_error(NS, error_solution(message, error_solution_id="no", worked=False))
    await save_error(NS, error_solution(message, error_solution_id="yes", resolution="set it"))
    context = await ask(world, message)
    assert [hit.error_solution.error_solution_id for hit in context.errors] == ["yes", "no"]
    assert "NOT solved by this" in context.prompt.text
    one = await ask(world, message, limit=1)
    assert [hit.error_solution.error_solution_id for hit in one.errors] == ["yes"]
    assert not (await ask(world, "Set the key")).errors


async def test_least_similarity_holds_for_every_hit():
    world = await open_world()
    await save(world, TASK, pattern_id="near")
    await save(world, "Paint the fence", pattern_id="far")
    await ran(world, "e-far", "Paint the fence")
    await world.services.memories.memories.create(NS, memory("Paint the fence"))
    context = await ask(world, min_similarity=0.9)
    assert pattern_ids(context) == ["near"]
    assert not context.episodes
    assert not context.memories


async def test_preferences_are_bounded_and_those_of_the_task_come_first():
    world = await open_world()
    for number in range(MOST_LEARNED + 3):
        for task in ("other", TASK) if number == 0 else (f"task {number}",):
            judged = FeedbackTextDraft(text="great summary", task=task, reward=1.0)
            await world.services.learning.feedback_handler.submit(NS, judged)
    for number in range(5):
        draft = PreferenceDraft(f"k{number}", number, "a" if number % 2 else "b")
        await world.services.preferences.put(NS, draft)
    found = (await ask(world)).preferences
    assert found[0].value["task"] == TASK
    assert [one.key for one in found[1:6]] == ["k4", "k3", "k2", "k1", "k0"]
    assert len(found) == 1 + 5 + MOST_LEARNED
    some = (await ask(world, preference_categories=("a",))).preferences
    assert [one.key for one in some] == ["k3", "k1"]
    for number in range(MOST):
        await world.services.preferences.put(NS, PreferenceDraft(f"more{number}", number))
    assert len((await ask(world)).preferences) == MOST


async def test_all_that_was_liked_about_the_task_is_on_the_page_newest_first():
    world = await open_world()
    texts = [f"great summary {number}" for number in range(MOST_OF_TASK + 2)]
    for text in (*texts, texts[5]):
        world.clock.advance(1)
        judged = FeedbackTextDraft(text=text, task=f" {TASK.upper()}", reward=1.0)
        await world.services.learning.feedback_handler.submit(NS, judged)
    await world.services.preferences.put(NS, PreferenceDraft("set", True))
    context = await ask(world)
    said = [one.value["feedback"] for one in context.preferences if one.key != "set"]
    latest = [texts[5], *(text for text in reversed(texts) if text != texts[5])]
    assert said[:MOST_OF_TASK] == latest[:MOST_OF_TASK]
    assert context.preferences[MOST_OF_TASK].key == "set"
    assert all(text in context.prompt.text for text in latest[:3])


async def test_a_task_without_words_finds_nothing_and_says_so():
    embedder = CountingEmbedder()
    world = await open_world(embedder=embedder)
    await save(world, TASK, pattern_id="p")
    await ran(world, "e")
    context = await ask(world, "\u200b \n")
    assert context.wordless
    assert not context.patterns.hits
    assert not context.episodes
    assert not context.warnings
    assert len(embedder.queries) == 1
    assert (await ask(world, "word " * 13_000)).truncated


async def test_what_the_task_says_stands_for_blank_fields():
    world = await open_world()
    await ran(world, "e", task_id="t", category="git", task_type="rename")
    blank = ContextRequest(task_id="t", category=" ", task_type="\u200b\n", language="\u00a0")
    question = await filled_in(world.store, NS, blank)
    assert (question.category, question.task_type) == ("git", "rename")
    assert question.in_language == ContextRequest(question.task).in_language


async def test_what_a_passage_leaves_out_is_marked():
    world = await open_world()
    first, last = "The api listens on port 8080.", "Red apples are sold by the shop."
    filler = [f"Line {n} tells of the weather in town {n}." for n in range(100)]
    long = "\n\n".join([first, *filler, "In between is the queue.", *filler, last])
    await world.services.memories.memories.create(NS, memory(long, memory_id="m"))
    marks = []
    for task in ("api listens on port 8080", "the queue in between", "red apples sold by the shop"):
        text = (await ask(world, task, min_similarity=0.0)).prompt.text
        shown = [line.strip() for line in text.partition("## Memories")[2].splitlines()]
        shown = [line for line in shown if line and not line.startswith("`")]
        marks.append((shown[1].startswith("[…]"), shown[-1].endswith("[…]")))
    assert marks == [(False, True), (True, True), (True, False)]


@pytest.mark.parametrize(
    "task", ["重新部署网络服务", "انشر خدمة الويب", "🚀 e\u0301 \"' `x` # <b>\n```"]
)
async def test_any_script_is_found_and_told(task):
    world = await open_world()
    await save(world, task, pattern_id="p")
    await ran(world, "e", task, error=(task, task))
    await world.services.memories.memories.create(NS, memory(task, memory_id="m", title=task))
    context = await ask(world, task)
    assert pattern_ids(context) == ["p"]
    assert episode_ids(context) == ["e"]
    text = context.prompt.text
    assert [line for line in text.splitlines() if line.startswith("## ")] == [
        "## Patterns",
        "## Warnings",
        "## Memories",
        "## Similar episodes",
    ]


async def test_a_context_is_told_to_those_who_watch_just_then():
    world = await open_world()
    await save(world, TASK, pattern_id="p")
    await ran(world, "e")
    async with (
        change_watcher(world) as watcher,
        change_watcher(world, resource_kinds=(ResourceKind.MEMORY,)) as others,
        change_watcher(world, namespace="other") as elsewhere,
    ):
        context = await ask(world)
        await watcher.until(lambda: bool(watcher.events))
        for namespace in (NS, "other"):
            await world.services.memories.memories.create(namespace, memory(memory_id="m"))
        await others.until(lambda: bool(others.events))
        await elsewhere.until(lambda: bool(elsewhere.events))
    match = watcher.events[0]
    assert (match.type, match.cursor, match.resource_kind) == (
        ChangeType.CONTEXT_SUGGESTED,
        None,
        None,
    )
    assert match.id == context.retrieval_id
    assert replace(match.thing, retrieval_id="") == replace(
        match.thing, task=TASK, pattern_ids=("p",), episode_ids=("e",), retrieval_id=""
    )
    assert ChangeType.PATTERN_MATCHED not in {one.type for one in watcher.events}
    assert [one.resource_kind for one in others.events] == [ResourceKind.MEMORY]
    assert [one.resource_kind for one in elsewhere.events] == [ResourceKind.MEMORY]
