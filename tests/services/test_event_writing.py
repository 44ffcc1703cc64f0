"""Group commit: who shares an insert, who is told what, and who is spared."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lot_grpc.domain.errors import StoreUnavailableError
from lot_grpc.ports import CollectionSpec, Record
from lot_grpc.services.episodes.event_writer import EventWriter
from lot_grpc.services.records.collections import EVENTS
from lot_grpc.services.reindex.gate import ModelGate
from lot_grpc.testing.in_memory import InMemoryStore
from tests.contract.clock import FixedClock
from tests.services.world import NS


class Store(InMemoryStore):
    """Notes the inserts; waits in one while ``gate`` is closed, fails where it is told to."""

    def __init__(self) -> None:
        super().__init__(FixedClock())
        self.inserts: list[list[str]] = []
        self.failures: list[Exception | None] = []
        self.gate = asyncio.Event()
        self.gate.set()

    async def insert(self, collection: str, records: Sequence[Record]) -> set[str]:
        assert collection == EVENTS
        self.inserts.append([record.id for record in records])
        failure = self.failures.pop(0) if self.failures else None
        await self.gate.wait()
        if failure is not None:
            raise failure
        return await super().insert(collection, records)

    async def stored(self) -> set[str]:
        return {one.id for one in await self.scroll(EVENTS, NS, [], limit=100_000)}


async def opened() -> tuple[Store, EventWriter]:
    store = Store()
    await store.ensure_collections([CollectionSpec(EVENTS)])
    return store, EventWriter(store)


@pytest.fixture
async def pair() -> tuple[Store, EventWriter]:
    return await opened()


def records(*ids: str, data: str = "") -> list[Record]:
    return [Record(one, NS, {"episode_id": "e", "event": data}) for one in ids]


async def settle() -> None:
    """Let all go on that can."""
    for _ in range(10):
        await asyncio.sleep(0)


def started(writing: EventWriter, *ids: str) -> asyncio.Task[set[str]]:
    return asyncio.create_task(writing.insert(records(*ids)))


async def test_who_comes_at_once_shares_an_insert_and_is_told_its_own(pair):
    store, writing = pair
    told = await asyncio.gather(*(writing.insert(records(f"a{n}", f"b{n}")) for n in range(5)))
    assert told == [{f"a{n}", f"b{n}"} for n in range(5)]
    assert len(store.inserts) == 1
    assert len(await store.stored()) == 10


async def test_who_comes_during_an_insert_shares_the_next(pair):
    store, writing = pair
    store.gate.clear()
    first = started(writing, "a")
    await settle()
    others = [started(writing, name) for name in "bcd"]
    await settle()
    assert store.inserts == [["a"]]
    assert not first.done()
    store.gate.set()
    assert await asyncio.gather(first, *others) == [{"a"}, {"b"}, {"c"}, {"d"}]
    assert store.inserts == [["a"], ["b", "c", "d"]]


async def test_nobody_is_told_before_the_insert_returned(pair):
    store, writing = pair
    store.gate.clear()
    waiting = [started(writing, name) for name in "ab"]
    await settle()
    assert store.inserts == [["a", "b"]]
    assert not any(one.done() for one in waiting)
    store.gate.set()
    assert await asyncio.gather(*waiting) == [{"a"}, {"b"}]


async def test_who_is_alone_waits_for_no_turn(pair):
    store, writing = pair
    insert = writing.insert(records("a"), alone=True)
    with pytest.raises(StopIteration) as done:
        insert.send(None)
    assert done.value.value == {"a"}
    assert await store.stored() == {"a"}


async def test_a_taken_id_is_nobodys_and_of_two_with_one_id_the_first_has_it(pair):
    store, writing = pair
    await writing.insert(records("old"))
    first, second = started(writing, "old", "a"), started(writing, "a", "b")
    assert [await first, await second] == [{"a"}, {"b"}]
    assert await store.stored() == {"old", "a", "b"}


async def test_an_error_is_told_to_all_who_share_it_and_to_nobody_else(pair):
    store, writing = pair
    store.failures = [StoreUnavailableError("away")]
    store.gate.clear()
    both = [started(writing, name) for name in "ab"]
    await settle()
    later = started(writing, "c")
    store.gate.set()
    for one in both:
        with pytest.raises(StoreUnavailableError, match="away"):
            await one
    assert await later == {"c"}
    assert await writing.insert(records("a")) == {"a"}
    assert await store.stored() == {"a", "c"}


async def test_who_leaves_while_it_waits_takes_just_its_own_along(pair):
    store, writing = pair
    store.gate.clear()
    first = started(writing, "a")
    await settle()
    gone, stays = started(writing, "b"), started(writing, "c")
    await settle()
    gone.cancel()
    await settle()
    store.gate.set()
    assert (await first, await stays) == ({"a"}, {"c"})
    assert gone.cancelled()
    assert await store.stored() == {"a", "c"}


async def test_who_leaves_during_the_insert_does_not_hurt_the_others(pair):
    store, writing = pair
    store.gate.clear()
    gone, stays = started(writing, "a"), started(writing, "b")
    await settle()
    gone.cancel()
    await settle()
    assert gone.cancelled()
    assert not stays.done()
    store.gate.set()
    assert await stays == {"b"}


async def test_an_error_after_one_has_left_is_the_others(pair):
    store, writing = pair
    store.failures = [StoreUnavailableError("away")]
    store.gate.clear()
    gone, stays = started(writing, "a"), started(writing, "b")
    await settle()
    gone.cancel()
    await settle()
    store.gate.set()
    with pytest.raises(StoreUnavailableError, match="away"):
        await stays
    assert await writing.insert(records("b")) == {"b"}


async def test_between_two_inserts_others_have_their_turn(pair):
    """Also where the store, as the embedded one, never waits."""
    store, writing = pair
    seen: list[int] = []
    many = [started(writing, *(f"{n}-{m}" for m in range(300))) for n in range(3)]

    async def other() -> None:
        while len(seen) < 20:
            seen.append(len(store.inserts))
            await asyncio.sleep(0)

    await asyncio.gather(*many, other())
    assert {1, 2, 3} <= set(seen)


@pytest.mark.parametrize("calls", [True, False])
async def test_while_calls_run_inserts_wait_once_their_share_is_used(calls, monkeypatch):
    spent = itertools.count()  # each insert takes a second of the loop's time
    monkeypatch.setattr(time, "thread_time", lambda: float(next(spent)))
    gate = ModelGate()
    store = (await opened())[0]
    writing = EventWriter(store, gate)
    async with AsyncExitStack() as inside:
        if calls:
            await inside.enter_async_context(gate.together())
        many = [started(writing, *(f"{n}-{m}" for m in range(300))) for n in range(3)]
        await settle()
        assert len(store.inserts) == (1 if calls else 3)
        for one in many[1:]:
            one.cancel()
        await asyncio.wait(many)
    assert many[0].result() == {f"0-{m}" for m in range(300)}


async def test_an_insert_is_bounded_but_no_append_is_torn(pair):
    store, writing = pair
    ids = [[f"{n}-{m}" for m in range(200)] for n in range(4)]
    large = [f"large-{n}" for n in range(900)]
    appends = [*ids[:3], large, ids[3]]
    told = await asyncio.gather(*(writing.insert(records(*one)) for one in appends))
    assert told == [set(one) for one in appends]
    assert [len(one) for one in store.inserts] == [400, 200, 900, 200]


async def test_an_insert_is_bounded_by_its_data_too(pair):
    store, writing = pair
    data = "x" * (3 * 2**20)
    await asyncio.gather(*(writing.insert(records(name, data=data)) for name in "abc"))
    assert store.inserts == [["a"], ["b"], ["c"]]


async def test_nothing_runs_on_when_nobody_waits(pair):
    store, writing = pair
    before = asyncio.all_tasks()
    await asyncio.gather(*(writing.insert(records(name)) for name in "abc"))
    await settle()
    assert asyncio.all_tasks() == before
    store.gate.clear()
    gone = started(writing, "d")
    await settle()
    gone.cancel()
    store.gate.set()
    await settle()
    assert asyncio.all_tasks() == before


async def test_with_the_task_that_writes_all_end_who_wait_for_it(pair):
    """As when the loop is closed: nobody waits for ever."""
    store, writing = pair
    before = asyncio.all_tasks() | {asyncio.current_task()}
    store.gate.clear()
    first = started(writing, "a")
    await settle()
    second = started(writing, "b")
    await settle()
    [flusher] = asyncio.all_tasks() - before - {first, second}
    flusher.cancel()
    await settle()
    assert first.cancelled()
    assert second.cancelled()
    store.gate.set()
    assert await writing.insert(records("c")) == {"c"}


@given(
    st.lists(
        st.tuples(st.integers(1, 300), st.sampled_from(["stay", "leave", "late"])),
        min_size=1,
        max_size=12,
    )
)
def test_whatever_comes_and_goes_all_who_stay_are_stored_once(appends):
    async def run() -> None:
        store, writing = await opened()
        tasks: list[tuple[set[str], str, asyncio.Task[set[str]]]] = []
        for number, (size, what) in enumerate(appends):
            ids = [f"{number}-{n}" for n in range(size)]
            if what == "late":
                await asyncio.sleep(0)
            task = started(writing, *ids)
            tasks.append((set(ids), what, task))
            if what == "leave":
                await asyncio.sleep(0)
                task.cancel()
        for own, what, task in tasks:
            if what == "leave":
                with pytest.raises(asyncio.CancelledError):
                    await task
            else:
                assert await task == own
        await settle()
        written = [one for insert in store.inserts for one in insert]
        assert len(written) == len(set(written))
        staying: set[str] = set().union(*(own for own, what, _ in tasks if what != "leave"))
        assert staying <= await store.stored()

    asyncio.run(run())
