"""Every operation that writes, with its beginning, for the proof that a death leaves no half."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.context_stats import MAX_CONTEXT_STATS
from lot_grpc.domain.episode import EpisodeError, EpisodeStart, EpisodeStatus
from lot_grpc.domain.errors import (
    DecisionNotFoundError,
    EpisodeNotFoundError,
    ErrorSolutionNotFoundError,
    LearningEventNotFoundError,
    MemoryNotFoundError,
    OutcomeCorrectedError,
    PatternNotFoundError,
    PreferenceNotFoundError,
    SessionNotFoundError,
)
from lot_grpc.domain.learning_event import TargetKind
from lot_grpc.domain.memory import MemoryContent
from lot_grpc.domain.outcomes import Outcome
from lot_grpc.domain.pattern import PatternContent
from lot_grpc.domain.policy import NamespacePolicy, PolicyEdit
from lot_grpc.domain.query import MemoryFilter, PatternFilter
from lot_grpc.domain.session import SessionMessage
from lot_grpc.domain.transfer import Conflict, ExportSpec, ImportTerms
from lot_grpc.services.distillation.distiller import DistillRequest
from lot_grpc.services.episodes.drafts import EpisodeDraft
from lot_grpc.services.episodes.event_recorder import Takeover
from lot_grpc.services.errors.error_outcomes import ErrorOutcomeDraft
from lot_grpc.services.extraction.code_extraction import CodeDraft
from lot_grpc.services.extraction.pattern_extraction import ExtractionDraft
from lot_grpc.services.learning.decisions import DecisionOutcomeDraft
from lot_grpc.services.memories.drafts import MemoryEdit
from lot_grpc.services.outcomes.outcome_log import CorrectionDraft
from lot_grpc.services.outcomes.outcomes import OutcomeDraft
from lot_grpc.services.patterns.drafts import Dedupe
from lot_grpc.services.patterns.feedback import FeedbackDraft
from lot_grpc.services.patterns.patterns import PatternEdit
from lot_grpc.services.patterns.pruner import PruneDraft
from lot_grpc.services.preferences.preferences import PreferenceDraft
from lot_grpc.services.records.collections import ERROR_SOLUTIONS
from lot_grpc.services.seeder import Seeds
from lot_grpc.services.sessions.rows import Terms
from lot_grpc.services.sessions.session_messages import MessageDraft
from lot_grpc.services.transfer.importer import ImportRun
from lot_grpc.services.transfer.rows import Row
from tests.services.world import (
    DAY,
    World,
    call,
    decision,
    draft,
    end,
    error_solution,
    event,
    events,
    judgement,
    learning_event,
    memory,
    select,
    start,
    steps,
    whole,
)

Step = Callable[[World, str], Awaitable[Any]]


@dataclass(frozen=True)
class Case:
    """An operation. ``repeatable``: sent again it must come to what one sending comes to.

    ``contents`` are the tasks it saves by content: each must end as one pattern, whatever happens.
    """

    name: str
    begin: Step
    run: Step
    repeatable: bool = True
    contents: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.name


async def nothing(world: World, ns: str) -> None:
    pass


async def three_patterns(world: World, ns: str) -> None:
    """``p1`` saved by content, used twice; ``p2`` and ``p3`` by id."""
    await world.services.patterns.writer.save(ns, draft("one", language="python"))
    await world.services.patterns.writer.save(ns, draft("two", pattern_id="p2"))
    await world.services.patterns.writer.save(
        ns, draft("three", pattern_id="p3", initial_success_rate=0.4)
    )
    used = OutcomeDraft((await id_of(world, ns, "one"), "p2"), Outcome.FAILURE, query="how")
    await world.services.patterns.outcomes.record(ns, used)
    await world.services.patterns.outcomes.record(ns, replace(used, outcome=Outcome.PARTIAL))


async def id_of(world: World, ns: str, task: str) -> str:
    """The id of the one pattern with this task."""
    from lot_grpc.services.records.collections import PATTERNS

    found = await world.store.scroll(PATTERNS, ns, [], limit=100)
    (one,) = [r.payload["pattern_id"] for r in found if r.payload["task"] == task]
    return str(one)


async def running(world: World, ns: str) -> None:
    await world.services.episodes.creator.start(ns, start(episode_id="e"))
    for n in range(2):
        await world.services.episodes.recorder.record_event(ns, "e", event(text=f"before {n}"), "")


async def a_memory(world: World, ns: str) -> None:
    await world.services.memories.memories.create(ns, memory("first", memory_id="m"))


async def two_error_solutions(world: World, ns: str) -> None:
    """One that nobody named, and ``s``."""
    await world.services.errors.solutions.save(ns, error_solution())
    await world.services.errors.solutions.save(ns, error_solution(error_solution_id="s"))


def saves(*given: Any, **named: Any) -> Step:
    async def run(world: World, ns: str) -> Any:
        return await world.services.patterns.writer.save(ns, draft(*given, **named))

    return run


def batch(with_requests: bool) -> Step:
    tasks = ("one", "b", "c", "b", "d")  # one that is there, and one twice

    async def run(world: World, ns: str) -> Any:
        return await world.services.patterns.writer.save_many(
            ns,
            [
                draft(task, language="python", request_id=f"r{n}" if with_requests else "")
                for n, task in enumerate(tasks)
            ],
        )

    return run


def updates(**changes: Any) -> Step:
    async def run(world: World, ns: str) -> Any:
        from lot_grpc.services.records.collections import PATTERNS

        content = replace(PatternContent("unused"), **changes)
        wanted = PatternEdit(content, frozenset(changes))
        found = await world.store.scroll(PATTERNS, ns, [], limit=100)
        # The one that was saved first is there under its old or its new task.
        (one,) = [
            r.payload["pattern_id"]
            for r in found
            if r.payload["pattern_id"] not in ("p2", "p3") and r.payload["usage_count"] == 2
        ]
        return await world.services.patterns.patterns.update(ns, one, wanted, "")

    return run


async def deletes_pattern(world: World, ns: str) -> None:
    from lot_grpc.services.records.collections import PATTERNS

    found = await world.store.scroll(PATTERNS, ns, [], limit=100)
    for one in [r.payload["pattern_id"] for r in found if r.payload["task"] == "one"]:
        with suppress(PatternNotFoundError):
            await world.services.patterns.patterns.delete(ns, one, "")


async def chain(world: World, ns: str) -> None:
    """``old``, which ``mid`` supersedes, and ``other``."""
    await world.services.patterns.writer.save(ns, draft("old", pattern_id="old"))
    await world.services.patterns.writer.save(ns, draft("other", pattern_id="other"))
    await world.services.patterns.writer.save(ns, draft("mid", pattern_id="mid", supersedes="old"))


def supersedes(pattern_id: str, superseded: str) -> Step:
    async def run(world: World, ns: str) -> Any:
        wanted = PatternEdit(PatternContent("", supersedes=superseded), frozenset({"supersedes"}))
        return await world.services.patterns.patterns.update(ns, pattern_id, wanted, "")

    return run


async def deletes_successor(world: World, ns: str) -> None:
    with suppress(PatternNotFoundError):
        await world.services.patterns.patterns.delete(ns, "mid", "")


NEAR = "Log in to the shop as the user and open the list of all orders {}"
NEAR_THAT = "Log in to the big shop as the new user and open the list of all late orders {}"


async def alike(world: World, ns: str) -> None:
    """Eight patterns of two groups that are alike, and used ones among them."""
    for n, word in enumerate(("now", "today", "again", "soon")):
        await world.services.patterns.writer.save(ns, draft(NEAR.format(word), pattern_id=f"a{n}"))
        await world.services.patterns.writer.save(
            ns, draft(NEAR_THAT.format(word), pattern_id=f"b{n}")
        )
    for outcome in (Outcome.SUCCESS, Outcome.PARTIAL):
        await world.services.patterns.outcomes.record(
            ns, OutcomeDraft(("a0", "b1"), outcome, duration=1.0)
        )


async def alike_and_more(world: World, ns: str) -> None:
    """The groups are made, and there is one more pattern for one of them."""
    await alike(world, ns)
    await distils(world, ns)
    await world.services.patterns.writer.save(ns, draft(NEAR.format("then"), pattern_id="a9"))


async def distils(world: World, ns: str) -> Any:
    return await world.services.distillation.distiller.distil(ns, DistillRequest(similarity=0.92))


async def deletes_memory(world: World, ns: str) -> None:
    with suppress(MemoryNotFoundError):
        await world.services.memories.memories.delete(ns, "m", "")


async def deletes_error_solution(world: World, ns: str) -> None:
    with suppress(ErrorSolutionNotFoundError):
        await world.services.errors.solutions.delete(ns, "s")


def outcomes(request_id: str, query: str = "") -> Step:
    async def run(world: World, ns: str) -> Any:
        ids = (await id_of(world, ns, "one"), "p2", "p3")
        given = OutcomeDraft(ids, Outcome.SUCCESS, query=query, duration=2.0, request_id=request_id)
        return await world.services.patterns.outcomes.record(ns, given)

    return run


def one_outcome(request_id: str, query: str) -> Step:
    async def run(world: World, ns: str) -> Any:
        given = OutcomeDraft(("p2",), Outcome.SUCCESS, query=query, request_id=request_id)
        return await world.services.patterns.outcomes.record(ns, given)

    return run


def feedbacks(request_id: str, **said: Any) -> Step:
    async def run(world: World, ns: str) -> Any:
        given = FeedbackDraft("p2", request_id=request_id, **said)
        return await world.services.patterns.feedback.give(ns, given)

    return run


async def many_cells(world: World, ns: str) -> None:
    """``p2`` used on as many queries as it may have cells."""
    await three_patterns(world, ns)
    for n in range(MAX_CONTEXT_STATS - 1):  # "how" is one
        await one_outcome("", f"query number {n}")(world, ns)


async def an_outcome(world: World, ns: str) -> None:
    """Two that share an id, between others."""
    await three_patterns(world, ns)
    await outcomes("to correct", "why")(world, ns)
    await outcomes("", "why")(world, ns)


def corrects(request_id: str, instead: Outcome | None) -> Step:
    async def run(world: World, ns: str) -> Any:
        from lot_grpc.services.records.collections import REQUESTS

        rows = await world.store.scroll(REQUESTS, ns, [], limit=100)
        (told,) = [r.payload["plan"] for r in rows if r.payload.get("request_id") == "to correct"]
        given = CorrectionDraft(told["outcome_id"], instead, request_id=request_id)
        with suppress(OutcomeCorrectedError):
            return await world.services.patterns.outcome_log.correct(ns, given)

    return run


async def some_feedback(world: World, ns: str) -> None:
    """Three patterns; ``p2`` was found helpful twice."""
    await three_patterns(world, ns)
    for text in ("first", "second"):
        await world.services.patterns.feedback.give(
            ns, FeedbackDraft("p2", helpful=True, text=text)
        )


async def deletes_p2(world: World, ns: str) -> None:
    with suppress(PatternNotFoundError):
        await world.services.patterns.patterns.delete(ns, "p2", "")


def starts(**named: Any) -> Step:
    async def run(world: World, ns: str) -> Any:
        return await world.services.episodes.creator.start(ns, start(**named))

    return run


def one_event(request_id: str) -> Step:
    async def run(world: World, ns: str) -> Any:
        return await world.services.episodes.recorder.record_event(
            ns, "e", event(text="x"), request_id
        )

    return run


async def streams(world: World, ns: str) -> None:
    """A client's stream: opens, is told what is stored, and sends the rest."""
    recorder = world.services.episodes.recorder
    writer = await recorder.open(ns, "e", Takeover.TAKE_OVER)
    try:
        await recorder.append(writer, [event(1, "before 0"), event(2, "before 1"), *events(3, 6)])
        await recorder.append(writer, events(5, 9))
    finally:
        await recorder.close(writer)


