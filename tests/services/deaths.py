"""Every state that a process may leave when it dies, each taken from one run of the step.

A death between two writes leaves what the store holds just then. So a step runs once over a store
in memory that keeps a copy before and after each write, and each copy is started from anew.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import pytest

from lot_grpc.ports import VectorStore
from lot_grpc.testing.faults import FaultInjectingStore, When
from lot_grpc.testing.in_memory import InMemoryStore
from tests.contract.clock import FixedClock
from tests.services.invariants import check_invariants
from tests.services.states import state
from tests.services.steps.base import Case
from tests.services.world import NS, World, open_world

LONGER_THAN_ANY_CALL = 15 * 60 + 1

EITHER_SIDE = pytest.mark.parametrize(
    "when", [When.BEFORE, pytest.param(When.AFTER, marks=pytest.mark.exhaustive)]
)
"""Die before a write, or after it: which is before the next, unless writes go at once."""

T = TypeVar("T")


def copied(store: InMemoryStore) -> InMemoryStore:
    """The same records and the same time, to be changed apart. Records are never changed."""
    copy = type(store)(FixedClock(store._clock.now()))
    copy._collections = {
        name: replace(held, records=dict(held.records)) for name, held in store._collections.items()
    }
    return copy


class RecordingStore(FaultInjectingStore):
    """Keeps a copy of a store in memory at every point at which the process may die."""

    inner: InMemoryStore

    def __init__(self, inner: InMemoryStore) -> None:
        super().__init__(inner)
        self._kept: list[InMemoryStore] | None = None

    async def record(self, step: Callable[[], Awaitable[Any]]) -> list[InMemoryStore]:
        """Run the step; the different states it went through, the first and the last included."""
        kept: list[InMemoryStore] = []
        self._kept = kept
        self._keep()
        await step()
        self._keep()
        self._kept = None
        return kept

    def _before(self, operation: str, collection: str) -> tuple[VectorStore, int]:
        self._keep()
        return super()._before(operation, collection)

    def _after(self, number: int) -> None:
        super()._after(number)
        self._keep()

    def _keep(self) -> None:
        kept = self._kept
        if kept is None:
            return
        if not kept or kept[-1]._collections != self.inner._collections:
            kept.append(copied(self.inner))


def restarted(left: InMemoryStore) -> World:
    """A process over a copy of what another one left."""
    store = copied(left)
    assert isinstance(store._clock, FixedClock)
    return World(RecordingStore(store), store._clock, None).another_process()  # type: ignore[arg-type]


async def roll_forward(world: World, ns: str = "") -> None:
    """As at a start; on a shared store once others can no longer be at it."""
    housekeeping = world.services.housekeeping
    await housekeeping.roll_forward(starting=True)
    if not world.store.exclusive:
        world.clock.advance(LONGER_THAN_ANY_CALL)
        await housekeeping.roll_forward()


async def deaths_of(case: Case, kind: type[InMemoryStore]) -> tuple[list[InMemoryStore], Any]:
    """What a death may leave of the operation, and what it comes to without one."""
    clock = FixedClock()
    world = await open_world(RecordingStore(kind(clock)), clock)
    await case.begin(world, NS)
    left = await world.store.record(lambda: case.run(world, NS))
    assert len(left) > 1, "it writes nothing"
    await check_invariants(world.store, NS)
    return left, await state(world.store, NS)


async def retry(world: World, case: Case, expected: Any) -> None:
    """The same call again comes to what one call without a fault comes to."""
    await case.run(world, NS)
    await check_invariants(world.store, NS)
    found = await state(world.store, NS)
    for collection, records in expected.items():
        assert found[collection] == records, collection


def some(states: Sequence[T], most: int, case: Case) -> list[T]:
    """All of them, or as many as are wanted, always the same ones of a case; 0 is all."""
    if not most or len(states) <= most:
        return list(states)
    return random.Random(case.name).sample(states, most)
