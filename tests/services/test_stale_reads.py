"""What another caller writes between a read and the write that rests on it is not overwritten."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.episode import EpisodeStart, EpisodeStatus
from lot_grpc.domain.error_solution import ErrorSolutionContent
from lot_grpc.domain.errors import (
    EtagMismatchError,
    EventConflictError,
    NamespaceClearingError,
    RequestInvalidError,
    WriterReplacedError,
)
from lot_grpc.domain.outcomes import Outcome
from lot_grpc.domain.pattern import Pattern, PatternContent
from lot_grpc.domain.transfer import ExportSpec, ImportConflictPolicy, ImportTerms
from lot_grpc.services.clearing.clear_registry import ClearRegistry
from lot_grpc.services.distillation.distiller import DistillDefaults, DistillRequest
from lot_grpc.services.episodes.drafts import EpisodeDraft
from lot_grpc.services.episodes.event_log import EventLog
from lot_grpc.services.episodes.event_recorder import TakeoverPolicy
from lot_grpc.services.errors.drafts import ErrorSolutionEdit
from lot_grpc.services.errors.error_outcomes import ErrorOutcomeDraft
from lot_grpc.services.extraction.pattern_extraction import ExtractionDraft
from lot_grpc.services.learning.decisions import DecisionOutcomeDraft
from lot_grpc.services.outcomes import context_stats
from lot_grpc.services.patterns.lineage import Lineage, Note
from lot_grpc.services.patterns.patterns import PatternEdit
from lot_grpc.services.preferences.preferences import PreferenceDraft
from lot_grpc.services.records.collections import (
    CONTEXT_STATS,
    DECISIONS,
    EPISODES,
    ERROR_SOLUTIONS,
    EVENTS,
    META,
    OUTCOMES,
    PATTERNS,
    PREFERENCE_REVISIONS,
    SESSIONS,
    SORT_KEY,
)
from lot_grpc.services.records.episodes import EXTRACTION, episode_point
from lot_grpc.services.records.patterns import pattern_point
from lot_grpc.services.runtime import PatternLearning
from lot_grpc.services.transfer.importer import ImportRun
from lot_grpc.services.unique_content import UniqueContentIndex
from tests.contract.clock import FixedClock
from tests.services.session_steps import SECOND
from tests.services.session_steps import put as put_value
from tests.services.world import (
    DAY,
    MINUTE,
    NS,
    Interrupted,
    SharedStore,
    World,
    call,
    decision,
    end,
    error_solution,
    event,
    events,
    feedback,
    open_world,
    outcome,
    payloads,
    save,
    start,
    whole,
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


@pytest.mark.parametrize("name", ["update", "replace", "delete"])
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


# --- memories, decisions, sessions, imports ---------------------------------------------------


async def test_an_edit_of_a_solution_leaves_an_outcome_and_another_edit(world):
    await solution(world)

    async def change(**fields: Any) -> None:
        content = replace(ErrorSolutionContent("unused"), **fields)
        edited = ErrorSolutionEdit(content, frozenset(fields))
        await world.services.errors.solutions.update(NS, "x", edited, "")

    world.store.before("replace", ERROR_SOLUTIONS, lambda: change(context="theirs"))
    await change(language="python")
    draft = ErrorOutcomeDraft("x", Outcome.SUCCESS)
    world.store.before(
        "replace", ERROR_SOLUTIONS, lambda: world.services.errors.outcomes.record(NS, draft)
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


# --- deletes ----------------------------------------------------------------------------------


async def pattern(world: World) -> None:
    await save(world, pattern_id="x", ttl=SECOND * MINUTE)
    await outcome(world, "x")


async def solution(world: World) -> None:
    draft = error_solution(error_solution_id="x", ttl=SECOND * MINUTE)
    await world.services.errors.solutions.save(NS, draft)
    await world.services.errors.outcomes.record(NS, ErrorOutcomeDraft("x", Outcome.SUCCESS))


async def preference(world: World) -> None:
    for value in ("one", "two"):
        await world.services.preferences.put(NS, PreferenceDraft("x", value))


BELONGINGS = [
    (ResourceKind.PATTERN, pattern, OUTCOMES),
    (ResourceKind.ERROR_SOLUTION, solution, OUTCOMES),
    (ResourceKind.PREFERENCE, preference, PREFERENCE_REVISIONS),
]


async def test_a_decision_that_got_an_outcome_is_not_deleted_by_the_etag_from_before(world):
    decisions = world.services.learning.decisions
    made, _ = await decisions.record(NS, decision(decision_id="d"))
    draft = DecisionOutcomeDraft("d", Outcome.SUCCESS)
    world.store.before("delete", DECISIONS, lambda: decisions.record_outcome(NS, draft))
    with pytest.raises(EtagMismatchError):
        await decisions.delete(NS, "d", made.etag)
    assert await world.store.count(DECISIONS, NS) == 1


async def used(world: World) -> None:
    await world.services.errors.outcomes.record(NS, ErrorOutcomeDraft("x", Outcome.SUCCESS))


async def test_a_solution_that_was_used_since_it_was_seen_is_spared(world):
    await solution(world)
    solutions = world.services.errors.solutions
    record = await solutions.find_record(NS, "x")
    assert record is not None
    await used(world)
    assert not await solutions.delete_as_seen(record)
    assert await world.store.count(ERROR_SOLUTIONS, NS) == 1


async def test_a_delete_that_an_edit_preceded_deletes_what_was_edited_unless_it_has_an_etag(world):
    etag = (await save(world, pattern_id="p")).pattern.etag
    delete = world.services.patterns.patterns.delete
    world.store.before("delete", PATTERNS, lambda: edit(world, title="edited"))
    with pytest.raises(EtagMismatchError):
        await delete(NS, "p", etag)
    assert await world.store.count(PATTERNS, NS) == 1
    world.store.before("delete", PATTERNS, lambda: edit(world, title="again"))
    await delete(NS, "p")
    assert await world.store.count(PATTERNS, NS) == 0


@pytest.mark.parametrize(("kind", "make", "belongings"), BELONGINGS)
async def test_a_delete_spares_what_belongs_to_another_that_took_the_id(
    world, kind, make, belongings
):
    resources = world.services.resources.of(kind)
    collection = resources.spec.collection.name
    await make(world)
    world.clock.advance(1)

    async def gone() -> None:
        world.store.before("get", collection, lambda: make(world.another_process()))

    world.store.before("delete", collection, gone)
    await resources.delete(NS, "x")
    assert await world.store.count(belongings, NS) == 1


@pytest.mark.parametrize(("kind", "make", "belongings"), BELONGINGS[:2])
@pytest.mark.parametrize("swept", [OUTCOMES, ""])
async def test_a_sweep_spares_what_took_the_id_of_an_expired_one(
    world, kind, make, belongings, swept
):
    resources = world.services.resources.of(kind)
    collection = resources.spec.collection.name
    await make(world)
    world.clock.advance(MINUTE + 1)
    world.store.before("delete", swept or collection, lambda: make(world.another_process()))
    await world.services.housekeeping.drop_expired()
    assert await world.store.count(collection, NS) == await world.store.count(belongings, NS) == 1


@pytest.mark.parametrize(("kind", "make", "belongings"), BELONGINGS[:2])
async def test_a_save_over_an_expired_one_forgets_no_outcome_that_came_since(
    world, kind, make, belongings
):
    await make(world)
    world.clock.advance(MINUTE + 1)
    record = world.services.errors.outcomes if kind is ResourceKind.ERROR_SOLUTION else None

    async def counted() -> None:
        if record is None:
            await outcome(world, "x")
        else:
            await record.record(NS, ErrorOutcomeDraft("x", Outcome.SUCCESS))

    world.store.before("delete", OUTCOMES, counted)
    await make(world)
    assert await world.store.count(belongings, NS) == 2


async def test_inserted_patterns_forget_no_outcome_of_others_nor_one_that_came_since(world):
    await pattern(world)
    await save(world, "another", pattern_id="y")
    patterns = world.services.patterns.patterns
    copy = await patterns.find_record(NS, "y", vectors=True)
    assert copy is not None
    await patterns.delete(NS, "y", "")
    copy.payload[SORT_KEY] = world.services.runtime.time.sort_key()
    world.store.before("delete", OUTCOMES, lambda: outcome(world, "y"))
    await patterns.insert(NS, [copy])
    found = await payloads(world, OUTCOMES)
    assert sorted(one["pattern_id"] for one in found) == ["x", "y"]


async def test_a_sweep_spares_a_session_that_was_begun_again(world):
    await put_value(world, "former", ttl=SECOND)
    world.clock.advance(DAY)
    world.store.before("delete", SESSIONS, lambda: put_value(world.another_process(), "first"))
    await world.services.sessions.sessions.sweep()
    session = await world.services.sessions.sessions.get(NS, "s", 0)
    assert sorted(session.values) == ["first"]


async def test_a_claim_on_a_content_that_is_given_up_late_is_that_of_another_by_then(world):
    index = UniqueContentIndex(world.store, world.services.runtime.time)
    await index.take(NS, {"claim": "p"})
    await index.move(NS, "claim", "p", "q")
    await index.release(NS, "claim", "p")
    assert await index.owner(NS, "claim", "r") == "q"


# --- clears -----------------------------------------------------------------------------------


def registry(world: World) -> ClearRegistry:
    """That of a process of its own."""
    return ClearRegistry(world.store, world.services.runtime.time, 0.0)


async def test_of_two_that_begin_a_clear_at_once_one_is_refused(world):
    async def other() -> None:
        clears = registry(world)
        await clears.end(await clears.begin(NS, ()), 0)

    await other()
    world.store.before("replace", META, other)
    with pytest.raises(NamespaceClearingError):
        await registry(world).begin(NS, ())
    assert (await registry(world).begin(NS, ())).generation == 3


async def test_a_clear_that_ended_or_has_another_holder_is_not_taken_over(world):
    one, other = registry(world), registry(world)
    begun = await one.begin(NS, ())
    held = await one.hold(begun)
    assert await other.hold(begun) is None
    await other.end(begun, 0)
    assert [clear.at_work for clear in await other.at_work()] == [True]
    assert held is not None
    await one.end(held, 0)
    assert await other.hold(held) is None
    again = await one.begin(NS, ())
    assert await other.hold(replace(again, generation=1)) is None


# --- episodes ---------------------------------------------------------------------------------


async def stored_episode(world: World) -> dict[str, Any]:
    [payload] = await payloads(world, EPISODES)
    return dict(payload)


async def taken_over(world: World) -> None:
    await world.another_process().services.episodes.recorder.open(NS, "e", TakeoverPolicy.REPLACE)


async def test_a_writer_that_was_replaced_before_it_looked_is_refused(world):
    await world.services.episodes.creator.start(NS, start(episode_id="e"))

    async def then() -> None:  # after its epoch was written, before it says what it found
        world.store.before("update", EPISODES, lambda: taken_over(world))

    world.store.before("update", EPISODES, then)
    with pytest.raises(WriterReplacedError):
        await world.services.episodes.recorder.open(NS, "e", TakeoverPolicy.REPLACE)


async def test_an_episode_that_is_abandoned_while_it_is_taken_over_runs_again(world):
    await world.services.episodes.creator.start(NS, start(episode_id="e"))
    point, abandoned = episode_point(NS, "e"), {"status": EpisodeStatus.ABANDONED.value}
    world.store.before(
        "update", EPISODES, lambda: world.store.update(EPISODES, NS, point, set=abandoned)
    )
    await world.services.episodes.recorder.open(NS, "e", TakeoverPolicy.REPLACE)
    assert (await world.services.episodes.episodes.get(NS, "e")).status is EpisodeStatus.RUNNING


async def test_an_end_that_lost_its_turn_counts_again(world):
    await world.services.episodes.creator.start(NS, start(episode_id="e"))

    async def recorded() -> None:
        recorder = world.another_process().services.episodes.recorder
        writer = await recorder.open(NS, "e", TakeoverPolicy.REPLACE)
        await recorder.append(writer, [event(1)])

    async def then() -> None:  # after its epoch was written, before the end is
        world.store.before("update", EPISODES, recorded)

    world.store.before("update", EPISODES, then)
    ended = await world.services.episodes.ender.end(NS, "e", end(), "")
    assert ended.episode.event_count == 1


@pytest.mark.parametrize("summary", ["", "It went well"])
async def test_an_end_is_that_of_the_episode_as_it_stands(world, summary):
    """An import, say, replaces it, and no epoch tells."""
    await world.services.episodes.creator.start(NS, start(episode_id="e"))
    point = episode_point(NS, "e")

    async def changed() -> None:
        await world.store.update(EPISODES, NS, point, set={"revision": 5})

    async def then() -> None:
        world.store.before("update", EPISODES, changed)

    world.store.before(*(("replace", EPISODES, changed) if summary else ("update", EPISODES, then)))
    ended = await world.services.episodes.ender.end(NS, "e", end(summary=summary), "")
    assert ended.episode.revision == 6


async def test_an_end_with_a_summary_leaves_what_was_counted_meanwhile(world):
    await world.services.episodes.creator.start(NS, start(episode_id="u"))

    async def used() -> None:
        other = world.another_process().services.episodes.creator
        await other.record(NS, whole(1, "e", end=end(used_episode_ids=("u",))))

    world.store.before("replace", EPISODES, used)
    ended = await world.services.episodes.ender.end(NS, "u", end(summary="It went well"), "")
    assert ended.episode.status.ended
    assert (await world.services.episodes.episodes.get(NS, "u")).reused_count == 1


async def test_an_event_of_a_writer_that_came_later_is_not_replaced(world):
    log = EventLog(world.store)
    await log.append(NS, "e", [event(1, "first")], 0, 1)

    async def later() -> None:
        await EventLog(world.store).append(NS, "e", [event(1, "third")], 0, 3)

    world.store.before("replace", EVENTS, later)
    with pytest.raises(EventConflictError):
        await log.append(NS, "e", [event(1, "second")], 0, 2)
    [stored] = await payloads(world, EVENTS)
    assert stored["epoch"] == 3


async def test_a_delete_spares_the_events_of_an_episode_that_took_the_id(world):
    await world.services.episodes.creator.record(NS, whole(3, "e"))

    async def begun_again() -> None:
        other = world.another_process().services.episodes
        world.clock.advance(1)
        await other.creator.start(NS, start(episode_id="e"))
        await other.recorder.record_event(NS, "e", event(text="new"), "")

    world.store.before("delete", EVENTS, begun_again)
    await world.services.episodes.episodes.delete_with_events(NS, "e")
    assert await world.store.count(EVENTS, NS) == 1
    assert (await stored_episode(world))["writer_epoch"] == 1  # nobody had to take it over


async def test_a_stream_of_a_deleted_episode_writes_nothing_to_another_that_took_its_id(world):
    await world.services.episodes.creator.start(NS, start(episode_id="e"))
    recorder, other = world.services.episodes.recorder, world.another_process().services.episodes
    former = await recorder.open(NS, "e", TakeoverPolicy.REPLACE)
    await other.episodes.delete_with_events(NS, "e")
    world.clock.advance(1)
    await other.creator.start(NS, start(episode_id="e"))
    writer = await other.recorder.open(NS, "e", TakeoverPolicy.REPLACE)
    with pytest.raises(WriterReplacedError):
        await recorder.append(former, events(1, 2))
    assert await other.recorder.append(writer, [event(1, "new")]) == 1
    page = await other.episodes.list_events(NS, "e", 0, 10)
    assert [one.data for one in page.items] == [b"new"]


async def test_what_an_episode_taught_is_not_noted_of_another_that_took_its_id(world):
    given = EpisodeDraft(
        EpisodeStart("Deploy"), "e", end=end(), events=(call("ssh"),), extract=True
    )
    await world.services.episodes.creator.record(NS, given)

    async def reborn() -> None:
        await world.services.episodes.episodes.delete_with_events(NS, "e")
        world.clock.advance(1)
        await world.services.episodes.creator.start(NS, start(episode_id="e"))

    world.store.before("update", EPISODES, reborn)
    await world.services.extraction.episodes.take(NS, "e")
    [stored] = await payloads(world, EPISODES)
    assert EXTRACTION not in stored