def ends(request_id: str) -> Step:
    async def run(world: World, ns: str) -> Any:
        return await world.services.episodes.ender.end(ns, "e", end(summary="done"), request_id)

    return run


async def used_by_others(world: World, ns: str) -> None:
    """``u`` was used once, ``v`` never; ``e`` is running."""
    for name in ("u", "v"):
        await world.services.episodes.creator.start(ns, start(episode_id=name))
    given = end(used_episode_ids=("u",))
    await world.services.episodes.creator.record(ns, whole(1, episode_id="f", end=given))
    await running(world, ns)


def ends_with_use(request_id: str) -> Step:
    async def run(world: World, ns: str) -> Any:
        given = end(used_episode_ids=("u", "v"))
        return await world.services.episodes.ender.end(ns, "e", given, request_id)

    return run


def records_with_use(**named: Any) -> Step:
    async def run(world: World, ns: str) -> Any:
        given = whole(2, end=end(used_episode_ids=("v", "u")), **named)
        return await world.services.episodes.creator.record(ns, given)

    return run


async def left(world: World, ns: str) -> None:
    """``e`` has two events and is due to be abandoned."""
    await running(world, ns)
    world.clock.advance(DAY)


async def abandons(world: World, ns: str) -> None:
    await world.services.episodes.abandoner.sweep()


