"""Steps with patterns."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import Any

from lot_grpc.domain.context_stats import MAX_CONTEXT_STATS
from lot_grpc.domain.errors import OutcomeCorrectedError, PatternNotFoundError
from lot_grpc.domain.outcomes import Outcome
from lot_grpc.domain.pattern import PatternContent
from lot_grpc.domain.query import PatternFilter
from lot_grpc.services.distillation.distiller import DistillRequest
from lot_grpc.services.extraction.code_extraction import CodeDraft
from lot_grpc.services.outcomes.outcome_log import CorrectionDraft
from lot_grpc.services.outcomes.outcomes import OutcomeDraft
from lot_grpc.services.patterns.feedback import FeedbackDraft
from lot_grpc.services.patterns.patterns import PatternEdit
from lot_grpc.services.patterns.pruner import PruneDraft
from tests.services.steps.base import Step
from tests.services.world import World, draft


async def three_patterns(world: World, ns: str) -> None:
    """``p1`` saved by content, used twice; ``p2`` and ``p3`` by id."""
    await world.services.patterns.writer.save(ns, draft("one", language="python"))
    await world.services.patterns.writer.save(ns, draft("two", pattern_id="p2"))
    await world.services.patterns.writer.save(
        ns, draft("three", pattern_id="p3", initial_success_rate=0.4)
    )
    used = OutcomeDraft((await id_of(world, ns, "one"), "p2"), Outcome.FAILURE, query="how")
    await world.services.outcomes.recorder.record(ns, used)
    await world.services.outcomes.recorder.record(ns, replace(used, outcome=Outcome.PARTIAL))


async def id_of(world: World, ns: str, task: str) -> str:
    """The id of the one pattern with this task."""
    from lot_grpc.services.records.collections import PATTERNS

    found = await world.store.scroll(PATTERNS, ns, [], limit=100)
    (one,) = [r.payload["pattern_id"] for r in found if r.payload["task"] == task]
    return str(one)


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
        await world.services.outcomes.recorder.record(
            ns, OutcomeDraft(("a0", "b1"), outcome, duration=1.0)
        )


async def alike_and_more(world: World, ns: str) -> None:
    """The groups are made, and there is one more pattern for one of them."""
    await alike(world, ns)
    await distils(world, ns)
    await world.services.patterns.writer.save(ns, draft(NEAR.format("then"), pattern_id="a9"))


async def distils(world: World, ns: str) -> Any:
    return await world.services.distillation.distiller.distil(ns, DistillRequest(similarity=0.92))


def outcomes(request_id: str, query: str = "") -> Step:
    async def run(world: World, ns: str) -> Any:
        ids = (await id_of(world, ns, "one"), "p2", "p3")
        given = OutcomeDraft(ids, Outcome.SUCCESS, query=query, duration=2.0, request_id=request_id)
        return await world.services.outcomes.recorder.record(ns, given)

    return run


def one_outcome(request_id: str, query: str) -> Step:
    async def run(world: World, ns: str) -> Any:
        given = OutcomeDraft(("p2",), Outcome.SUCCESS, query=query, request_id=request_id)
        return await world.services.outcomes.recorder.record(ns, given)

    return run


def outcomes_at_once(request_id: str) -> Step:
    """Of several callers at the same time: of the same pattern and of others, on two queries.

    Those of one pattern are alike, since a death may change their order, and that moves the rate.
    """

    async def run(world: World, ns: str) -> Any:
        one = await id_of(world, ns, "one")
        given = [
            OutcomeDraft(ids, kind, query=query, request_id=f"{request_id}{number}")
            for number, (ids, kind, query) in enumerate(
                [
                    ((one,), Outcome.SUCCESS, "how"),
                    ((one, "p2"), Outcome.SUCCESS, "why"),
                    (("p2",), Outcome.SUCCESS, "How "),
                    (("p3",), Outcome.PARTIAL, ""),
                    ((one,), Outcome.SUCCESS, "why"),
                ]
            )
        ]
        record = world.services.outcomes.recorder.record
        results = await asyncio.gather(
            *(record(ns, each) for each in given), return_exceptions=True
        )
        for result in results:
            if isinstance(result, BaseException):
                raise result

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
            return await world.services.outcomes.log.correct(ns, given)

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


def prunes(**named: Any) -> Step:
    async def run(world: World, ns: str) -> Any:
        return await world.services.patterns.pruner.prune(ns, PruneDraft(PatternFilter(), **named))

    return run


def extracts_code(world: World, ns: str) -> Any:
    code = "class A:\n  def f(self): h()\n  async def g(self): await h()\n"
    return world.services.extraction.code.extract(ns, CodeDraft(code, "python"))
