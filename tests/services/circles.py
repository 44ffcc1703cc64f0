"""Writers that let records supersede each other in a circle, for every kind that can."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from lot_grpc.domain.errors import RequestInvalidError
from tests.contract.clock import FixedClock
from tests.services.invariants import check_invariants
from tests.services.world import NS, Interleaving, SharedStore, World, open_world


async def check_closing_a_circle_at_once(
    seed: int,
    create: Callable[[World, str], Awaitable[object]],
    supersede: Callable[[World, str, str], Awaitable[None]],
    supersedes: Callable[[World, str], Awaitable[str]],
) -> None:
    """Of three writers at least one is refused, and no circle is left.

    ``supersedes`` is the id that a record's content says it supersedes.
    """
    clock = FixedClock()
    world = await open_world(SharedStore(clock), clock)
    names = ("a", "b", "c")
    for name in names:
        await create(world, name)
    store = Interleaving(world.store, seed)
    worlds = [World(store, world.clock, world.services).another_process() for _ in names]
    pairs = [("a", "b"), ("b", "c"), ("c", "a")]
    results = await asyncio.gather(
        *(supersede(w, *pair) for w, pair in zip(worlds, pairs, strict=True)),
        return_exceptions=True,
    )
    failed = [one for one in results if one is not None]
    assert failed
    assert all(isinstance(one, RequestInvalidError) for one in failed)
    await check_invariants(world.store, NS)
    for name in names:
        one, chain = name, list[str]()
        while one and one not in chain:
            chain.append(one)
            one = await supersedes(world, one)
        assert not one, "a circle"