async def abandoned(world: World, ns: str) -> None:
    await left(world, ns)
    await abandons(world, ns)


async def recorded(world: World, ns: str) -> None:
    """``e`` is ended and has five events, ``f`` still runs and has two."""
    await world.services.episodes.creator.record(ns, whole(5, episode_id="e"))
    await world.services.episodes.creator.start(ns, start(episode_id="f"))
    for n in range(2):
        await world.services.episodes.recorder.record_event(ns, "f", event(text=f"event {n}"), "")


def deletes_episode(episode_id: str) -> Step:
    async def run(world: World, ns: str) -> None:
        with suppress(EpisodeNotFoundError):
            await world.services.episodes.episodes.delete_with_events(ns, episode_id)

    return run


def prunes(**named: Any) -> Step:
    async def run(world: World, ns: str) -> Any:
        return await world.services.patterns.pruner.prune(ns, PruneDraft(PatternFilter(), **named))

    return run


def sets_policy(**named: Any) -> Step:
    async def run(world: World, ns: str) -> Any:
        edit = PolicyEdit(NamespacePolicy(**named), frozenset(named))
        return await world.services.retention.policies.update(ns, edit, "")

    return run


async def bounded(world: World, ns: str) -> None:
    """More of everything than the policy allows."""
    await three_patterns(world, ns)
    await a_memory(world, ns)
    await world.services.memories.memories.create(ns, memory("second", memory_id="n"))
    await recorded(world, ns)
    await world.services.episodes.creator.record(ns, whole(3, episode_id="g"))
    await sets_policy(max_patterns=1, max_memories=1, max_episodes=1)(world, ns)


