"""Steps with reviews: what models write is held back until it is approved."""

from __future__ import annotations

from typing import Any

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.origin import BY_SERVER, Origin, OriginKind, ReviewState
from lot_grpc.domain.pattern import PatternContent
from lot_grpc.domain.policy import NamespacePolicy, PolicyEdit
from lot_grpc.services.patterns.patterns import PatternEdit
from lot_grpc.services.reviews import ReviewDraft, ReviewItem
from tests.services.steps.base import Step
from tests.services.world import World, draft, error_solution, memory

MODEL = Origin(OriginKind.MODEL, "m1")
HELD = (OriginKind.MODEL, BY_SERVER.kind)


async def reviews_models(world: World, ns: str) -> None:
    """The policy: what models write and what is extracted is to be reviewed."""
    edit = PolicyEdit(NamespacePolicy(review_origins=HELD), frozenset({"review_origins"}))
    await world.services.retention.policies.update(ns, edit, "")


async def writes(world: World, ns: str, kind: ResourceKind, origin: Origin = MODEL) -> None:
    """One record of a kind, under its id in ``IDS``."""
    services, record_id = world.services, IDS[kind]
    if kind is ResourceKind.PATTERN:
        given = draft("how it is done", pattern_id=record_id, supersedes="old", origin=origin)
        await services.patterns.writer.save(ns, given)
    elif kind is ResourceKind.MEMORY:
        await services.memories.memories.create(ns, memory(memory_id=record_id, origin=origin))
    else:
        solution = error_solution(error_solution_id=record_id, origin=origin)
        await services.errors.solutions.save(ns, solution)


async def held_back(world: World, ns: str) -> None:
    """A pattern ``old``, and by a model its successor ``new``, a memory and an error solution."""
    await reviews_models(world, ns)
    await world.services.patterns.writer.save(ns, draft("how it was done", pattern_id="old"))
    for kind in IDS:
        await writes(world, ns, kind)


IDS = {ResourceKind.PATTERN: "new", ResourceKind.MEMORY: "m", ResourceKind.ERROR_SOLUTION: "s"}


def reviews(kind: ResourceKind, state: ReviewState = ReviewState.APPROVED, note: str = "") -> Step:
    async def run(world: World, ns: str) -> Any:
        given = ReviewDraft(kind, (ReviewItem(IDS[kind]),), state, note)
        return await world.services.reviewer.review(ns, given)

    return run


async def approved(world: World, ns: str) -> None:
    """The same, and all of it is approved."""
    await held_back(world, ns)
    for kind in IDS:
        await reviews(kind)(world, ns)


async def rewrites_successor(world: World, ns: str) -> Any:
    """The model writes the approved successor anew, which is then to be reviewed again."""
    edit = PatternEdit(PatternContent("how it is done now"), frozenset({"task"}))
    return await world.services.patterns.patterns.update(ns, "new", edit, "")


def saves_as_model(**named: Any) -> Step:
    async def run(world: World, ns: str) -> Any:
        given = draft("new", origin=MODEL, **named)
        return await world.services.patterns.writer.save(ns, given)

    return run
