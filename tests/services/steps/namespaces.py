"""Steps with whole namespaces: policies, seeds, clears, imports."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.policy import NamespacePolicy, PolicyEdit
from lot_grpc.domain.transfer import ExportSpec, ImportConflictPolicy, ImportTerms
from lot_grpc.services.seeder import Seeds
from lot_grpc.services.transfer.importer import ImportRun
from lot_grpc.services.transfer.rows import Row
from tests.services.steps.base import Step
from tests.services.steps.episodes import recorded
from tests.services.steps.memories import a_memory, used_error_solutions
from tests.services.steps.patterns import three_patterns
from tests.services.world import World, decision, draft, error_solution, memory, start, whole


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


async def seeded_and_one_deleted(world: World, ns: str) -> None:
    """The common errors, one of which was deleted since."""
    await world.services.seeder.seed(ns, Seeds(("common_errors",)))
    await world.services.errors.solutions.delete(ns, "seed:common_errors:nil_pointer.go")


def seeds(*packs: str, restore_deleted: bool = False) -> Step:
    async def run(world: World, ns: str) -> Any:
        wanted = Seeds(packs, restore_deleted=restore_deleted)
        return await world.services.seeder.seed(ns, wanted)

    return run


def clearing(*resource_kinds: ResourceKind) -> Step:
    async def run(world: World, ns: str) -> Any:
        return await world.services.clearing.clearer.clear(ns, resource_kinds)

    return run


async def few_error_solutions(world: World, ns: str) -> None:
    """One used solution more than the policy allows."""
    await used_error_solutions(world, ns)
    await sets_policy(max_error_solutions=1)(world, ns)


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


def imports(conflict: ImportConflictPolicy) -> Step:
    """Rows that are the same each time."""
    known: dict[str, list[Row]] = {}

    async def run(world: World, ns: str) -> None:
        if ns not in known:
            known[ns] = await exported_elsewhere(world, ns)
        run_ = ImportRun(ImportTerms(conflict))
        await world.services.transfer.importer.take(run_, known[ns])

    return run