async def sweeps(world: World, ns: str) -> None:
    await world.services.retention.sweep.sweep()


def records(**named: Any) -> Step:
    async def run(world: World, ns: str) -> Any:
        return await world.services.episodes.creator.record(ns, whole(5, **named))

    return run


def creates(**named: Any) -> Step:
    async def run(world: World, ns: str) -> Any:
        return await world.services.memories.memories.create(ns, memory("new", **named))

    return run


LONG = "A sentence of some words. " * 200


def creates_many(*, with_requests: bool) -> Step:
    async def run(world: World, ns: str) -> Any:
        contents = ("a", LONG, "c")
        drafts = [
            memory(content, request_id=f"r{n}" if with_requests else "")
            for n, content in enumerate(contents)
        ]
        return await world.services.memories.memories.create_many(ns, drafts)

    return run


async def long_memories(world: World, ns: str) -> None:
    """``m``, ``long`` and one that is pinned."""
    await a_memory(world, ns)
    await world.services.memories.memories.create(ns, memory(LONG, memory_id="long"))
    await world.services.memories.memories.create(ns, memory("kept", memory_id="p", pinned=True))


def edits_memory(**changes: Any) -> Step:
    async def run(world: World, ns: str) -> Any:
        content = replace(MemoryContent(LONG), **changes)
        edit = MemoryEdit(content, frozenset(changes))
        return await world.services.memories.memories.update(ns, "m", edit, "")

    return run


def deletes_memories(world: World, ns: str) -> Any:
    asked = MemoryFilter(max_importance=0.6)
    return world.services.memories.bulk_deleter.delete(ns, asked, dry_run=False)


async def deletes_decision(world: World, ns: str) -> None:
    with suppress(DecisionNotFoundError):
        await world.services.learning.decisions.delete(ns, "d")


async def deletes_learning_event(world: World, ns: str) -> None:
    with suppress(LearningEventNotFoundError):
        await world.services.learning.learning_events.delete(ns, "l")


async def chosen_and_decided(world: World, ns: str) -> None:
    """Decision ``d`` and one reward of ``a``; the selection of ``a`` is found by its request."""
    await world.services.learning.decisions.record(ns, decision(decision_id="d"))
    await world.services.learning.step_recorder.record(ns, steps(("a", 1.0), ("b", 0.5)))
    await selection_of(world, ns)


async def selection_of(world: World, ns: str) -> str:
    chosen = await world.services.learning.selections.select(
        ns, select("a", seed=1, request_id="chosen")
    )
    return chosen.selection_id


def selects(request_id: str) -> Step:
    async def run(world: World, ns: str) -> Any:
        return await world.services.learning.selections.select(
            ns, select("x", "y", seed=1, request_id=request_id)
        )

    return run


def solves(message: str, **named: Any) -> Step:
    async def run(world: World, ns: str) -> Any:
        return await world.services.errors.solutions.save(ns, error_solution(message, **named))

    return run


def steps_of(request_id: str) -> Step:
    async def run(world: World, ns: str) -> Any:
        given = steps(("a", 0.5), ("b", -1.0), ("a", 1.0), request_id=request_id)
        return await world.services.learning.step_recorder.record(ns, given)

    return run


async def seeded_and_one_deleted(world: World, ns: str) -> None:
    """The common errors, one of which was deleted since."""
    await world.services.seeder.seed(ns, Seeds(("common_errors",)))
    await world.services.errors.solutions.delete(ns, "seed:common_errors:nil_pointer.go")


def seeds(*packs: str, restore_deleted: bool = False) -> Step:
    async def run(world: World, ns: str) -> Any:
        wanted = Seeds(packs, restore_deleted=restore_deleted)
        return await world.services.seeder.seed(ns, wanted)

    return run


def decides(**named: Any) -> Step:
    async def run(world: World, ns: str) -> Any:
        return await world.services.learning.decisions.record(ns, decision("Which port?", **named))

    return run


