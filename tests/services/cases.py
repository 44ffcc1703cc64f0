"""Every operation that writes, with its beginning, for the proof that a death leaves no half."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from lot_grpc.domain.cells import CELLS_AT_MOST
from lot_grpc.domain.errors import (
    EpisodeNotFoundError,
    MemoryNotFoundError,
    OutcomeCorrectedError,
    PatternNotFoundError,
)
from lot_grpc.domain.learning_event import TargetKind
from lot_grpc.domain.outcomes import Outcome
from lot_grpc.domain.pattern import PatternContent
from lot_grpc.domain.policy import NamespacePolicy, PolicyEdit
from lot_grpc.domain.query import PatternFilter
from lot_grpc.services.decisions import DecisionOutcomeDraft
from lot_grpc.services.feedback import FeedbackDraft
from lot_grpc.services.outcome_log import CorrectionDraft
from lot_grpc.services.outcomes import OutcomeDraft
from lot_grpc.services.patterns import PatternEdit
from lot_grpc.services.pruning import PruneDraft
from lot_grpc.services.recording import Takeover
from tests.services.world import (
    World,
    decision,
    draft,
    end,
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
    await world.services.saving.save(ns, draft("one", language="python"))
    await world.services.saving.save(ns, draft("two", pattern_id="p2"))
    await world.services.saving.save(ns, draft("three", pattern_id="p3", initial_success_rate=0.4))
    used = OutcomeDraft((await id_of(world, ns, "one"), "p2"), Outcome.FAILURE, query="how")
    await world.services.outcomes.record(ns, used)
    await world.services.outcomes.record(ns, replace(used, outcome=Outcome.PARTIAL))


async def id_of(world: World, ns: str, task: str) -> str:
    """The id of the one pattern with this task."""
    from lot_grpc.services.records.collections import PATTERNS

    found = await world.store.scroll(PATTERNS, ns, [], limit=100)
    (one,) = [r.payload["pattern_id"] for r in found if r.payload["task"] == task]
    return str(one)


async def running(world: World, ns: str) -> None:
    await world.services.episodes.start(ns, start(episode_id="e"))
    for n in range(2):
        await world.services.recording.record_event(ns, "e", event(text=f"before {n}"), "")


async def a_memory(world: World, ns: str) -> None:
    await world.services.memories.create(ns, memory("first", memory_id="m"))


def saves(*given: Any, **named: Any) -> Step:
    async def run(world: World, ns: str) -> Any:
        return await world.services.saving.save(ns, draft(*given, **named))

    return run


def batch(with_requests: bool) -> Step:
    tasks = ("one", "b", "c", "b", "d")  # one that is there, and one twice

    async def run(world: World, ns: str) -> Any:
        return await world.services.saving.save_many(
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
        return await world.services.patterns.update(ns, one, wanted, "")

    return run


async def deletes_pattern(world: World, ns: str) -> None:
    from lot_grpc.services.records.collections import PATTERNS

    found = await world.store.scroll(PATTERNS, ns, [], limit=100)
    for one in [r.payload["pattern_id"] for r in found if r.payload["task"] == "one"]:
        with suppress(PatternNotFoundError):
            await world.services.patterns.delete(ns, one, "")


async def deletes_memory(world: World, ns: str) -> None:
    with suppress(MemoryNotFoundError):
        await world.services.memories.delete(ns, "m", "")


def outcomes(request_id: str, query: str = "") -> Step:
    async def run(world: World, ns: str) -> Any:
        ids = (await id_of(world, ns, "one"), "p2", "p3")
        given = OutcomeDraft(ids, Outcome.SUCCESS, query=query, duration=2.0, request_id=request_id)
        return await world.services.outcomes.record(ns, given)

    return run


def one_outcome(request_id: str, query: str) -> Step:
    async def run(world: World, ns: str) -> Any:
        given = OutcomeDraft(("p2",), Outcome.SUCCESS, query=query, request_id=request_id)
        return await world.services.outcomes.record(ns, given)

    return run


def feedbacks(request_id: str, **said: Any) -> Step:
    async def run(world: World, ns: str) -> Any:
        given = FeedbackDraft("p2", request_id=request_id, **said)
        return await world.services.feedback.give(ns, given)

    return run


async def many_cells(world: World, ns: str) -> None:
    """``p2`` used on as many queries as it may have cells."""
    await three_patterns(world, ns)
    for n in range(CELLS_AT_MOST - 1):  # "how" is one
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
            return await world.services.outcome_log.correct(ns, given)

    return run


async def some_feedback(world: World, ns: str) -> None:
    """Three patterns; ``p2`` was found helpful twice."""
    await three_patterns(world, ns)
    for text in ("first", "second"):
        await world.services.feedback.give(ns, FeedbackDraft("p2", helpful=True, text=text))


async def deletes_p2(world: World, ns: str) -> None:
    with suppress(PatternNotFoundError):
        await world.services.patterns.delete(ns, "p2", "")


def starts(**named: Any) -> Step:
    async def run(world: World, ns: str) -> Any:
        return await world.services.episodes.start(ns, start(**named))

    return run


def one_event(request_id: str) -> Step:
    async def run(world: World, ns: str) -> Any:
        return await world.services.recording.record_event(ns, "e", event(text="x"), request_id)

    return run


async def streams(world: World, ns: str) -> None:
    """A client's stream: opens, is told what is stored, and sends the rest."""
    recording = world.services.recording
    writer = await recording.open(ns, "e", Takeover.TAKE_OVER)
    try:
        await recording.append(writer, [event(1, "before 0"), event(2, "before 1"), *events(3, 6)])
        await recording.append(writer, events(5, 9))
    finally:
        recording.close(writer)


