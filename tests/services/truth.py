"""Memories that supersede each other or are true for a time, and what is found of them."""

from __future__ import annotations

from typing import Any

from lot_grpc.domain.memory import Memory, MemoryContent
from lot_grpc.domain.query import MemoryFilter
from lot_grpc.services.memories.drafts import MemoryEdit
from lot_grpc.services.recall.targets import RecallOptions, memory_request
from tests.services.world import MINUTE, NS, World, memory

SECOND = 1_000_000
TTL = MINUTE * SECOND


async def create(world: World, name: str, **named: Any) -> Memory:
    """A memory whose id is its content's last word."""
    named = {"memory_id": name, **named}
    return (
        await world.services.memories.memories.create(NS, memory(f"fact {name}", **named))
    ).memory


async def edit(world: World, memory_id: str, **changes: Any) -> None:
    wanted = MemoryEdit(MemoryContent(**{"content": "", **changes}), frozenset(changes))
    await world.services.memories.memories.update(NS, memory_id, wanted, "")


async def get(world: World, memory_id: str) -> Memory:
    return await world.services.memories.memories.get(NS, memory_id)


async def listed(world: World, **named: Any) -> set[str]:
    read = world.services.memories.memories.list_page
    return {one.memory_id for one in (await read(NS, MemoryFilter(**named), 100, None)).items}


async def marks(world: World) -> dict[str, str]:
    read = world.services.memories.memories.list_page
    found = (await read(NS, MemoryFilter(superseded=True), 100, None)).items
    return {one.memory_id: one.superseded_by for one in found}


async def found(world: World, as_of: int | None = None, **named: Any) -> set[str]:
    criteria, services = MemoryFilter(**named), world.services
    true = await services.recall.validity.conditions(NS, criteria, as_of)
    request = memory_request(RecallOptions("fact", 20), criteria, true)
    hits = (await services.recall.memories.find(NS, request)).hits
    return {hit.thing.memory_id for hit in hits}


async def three(world: World) -> None:
    """``a``, which ``b`` supersedes, which ``c`` supersedes."""
    await create(world, "a")
    await create(world, "b", supersedes="a")
    await create(world, "c", supersedes="b")
