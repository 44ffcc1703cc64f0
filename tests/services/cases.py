"""Every operation that writes, with its beginning, for the proof that a death leaves no half."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from lot_grpc.domain.errors import MemoryNotFoundError, PatternNotFoundError
from lot_grpc.domain.outcomes import Outcome
from lot_grpc.domain.pattern import PatternContent
from lot_grpc.services.distilling import DistillAsk
from lot_grpc.services.drafts import Dedupe
from lot_grpc.services.outcomes import OutcomeDraft
from lot_grpc.services.patterns import PatternEdit
from lot_grpc.services.recording import Takeover
from tests.services.world import World, draft, end, event, events, memory, start, whole

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
    used = OutcomeDraft((await id_of(world, ns, "one"), "p2"), Outcome.FAILURE)
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


async def chain(world: World, ns: str) -> None:
    """``old``, which ``mid`` supersedes, and ``other``."""
    await world.services.saving.save(ns, draft("old", pattern_id="old"))
    await world.services.saving.save(ns, draft("other", pattern_id="other"))
    await world.services.saving.save(ns, draft("mid", pattern_id="mid", supersedes="old"))


def supersedes(pattern_id: str, superseded: str) -> Step:
    async def run(world: World, ns: str) -> Any:
        wanted = PatternEdit(PatternContent("", supersedes=superseded), frozenset({"supersedes"}))
        return await world.services.patterns.update(ns, pattern_id, wanted, "")

    return run


async def deletes_successor(world: World, ns: str) -> None:
    with suppress(PatternNotFoundError):
        await world.services.patterns.delete(ns, "mid", "")


NEAR = "Log in to the shop as the user and open the list of all orders {}"


async def alike(world: World, ns: str) -> None:
    """Eight patterns of two groups that are alike, and used ones among them."""
    for n, word in enumerate(("now", "today", "again", "soon")):
        await world.services.saving.save(ns, draft(NEAR.format(word), pattern_id=f"a{n}"))
        text = f"{NEAR} of {word} customers".format("and invoices")
        await world.services.saving.save(ns, draft(text, pattern_id=f"b{n}"))
    for outcome in (Outcome.SUCCESS, Outcome.PARTIAL):
        await world.services.outcomes.record(ns, OutcomeDraft(("a0", "b1"), outcome, duration=1.0))


async def alike_and_more(world: World, ns: str) -> None:
    """The groups are made, and there is one more pattern for one of them."""
    await alike(world, ns)
    await distils(world, ns)
    await world.services.saving.save(ns, draft(NEAR.format("then"), pattern_id="a9"))


async def distils(world: World, ns: str) -> Any:
    return await world.services.distilling.distil(ns, DistillAsk(similarity=0.92))


async def deletes_memory(world: World, ns: str) -> None:
    with suppress(MemoryNotFoundError):
        await world.services.memories.delete(ns, "m", "")


def outcomes(request_id: str) -> Step:
    async def run(world: World, ns: str) -> Any:
        ids = (await id_of(world, ns, "one"), "p2", "p3")
        given = OutcomeDraft(ids, Outcome.SUCCESS, duration=2.0, request_id=request_id)
        return await world.services.outcomes.record(ns, given)

    return run


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


def records(**named: Any) -> Step:
    async def run(world: World, ns: str) -> Any:
        return await world.services.episodes.record(ns, whole(5, **named))

    return run


def creates(**named: Any) -> Step:
    async def run(world: World, ns: str) -> Any:
        return await world.services.memories.create(ns, memory("new", **named))

    return run


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
    Case("create a memory", a_memory, creates(memory_id="n")),
    Case("create a memory by request", a_memory, creates(request_id="r")),
    Case("delete a memory", a_memory, deletes_memory),
]