def ends(request_id: str) -> Step:
    async def run(world: World, ns: str) -> Any:
        return await world.services.episodes.end(ns, "e", end(summary="done"), request_id)

    return run


async def recorded(world: World, ns: str) -> None:
    """``e`` is ended and has five events, ``f`` still runs and has two."""
    await world.services.episodes.record(ns, whole(5, episode_id="e"))
    await world.services.episodes.start(ns, start(episode_id="f"))
    for n in range(2):
        await world.services.recording.record_event(ns, "f", event(text=f"event {n}"), "")


def deletes_episode(episode_id: str) -> Step:
    async def run(world: World, ns: str) -> None:
        with suppress(EpisodeNotFoundError):
            await world.services.episode_deleting.delete(ns, episode_id)

    return run


def prunes(**named: Any) -> Step:
    async def run(world: World, ns: str) -> Any:
        return await world.services.pruning.prune(ns, PruneDraft(PatternFilter(), **named))

    return run


def sets_policy(**named: Any) -> Step:
    async def run(world: World, ns: str) -> Any:
        edit = PolicyEdit(NamespacePolicy(**named), frozenset(named))
        return await world.services.policies.update(ns, edit, "")

    return run


async def bounded(world: World, ns: str) -> None:
    """More of everything than the policy allows."""
    await three_patterns(world, ns)
    await a_memory(world, ns)
    await world.services.memories.create(ns, memory("second", memory_id="n"))
    await recorded(world, ns)
    await world.services.episodes.record(ns, whole(3, episode_id="g"))
    await sets_policy(max_patterns=1, max_memories=1, max_episodes=1)(world, ns)


async def sweeps(world: World, ns: str) -> None:
    await world.services.keeping.sweep()


def records(**named: Any) -> Step:
    async def run(world: World, ns: str) -> Any:
        return await world.services.episodes.record(ns, whole(5, **named))

    return run


def creates(**named: Any) -> Step:
    async def run(world: World, ns: str) -> Any:
        return await world.services.memories.create(ns, memory("new", **named))

    return run


async def chosen_and_decided(world: World, ns: str) -> None:
    """Decision ``d`` and one reward of ``a``; the selection of ``a`` is found by its request."""
    await world.services.decisions.record(ns, decision(decision_id="d"))
    await world.services.recording_steps.record(ns, steps(("a", 1.0), ("b", 0.5)))
    await selection_of(world, ns)


async def selection_of(world: World, ns: str) -> str:
    chosen = await world.services.selections.select(ns, select("a", seed=1, request_id="chosen"))
    return chosen.selection_id


def selects(request_id: str) -> Step:
    async def run(world: World, ns: str) -> Any:
        return await world.services.selections.select(
            ns, select("x", "y", seed=1, request_id=request_id)
        )

    return run


def steps_of(request_id: str) -> Step:
    async def run(world: World, ns: str) -> Any:
        given = steps(("a", 0.5), ("b", -1.0), ("a", 1.0), request_id=request_id)
        return await world.services.recording_steps.record(ns, given)

    return run


def decides(**named: Any) -> Step:
    async def run(world: World, ns: str) -> Any:
        return await world.services.decisions.record(ns, decision("Which port?", **named))

    return run


def comes_of_it(request_id: str) -> Step:
    async def run(world: World, ns: str) -> Any:
        given = DecisionOutcomeDraft("d", Outcome.SUCCESS, 0.5, "fine", request_id)
        return await world.services.decisions.record_outcome(ns, given)

    return run


def learns(**named: Any) -> Step:
    async def run(world: World, ns: str) -> Any:
        return await world.services.learning_events.record(ns, learning_event(text="x", **named))

    return run


def judges(kind: TargetKind | None, request_id: str = "") -> Step:
    """Praise that is a preference as well."""

    async def run(world: World, ns: str) -> Any:
        target = await selection_of(world, ns) if kind is TargetKind.SELECTION else "d"
        given = judgement(kind, target, text="Perfect, thanks!", task="t", request_id=request_id)
        return await world.services.submitting_feedback.submit(ns, given)

    return run


async def judged_before(world: World, ns: str) -> None:
    await chosen_and_decided(world, ns)
    await judges(None)(world, ns)


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
    Case("prune", some_feedback, prunes(max_success_rate=0.6, keep_at_most=1)),
    Case("set a policy", nothing, sets_policy(max_patterns=3)),
    Case("edit a policy", sets_policy(max_episodes=2), sets_policy(max_patterns=3)),
    Case("sweep by a policy", bounded, sweeps),
    Case("delete an episode", recorded, deletes_episode("e")),
    Case("delete a running episode", recorded, deletes_episode("f")),
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
    Case("learning event by id", nothing, learns(learning_event_id="l")),
    Case("learning event by request", nothing, learns(request_id="r")),
    Case("feedback", nothing, judges(None), repeatable=False),
    Case("feedback by request", judged_before, judges(None, "r")),
    Case("feedback on a decision", judged_before, judges(TargetKind.DECISION), repeatable=False),
    Case("feedback on a decision by request", judged_before, judges(TargetKind.DECISION, "r")),
    Case("feedback on a selection", judged_before, judges(TargetKind.SELECTION), repeatable=False),
    Case("feedback on a selection by request", judged_before, judges(TargetKind.SELECTION, "r")),
]