def comes_of_it(request_id: str) -> Step:
    async def run(world: World, ns: str) -> Any:
        given = DecisionOutcomeDraft("d", Outcome.SUCCESS, 0.5, "fine", request_id)
        return await world.services.learning.decisions.record_outcome(ns, given)

    return run


def learns(**named: Any) -> Step:
    async def run(world: World, ns: str) -> Any:
        return await world.services.learning.learning_events.record(
            ns, learning_event(text="x", **named)
        )

    return run


def judges(kind: TargetKind | None, request_id: str = "") -> Step:
    """Praise that is a preference as well."""

    async def run(world: World, ns: str) -> Any:
        target = await selection_of(world, ns) if kind is TargetKind.SELECTION else "d"
        given = judgement(
            kind, target, text="Perfect summary, thanks!", task="t", request_id=request_id
        )
        return await world.services.learning.feedback_handler.submit(ns, given)

    return run


async def judged_before(world: World, ns: str) -> None:
    await chosen_and_decided(world, ns)
    await judges(None)(world, ns)


async def two_logins(world: World, ns: str) -> None:
    for number in range(2):
        await login(world, ns, f"before{number}")


async def login(world: World, ns: str, episode_id: str, extract: bool = False) -> None:
    given = EpisodeDraft(
        EpisodeStart("log in", task_type="login"),
        episode_id,
        end=end(),
        events=(call("browser"),),
        extract=extract,
    )
    await world.services.episodes.creator.record(ns, given)
    if extract:
        await world.services.extraction.episodes.take(ns, episode_id)


async def three_logins(world: World, ns: str) -> None:
    await two_logins(world, ns)
    await world.services.episodes.creator.start(ns, start("log in", "e", task_type="login"))


async def saved_before(world: World, ns: str) -> None:
    """The lesson is there already, and the group learned from."""
    await two_logins(world, ns)
    await login(world, ns, "first", extract=True)


async def records_login(world: World, ns: str) -> None:
    await login(world, ns, "e", extract=True)


async def ends_login(world: World, ns: str) -> None:
    await world.services.episodes.ender.end(ns, "e", end(), "r", extract=True)
    await world.services.extraction.episodes.take(ns, "e")


async def failing(world: World, ns: str) -> None:
    """A test that failed, was mended, and failed otherwise."""
    await world.services.episodes.creator.start(ns, start("mend", "e"))
    for one in (call("pytest", error="KeyError: 'a'"), call("pip"), call("pytest")):
        await world.services.episodes.recorder.record_event(ns, "e", one, "")


async def ends_failing(world: World, ns: str) -> None:
    failed = end(EpisodeStatus.FAILED, error=EpisodeError("OSError", "disk full"))
    await world.services.episodes.ender.end(ns, "e", failed, "r", extract=True)
    await world.services.extraction.episodes.take(ns, "e")


async def records_mending(world: World, ns: str) -> None:
    events = (call("pytest", error="KeyError: 'a'"), call("pip"), call("pytest"))
    given = EpisodeDraft(EpisodeStart("mend"), "e", end=end(), events=events, extract=True)
    await world.services.episodes.creator.record(ns, given)
    await world.services.extraction.episodes.take(ns, "e")


async def extracts(world: World, ns: str) -> None:
    await world.services.extraction.patterns.extract(ns, ExtractionDraft(min_samples=2))


async def learned_before(world: World, ns: str) -> None:
    await two_logins(world, ns)
    await extracts(world, ns)
    await login(world, ns, "later")


def extracts_code(world: World, ns: str) -> Any:
    code = "class A:\n  def f(self): h()\n  async def g(self): await h()\n"
    return world.services.extraction.code.extract(ns, CodeDraft(code, "python"))


async def used_error_solutions(world: World, ns: str) -> None:
    """Two error solutions, both used."""
    await two_error_solutions(world, ns)
    for outcome in (Outcome.FAILURE, Outcome.PARTIAL):
        await helps("", outcome)(world, ns)
    (other,) = [
        record.payload["error_solution_id"]
        for record in await world.store.scroll(ERROR_SOLUTIONS, ns, [], limit=10)
        if record.payload["error_solution_id"] != "s"
    ]
    used = ErrorOutcomeDraft(other, Outcome.SUCCESS, duration=3.0)
    await world.services.errors.outcomes.record(ns, used)


def helps(request_id: str, outcome: Outcome = Outcome.SUCCESS) -> Step:
    async def run(world: World, ns: str) -> Any:
        tried_on = "KeyError: 'c'"
        given = ErrorOutcomeDraft("s", outcome, error_message=tried_on, request_id=request_id)
        return await world.services.errors.outcomes.record(ns, given)

    return run


