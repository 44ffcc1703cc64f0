"""Steps with decisions, actions, learning events and feedback in words."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from lot_grpc.domain.errors import DecisionNotFoundError, LearningEventNotFoundError
from lot_grpc.domain.learning_event import TargetKind
from lot_grpc.domain.outcomes import Outcome
from lot_grpc.services.learning.decisions import DecisionOutcomeDraft
from tests.services.steps.base import Step
from tests.services.world import World, decision, judgement, learning_event, select, steps


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


def steps_of(request_id: str) -> Step:
    async def run(world: World, ns: str) -> Any:
        given = steps(("a", 0.5), ("b", -1.0), ("a", 1.0), request_id=request_id)
        return await world.services.learning.step_recorder.record(ns, given)

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
