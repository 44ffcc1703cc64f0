"""Steps with outcomes of every kind at once."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from lot_grpc.domain.errors import OutcomeCorrectedError
from lot_grpc.domain.ids import ResourceRef
from lot_grpc.domain.outcomes import Outcome
from lot_grpc.domain.retrieval import RetrievalMethod, RetrievalOptions, RetrievedItem
from lot_grpc.services.outcomes.outcome_log import CorrectionDraft
from lot_grpc.services.outcomes.outcomes import OutcomeDraft
from lot_grpc.services.records.collections import OUTCOMES, RETRIEVALS
from tests.services.steps.base import Step
from tests.services.world import World, draft, end, error_solution, memory, start

NAMED: dict[str, Any] = {
    "pattern_ids": ("x",),
    "memory_ids": ("m",),
    "episode_ids": ("e",),
    "error_solution_ids": ("s",),
}


async def one_of_each(world: World, ns: str) -> None:
    """A pattern, a memory, an ended episode and an error solution, each used once."""
    services = world.services
    await services.patterns.writer.save(ns, draft("one", pattern_id="x"))
    await services.memories.memories.create(ns, memory("first", memory_id="m"))
    await services.episodes.creator.start(ns, start("one", "e"))
    await services.episodes.ender.end(ns, "e", end(), "")
    await services.errors.solutions.save(ns, error_solution(error_solution_id="s"))
    await uses("", "how", Outcome.FAILURE)(world, ns)


def uses(request_id: str, query: str = "", outcome: Outcome = Outcome.SUCCESS) -> Step:
    """One outcome of all of them."""

    async def run(world: World, ns: str) -> Any:
        given = OutcomeDraft(
            outcome=outcome, query=query, duration=2.0, request_id=request_id, **NAMED
        )
        return await world.services.outcomes.recorder.record(ns, given)

    return run


def undoes(request_id: str, instead: Outcome | None) -> Step:
    """Corrects the outcome that ``one_of_each`` recorded."""

    async def run(world: World, ns: str) -> Any:
        rows = await world.store.scroll(OUTCOMES, ns, [], limit=100)
        first = min(rows, key=lambda row: (row.payload["create_time"], row.payload["sort_key"]))
        root = first.payload.get("root") or first.payload["outcome_id"]
        given = CorrectionDraft(root, instead, request_id=request_id)
        with suppress(OutcomeCorrectedError):
            return await world.services.outcomes.log.correct(ns, given)

    return run


async def a_retrieval(world: World, ns: str) -> None:
    """The same, and a recall that is stored."""
    await one_of_each(world, ns)
    retrievals = world.services.runtime.retrievals
    begun = await retrievals.begin(ns)
    items = [RetrievedItem(ResourceRef("memory", "m"))]
    method = RetrievalMethod.GET_TASK_CONTEXT
    retrievals.remember(begun, method, "how", [1.0] * 64, items, RetrievalOptions())
    await retrievals.flush()


def uses_nothing(request_id: str) -> Step:
    async def run(world: World, ns: str) -> Any:
        [row] = await world.store.scroll(RETRIEVALS, ns, [], limit=2)
        given = OutcomeDraft(
            (), Outcome.FAILURE, retrieval_id=row.payload["retrieval_id"], request_id=request_id
        )
        return await world.services.outcomes.recorder.record(ns, given)

    return run