async def two_preferences(world: World, ns: str) -> None:
    """``k``, which had two values before, and ``other``."""
    for key, value in (("k", "first"), ("k", "second"), ("k", "third"), ("other", None)):
        await world.services.preferences.put(ns, PreferenceDraft(key, value))


def prefers(key: str, value: Any, request_id: str = "") -> Step:
    async def run(world: World, ns: str) -> Any:
        given = PreferenceDraft(key, value, request_id=request_id)
        return await world.services.preferences.put(ns, given)

    return run


def clearing(*resource_kinds: ResourceKind) -> Step:
    async def run(world: World, ns: str) -> Any:
        return await world.services.clearing.clearer.clear(ns, resource_kinds)

    return run


async def deletes_preference(world: World, ns: str) -> None:
    with suppress(PreferenceNotFoundError):
        await world.services.preferences.delete(ns, "k")


async def a_session(world: World, ns: str) -> None:
    """``s`` with a full window of three messages, and two values."""
    for number in range(4):
        await says(f"before {number}", max_messages=3)(world, ns)
    for key in ("a", "b"):
        await world.services.sessions.values.put(ns, "s", key, b"before")


async def a_lapsed_session(world: World, ns: str) -> None:
    await a_session(world, ns)
    await world.services.sessions.values.put(ns, "s", "a", b"last", 1_000_000)
    world.clock.advance(120)


def says(content: str, request_id: str = "", max_messages: int = 0) -> Step:
    async def run(world: World, ns: str) -> Any:
        message = SessionMessage("user", content)
        given = MessageDraft("s", message, Terms(max_messages), request_id)
        return await world.services.sessions.messages.append(ns, given)

    return run


async def few_error_solutions(world: World, ns: str) -> None:
    """One used solution more than the policy allows."""
    await used_error_solutions(world, ns)
    await sets_policy(max_error_solutions=1)(world, ns)


async def puts_session_value(world: World, ns: str) -> None:
    await world.services.sessions.values.put(ns, "s", "a", b"new")


def clears_session(*keys: str, **named: Any) -> Step:
    async def run(world: World, ns: str) -> None:
        with suppress(SessionNotFoundError):
            await world.services.sessions.sessions.clear(ns, "s", keys, **named)

    return run


async def exported_elsewhere(world: World, ns: str) -> list[Row]:
    """What a store of its own would export, as rows for a namespace; things without a log."""
    from lot_grpc.testing.in_memory import InMemoryStore
    from tests.services.world import open_world

    other = await open_world(InMemoryStore(world.clock), world.clock)
    services = other.services
    await services.patterns.writer.save(ns, draft("one", language="python"))
    await services.patterns.writer.save(ns, draft("two", pattern_id="p2"))
    await services.memories.memories.create(ns, memory("first", memory_id="m"))
    await services.errors.solutions.save(ns, error_solution(error_solution_id="s"))
    await services.episodes.creator.start(ns, start(episode_id="e"))
    await services.learning.decisions.record(ns, decision(decision_id="d"))
    exported = services.transfer.exporter.rows(ExportSpec(ns))
    return [replace(row, record=replace(row.record, namespace=ns)) async for row, _ in exported]


def imports(conflict: Conflict) -> Step:
    """Rows that are the same each time."""
    known: dict[str, list[Row]] = {}

    async def run(world: World, ns: str) -> None:
        if ns not in known:
            known[ns] = await exported_elsewhere(world, ns)
        run_ = ImportRun(ImportTerms(conflict))
        await world.services.transfer.importer.take(run_, known[ns])

    return run


async def sweeps_sessions(world: World, ns: str) -> None:
    await world.services.sessions.sessions.sweep()


