from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from lot_grpc.testing.faults import FaultInjectingStore, InjectedFault, When
from lot_grpc.testing.in_memory import InMemoryStore
from tests.contract.clock import FixedClock
from tests.storage.samples import SPEC, sample, sample_id

NAME = SPEC.name
WRITES: dict[str, Callable[[FaultInjectingStore], Awaitable[object]]] = {
    "insert": lambda store: store.insert(NAME, [sample(2)]),
    "put": lambda store: store.put(NAME, [sample(2)]),
    "replace": lambda store: store.replace(NAME, sample(1), ()),
    "update": lambda store: store.update(NAME, "a", sample_id(1), set={"n": 7}),
    "set_vectors": lambda store: store.set_vectors(NAME, [sample(1)]),
    "delete": lambda store: store.delete(NAME, "a", ()),
    "delete_expired": lambda store: store.delete_expired(NAME, limit=9),
}


@pytest.fixture
async def store() -> FaultInjectingStore:
    made = FaultInjectingStore(InMemoryStore(FixedClock()))
    await made.ensure_collections([SPEC])
    await made.put(NAME, [sample(1)])
    return made


@pytest.mark.parametrize("name", WRITES)
async def test_every_write_is_counted_and_can_be_the_last(
    store: FaultInjectingStore, name: str
) -> None:
    await WRITES[name](store)
    assert store.writes == [("put", NAME), (name, NAME)]
    store.fail_at(1)
    with pytest.raises(InjectedFault, match=f"before write 3: {name} {NAME}"):
        await WRITES[name](store)
    assert store.dead


@pytest.mark.parametrize(("when", "written"), [(When.BEFORE, set()), (When.AFTER, {sample_id(3)})])
async def test_the_fatal_write_is_done_or_not_by_the_side_it_died_on(
    store: FaultInjectingStore, when: When, written: set[str]
) -> None:
    store.fail_at(2, when)
    await store.insert(NAME, [sample(2)])
    with pytest.raises(InjectedFault):
        await store.insert(NAME, [sample(3)])
    store.revive()
    assert set(await store.get(NAME, "a", [sample_id(3)])) == written


async def test_a_dead_store_answers_nothing_until_it_is_revived(store: FaultInjectingStore) -> None:
    store.fail_at(1)
    for call in (store.insert(NAME, [sample(2)]), store.count(NAME, "a"), store.check()):
        with pytest.raises(InjectedFault):
            await call
    store.revive()
    assert await store.count(NAME, "a") == 1
    await store.insert(NAME, [sample(2)])
    assert await store.count(NAME, "a") == 2
