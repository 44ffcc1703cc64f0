"""Records kept decoded are the records in the store, whatever is written in between."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from lot_grpc.ports import Equals, Record
from lot_grpc.storage.edge import EdgeStore
from lot_grpc.storage.recent import RecentRecords
from tests.contract.clock import FixedClock
from tests.storage.samples import SPEC, sample, sample_id

NAME = SPEC.name
ONE = sample_id(1)
OTHER = Record(ONE, "a", {"n": 2, "list": ["x"]}, {"text": [0.0, 1.0, 0.0, 0.0]})

WRITES: dict[str, Callable[[EdgeStore], Awaitable[Any]]] = {
    "put": lambda store: store.put(NAME, [OTHER]),
    "replace": lambda store: store.replace(NAME, OTHER, ()),
    "update": lambda store: store.update(NAME, "a", ONE, set={"n": 3, "s": "t", "l": ["u", "v"]}),
    "update with odd values": lambda store: store.update(
        NAME, "a", ONE, set={"d": {"k": [1, None]}, "t": ("u", "v")}
    ),
    "update twice": lambda store: _twice(store),
    "remove a key": lambda store: store.update(NAME, "a", ONE, set={"m": 4}, unset=["n"]),
    "update that loses": lambda store: store.update(
        NAME, "a", ONE, set={"n": 9}, when=[Equals("n", 8)]
    ),
    "delete": lambda store: store.delete(NAME, "a", [Equals("n", 1)]),
}


async def _twice(store: EdgeStore) -> None:
    await store.update(NAME, "a", ONE, set={"n": 5}, when=[Equals("n", 1)])
    await store.update(NAME, "a", ONE, set={"m": 6}, when=[Equals("n", 5)])


@pytest.mark.parametrize("name", WRITES)
async def test_a_read_before_a_write_does_not_show_after_it(store: EdgeStore, name: str) -> None:
    await store.insert(NAME, [sample(1)])
    assert (await store.get(NAME, "a", [ONE]))[ONE].payload == {"n": 1}
    await WRITES[name](store)
    shown = await store.get(NAME, "a", [ONE])
    there = await store.scroll(NAME, "a", (), limit=9)
    assert list(shown.values()) == there
    assert (await store.get(NAME, "a", [ONE], vectors=True)).keys() == shown.keys()


async def test_an_expired_record_that_was_read_is_absent(
    store: EdgeStore, clock: FixedClock
) -> None:
    record = Record(ONE, "a", {"n": 1, "expires": clock.now() + 10})
    await store.insert(NAME, [record])
    assert await store.get(NAME, "a", [ONE])
    clock.advance(0.00001)
    assert not await store.get(NAME, "a", [ONE])
    assert await store.insert(NAME, [sample(1)]) == {ONE}
    assert (await store.get(NAME, "a", [ONE]))[ONE].payload == {"n": 1}


async def test_a_record_that_was_read_stays_in_its_namespace(store: EdgeStore) -> None:
    await store.insert(NAME, [sample(1)])
    assert await store.get(NAME, "a", [ONE])
    assert not await store.get(NAME, "b", [ONE])
    assert not await store.update(NAME, "b", ONE, set={"n": 7})


async def test_who_changes_what_was_read_changes_nothing(store: EdgeStore) -> None:
    await store.insert(NAME, [sample(1)])
    for _ in range(3):
        read = (await store.get(NAME, "a", [ONE]))[ONE]
        assert read.payload == {"n": 1}
        read.payload["n"] = 99


def test_the_oldest_and_the_large_are_not_kept() -> None:
    recent = RecentRecords(2)
    for number in range(3):
        recent.keep(Record(f"{number}", "a", {"n": number}))
        recent.get("0")
    assert [number for number in range(3) if recent.get(f"{number}")] == [0, 2]
    recent.keep(Record("3", "a", {"text": "x" * 9000}))
    assert recent.get("3") is None
    assert RecentRecords(0).get("0") is None