CASES = [
    Case("save new", nothing, saves("new"), repeatable=False, contents=("new",)),
    Case("save new by request", nothing, saves("new", request_id="r"), contents=("new",)),
    Case("save new by id", nothing, saves("new", pattern_id="mine")),
    Case("save new by id and request", nothing, saves("new", pattern_id="mine", request_id="r")),
    Case(
        "save again",
        three_patterns,
        saves("one", language="python"),
        repeatable=False,
        contents=("one",),
    ),
    Case(
        "save again by request",
        three_patterns,
        saves("one", language="python", request_id="r"),
        contents=("one",),
    ),
    Case(
        "save a batch",
        three_patterns,
        batch(with_requests=False),
        repeatable=False,
        contents=("one", "b", "c", "d"),
    ),
    Case(
        "save a batch by requests",
        three_patterns,
        batch(with_requests=True),
        contents=("one", "b", "c", "d"),
    ),
    Case("edit the content", three_patterns, updates(task="edited"), contents=("edited", "one")),
    Case("edit the rest", three_patterns, updates(tags=("t",), title="T"), contents=("one",)),
    Case("delete a pattern", three_patterns, deletes_pattern, contents=("one",)),
    Case("outcome", three_patterns, outcomes(""), repeatable=False),
    Case("outcome by request", three_patterns, outcomes("r")),
    Case("outcome on a query", three_patterns, outcomes("", "how"), repeatable=False),
    Case("outcome on a query by request", three_patterns, outcomes("r", "How ")),
    Case("outcome on a new query by request", three_patterns, outcomes("r", "why")),
    Case("outcome that makes cells too many", many_cells, one_outcome("r", "one more")),
    Case("correct an outcome", an_outcome, corrects("", Outcome.FAILURE), repeatable=False),
    Case("correct an outcome by request", an_outcome, corrects("r", Outcome.FAILURE)),
    Case("undo an outcome by request", an_outcome, corrects("r", None)),
    Case("feedback", some_feedback, feedbacks("", helpful=False), repeatable=False),
    Case("feedback by request", some_feedback, feedbacks("r", confidence_adjustment=-0.9)),
    Case("delete a pattern that got feedback", some_feedback, deletes_p2),
    Case("prune", some_feedback, prunes(max_success_rate=0.6, max_remaining=1)),
    Case("set a policy", nothing, sets_policy(max_patterns=3)),
    Case("edit a policy", sets_policy(max_episodes=2), sets_policy(max_patterns=3)),
    Case("sweep by a policy", bounded, sweeps),
    Case("delete an episode", recorded, deletes_episode("e")),
    Case("delete a running episode", recorded, deletes_episode("f")),
    Case(
        "save near",
        three_patterns,
        saves("one", language="python", context="o", dedupe=Dedupe.SEMANTIC, request_id="r"),
        contents=("one",),
    ),
    Case(
        "merge by request",
        alike,
        saves(NEAR.format("nowadays"), dedupe=Dedupe.SEMANTIC, request_id="r"),
    ),
    Case("save a successor", chain, saves("new", supersedes="other", pattern_id="new")),
    Case("save a successor by request", chain, saves("new", supersedes="mid", request_id="r")),
    Case("supersede another", chain, supersedes("mid", "other")),
    Case("supersede no more", chain, supersedes("mid", "")),
    Case("delete a successor", chain, deletes_successor),
    Case("distil", alike, distils),
    Case("distil again", alike_and_more, distils),
    Case("start", nothing, starts(episode_id="e")),
    Case("start by request", nothing, starts(request_id="r")),
    Case("event", running, one_event(""), repeatable=False),
    Case("event by request", running, one_event("r")),
    Case("stream of events", running, streams),
    Case("end", running, ends("")),
    Case("end by request", running, ends("r")),
    Case("record whole", nothing, records(episode_id="e")),
    Case("record whole by request", nothing, records(request_id="r")),
    Case("record whole by id and request", nothing, records(episode_id="e", request_id="r")),
    Case("end that used others", used_by_others, ends_with_use("")),
    Case("end that used others by request", used_by_others, ends_with_use("r")),
    Case("record whole that used others", used_by_others, records_with_use(episode_id="w")),
    Case("record whole that used by request", used_by_others, records_with_use(request_id="r")),
    Case("delete one that used others", used_by_others, deletes_episode("f")),
    Case("delete one that was used", used_by_others, deletes_episode("u")),
    Case("abandon", left, abandons),
    Case("late event", abandoned, one_event(""), repeatable=False),
    Case("late event by request", abandoned, one_event("r")),
    Case("late stream of events", abandoned, streams),
    Case("late end", abandoned, ends("")),
    Case("late end by request", abandoned, ends("r")),
    Case("extract patterns", two_logins, extracts),
    Case("extract patterns again", learned_before, extracts),
    Case("end with a lesson", three_logins, ends_login, contents=("log in",)),
    Case("record with a lesson", two_logins, records_login, contents=("log in",)),
    Case("record with a lesson learned before", saved_before, records_login),
    Case("end a failure with a lesson", failing, ends_failing),
    Case("record with an error overcome", nothing, records_mending, contents=("mend",)),
    Case("extract from code", nothing, extracts_code),
    Case("create a memory", a_memory, creates(memory_id="n")),
    Case("create a memory by request", a_memory, creates(request_id="r")),
    Case("delete a memory", a_memory, deletes_memory),
    Case("select", nothing, selects(""), repeatable=False),
    Case("select by request", nothing, selects("r")),
    Case("steps", chosen_and_decided, steps_of(""), repeatable=False),
    Case("steps by request", chosen_and_decided, steps_of("r")),
    Case("first steps by request", nothing, steps_of("r")),
    Case("decide by id", nothing, decides(decision_id="e")),
    Case("decide by request", nothing, decides(request_id="r")),
    Case("outcome of a decision", chosen_and_decided, comes_of_it("")),
    Case("outcome of a decision by request", chosen_and_decided, comes_of_it("r")),
    Case("delete a decision", chosen_and_decided, deletes_decision),
    Case("learning event by id", nothing, learns(learning_event_id="l")),
    Case("learning event by request", nothing, learns(request_id="r")),
    Case("delete a learning event", learns(learning_event_id="l"), deletes_learning_event),
    Case("feedback", nothing, judges(None), repeatable=False),
    Case("feedback by request", judged_before, judges(None, "r")),
    Case("feedback on a decision", judged_before, judges(TargetKind.DECISION), repeatable=False),
    Case("feedback on a decision by request", judged_before, judges(TargetKind.DECISION, "r")),
    Case("feedback on a selection", judged_before, judges(TargetKind.SELECTION), repeatable=False),
    Case("feedback on a selection by request", judged_before, judges(TargetKind.SELECTION, "r")),
    Case("save an error solution", two_error_solutions, solves("new")),
    Case("save an error solution by id", two_error_solutions, solves("new", error_solution_id="t")),
    Case("save an error solution by request", two_error_solutions, solves("new", request_id="r")),
    Case(
        "save an error solution by id and request",
        two_error_solutions,
        solves("new", error_solution_id="t", request_id="r"),
    ),
    Case(
        "save an error solution again by request",
        two_error_solutions,
        solves("KeyError: 'b'", request_id="r"),
    ),
    Case("delete an error solution", two_error_solutions, deletes_error_solution),
    Case("seed", nothing, seeds()),
    Case("seed the rest", seeded_and_one_deleted, seeds()),
    Case(
        "seed what was deleted",
        seeded_and_one_deleted,
        seeds("common_errors", restore_deleted=True),
    ),
    Case("outcome of an error solution", used_error_solutions, helps(""), repeatable=False),
    Case("outcome of an error solution by request", used_error_solutions, helps("r")),
    Case("first outcome of an error solution by request", two_error_solutions, helps("r")),
    Case("delete a used error solution", used_error_solutions, deletes_error_solution),
    Case("sweep error solutions by a policy", few_error_solutions, sweeps),
    Case("clear memories", a_memory, clearing(ResourceKind.MEMORY), repeatable=False),
    Case("clear patterns", three_patterns, clearing(ResourceKind.PATTERN), repeatable=False),
    Case("put a new preference", nothing, prefers("k", "new")),
    Case("put a new preference by request", nothing, prefers("k", "new", "r")),
    Case("put a preference", two_preferences, prefers("k", ["new"])),
    Case("put a preference by request", two_preferences, prefers("k", ["new"], "r")),
    Case("put the value it has by request", two_preferences, prefers("k", "third", "r")),
    Case("delete a preference", two_preferences, deletes_preference),
    Case("first message", nothing, says("new"), repeatable=False),
    Case("first message by request", nothing, says("new", "r")),
    Case("message", a_session, says("new"), repeatable=False),
    Case("message by request", a_session, says("new", "r")),
    Case("message that narrows the window by request", a_session, says("new", "r", 1)),
    Case("message after a lapse", a_lapsed_session, says("new"), repeatable=False),
    Case("message after a lapse by request", a_lapsed_session, says("new", "r")),
    Case("first value of a session", nothing, puts_session_value),
    Case("value of a session", a_session, puts_session_value),
    Case("value after a lapse", a_lapsed_session, puts_session_value),
    Case("clear a session", a_session, clears_session()),
    Case("clear a value", a_session, clears_session("a", "none")),
    Case("clear values of no importance", a_session, clears_session(max_importance=0.5)),
    Case("clear messages", a_session, clears_session(messages_only=True)),
    Case("clear messages and values", a_session, clears_session("a", "b", messages_only=True)),
    Case("sweep sessions", a_lapsed_session, sweeps_sessions),
    # memories of every kind
    Case("create memories", a_memory, creates_many(with_requests=False), repeatable=False),
    Case("create memories by requests", a_memory, creates_many(with_requests=True)),
    Case("create a memory once", a_memory, creates(unique=True)),
    Case("create a memory once by request", a_memory, creates(unique=True, request_id="r")),
    Case("edit the content of a memory", a_memory, edits_memory(content=LONG)),
    Case("edit the rest of a memory", a_memory, edits_memory(tags=("t",))),
    Case("delete memories", long_memories, deletes_memories),
    Case("import", nothing, imports(Conflict.FAIL), contents=("one",)),
    Case("import beside others", three_patterns, imports(Conflict.SKIP)),
    Case("import over others", a_memory, imports(Conflict.OVERWRITE), contents=("one",)),
]
