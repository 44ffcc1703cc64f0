"""Namespaces to clear."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from lot_grpc.domain.change import ResourceKind
from lot_grpc.ports import VectorStore, Where
from lot_grpc.services.forwarding_store import ForwardingStore
from lot_grpc.services.records.collections import TOMBSTONES
from tests.contract.clock import FixedClock
from tests.services.filled import fill
from tests.services.world import NS, World, open_world

OTHER = "other"


class Meeting(ForwardingStore):
    """A store that lets others in before each delete that ``met`` wants to see."""

    def __init__(self, inner: VectorStore) -> None:
        super().__init__(inner)
        self.met: Callable[[str], Awaitable[None]] | None = None
        self.sizes: list[int] = []

    async def delete(
        self, collection: str, namespace: str | None, where: Where, limit: int = 0
    ) -> int:
        if self.met is not None:
            met, self.met = self.met, None
            await met(collection)
            self.met = met
        self.sizes.append(limit)
        return await self._inner.delete(collection, namespace, where, limit)


async def two_filled(store: Any = None, clock: FixedClock | None = None) -> World:
    """A world with all kinds in two namespaces."""
    world = await open_world(store, clock)
    await fill(world, NS)
    await fill(world, OTHER)
    return world


def only_the_mark(found: dict[str, list[Any]]) -> bool:
    """Whether nothing is there but that it was cleared."""
    return list(found) == [TOMBSTONES] and [
        (one.payload["resource_kind"], one.payload["done"]) for one in found[TOMBSTONES]
    ] == [("", True)]


async def met_while_clearing(
    world: World, tried: Callable[[], Awaitable[Any]], resource_kinds: tuple[ResourceKind, ...] = ()
) -> Any:
    """What comes of a call that is made in the midst of a clear."""
    answers: list[Any] = []

    async def meet(collection: str) -> None:
        if not answers:
            answers.append(None)
            try:
                answers[0] = await tried()
            except Exception as error:
                answers[0] = error

    world.store.met = meet
    await world.services.clearing.clearer.clear(NS, resource_kinds)
    world.store.met = None
    return answers[0]
