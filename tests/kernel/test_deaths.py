"""The proof of each mechanism: dying at any write, and twice in a row, leaves nothing half.

On a store of its own a process is started again; on a shared one another process goes on at once,
or is at the same thing at the same time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from lot_grpc.ports import VectorStore
from lot_grpc.storage.edge import EdgeStore
from lot_grpc.storage.qdrant import QdrantStore
from lot_grpc.testing.faults import FaultInjectingStore, InjectedFault, When
from lot_grpc.testing.in_memory import InMemoryStore
from tests.contract.clock import FixedClock
from tests.kernel.mechanisms import MECHANISMS, SPECS, Mechanism, Process, applies
from tests.services.deaths import RecordingStore, copied
from tests.services.world import Interleaving, SharedStore

KINDS = pytest.mark.parametrize("kind", [InMemoryStore, SharedStore], ids=["own", "shared"])
EACH = pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)


def started(left: InMemoryStore) -> Process:
    """A process over a copy of what another one left."""
    store = copied(left)
    assert isinstance(store._clock, FixedClock)
    store._clock.advance(1)
    return Process(RecordingStore(store), store._clock)


async def recorded(process: Process, step: Callable[[Process], Awaitable[Any]]) -> Any:
    """Every state that a death in a step may leave."""
    assert isinstance(process.store, RecordingStore)
    return await process.store.record(lambda: step(process))


async def deaths_of(
    mechanism: Mechanism, kind: type[InMemoryStore]
) -> tuple[list[InMemoryStore], Any]:
    """What a death may leave of the step, and what it comes to without one."""
    clock = FixedClock()
    store = kind(clock)
    await store.ensure_collections(SPECS)
    process = Process(RecordingStore(store), clock)
    await mechanism.begin(process)
    states = await recorded(process, mechanism.step)
    assert len(states) > 1, "it writes nothing"
    return states, await mechanism.outcome(process)


async def check_whole(process: Process, mechanism: Mechanism, expected: Any) -> None:
    """Nothing is half; sent again, and once more, the call has been carried out once."""
    await mechanism.recover(process)
    await mechanism.check(process)
    for _ in range(2):
        await mechanism.step(process)
        await mechanism.recover(process)
        await mechanism.check(process)
        assert await mechanism.outcome(process) == expected


@KINDS
@EACH
async def test_a_death_at_any_write_leaves_no_half(mechanism, kind):
    states, expected = await deaths_of(mechanism, kind)
    for left in states:
        await check_whole(started(left), mechanism, expected)


@KINDS
@EACH
async def test_a_call_that_is_sent_again_at_once_is_carried_out_once(mechanism, kind):
    """Before anything was recovered, as a client does that reconnects to another process."""
    states, expected = await deaths_of(mechanism, kind)
    for left in states:
        process = started(left)
        await mechanism.step(process)
        await check_whole(process, mechanism, expected)


@KINDS
@EACH
@pytest.mark.parametrize("again", ["step", "recover"])
async def test_a_second_death_in_a_row_leaves_no_half(mechanism, kind, again):
    """Of the call that is sent again, and of the recovery; all pairs of deaths."""
    states, expected = await deaths_of(mechanism, kind)
    for left in states:
        for left_again in await recorded(started(left), getattr(mechanism, again)):
            await check_whole(started(left_again), mechanism, expected)


@EACH
@pytest.mark.parametrize("when", list(When))
async def test_a_death_beside_another_process_at_the_same_call_leaves_no_half(mechanism, when):
    """Both have the request; one of them dies at its n-th write, the other one goes on."""
    states, expected = await deaths_of(mechanism, SharedStore)
    for n in range(1, 12):
        for seed in range(4):
            store = copied(states[0])
            assert isinstance(store._clock, FixedClock)
            dying = FaultInjectingStore(Interleaving(store, seed))
            dying.fail_at(n, when)
            one = Process(dying, store._clock)
            other = Process(Interleaving(store, seed + 7), store._clock)
            results = await asyncio.gather(
                mechanism.step(one), mechanism.step(other), return_exceptions=True
            )
            errors = [result for result in results if isinstance(result, BaseException)]
            assert all(isinstance(error, InjectedFault) for error in errors), errors
            assert dying.dead or not errors
            await check_whole(started(store), mechanism, expected)


@EACH
async def test_two_processes_that_recover_at_the_same_time_do_each_other_no_harm(mechanism):
    states, expected = await deaths_of(mechanism, SharedStore)
    for left in states:
        for seed in range(4):
            store = copied(left)
            assert isinstance(store._clock, FixedClock)
            views = [Interleaving(store, seed), Interleaving(store, seed + 7)]
            both = [Process(view, store._clock) for view in views]
            await asyncio.gather(*(mechanism.recover(one) for one in both))
            await mechanism.check(both[0])
            await check_whole(started(store), mechanism, expected)


@KINDS
@pytest.mark.parametrize("waited", [False, True], ids=["at once", "recovered"])
async def test_a_change_that_died_is_applied_once_though_others_came_in_between(kind, waited):
    """The next change must not drop a name that is open; once it is dropped, the mark tells."""
    mechanism = next(one for one in MECHANISMS if one.name == "apply once")
    states, _ = await deaths_of(mechanism, kind)
    for left in states:
        process = started(left)
        for number in range(2):
            await applies(f"other {number}")(process)
        if waited:
            await mechanism.recover(process)
            await applies("one more")(process)
        for _ in range(2):
            again = Process(process.store, process.clock)
            await mechanism.step(again)
            await mechanism.recover(again)
            await mechanism.check(again)
            await applies("the last")(again)


def opened_edge(folder: Path, clock: FixedClock) -> VectorStore:
    return EdgeStore(folder, clock, min_free_bytes=0)


def opened_qdrant(folder: Path, clock: FixedClock) -> VectorStore:
    return QdrantStore(clock, location=":memory:")


@pytest.mark.parametrize("opened", [opened_edge, opened_qdrant], ids=["edge", "qdrant"])
@EACH
async def test_a_death_leaves_no_half_on_the_stores_that_are_really_used(
    mechanism, opened, tmp_path
):
    _, expected = await deaths_of(mechanism, SharedStore)
    n, died = 0, True
    while died:  # at its n-th write, until it has no n-th
        n += 1
        clock = FixedClock()
        store = FaultInjectingStore(opened(tmp_path / str(n), clock))
        await store.ensure_collections(SPECS)
        await mechanism.begin(Process(store, clock))
        store.fail_at(n)
        with suppress(InjectedFault):
            await mechanism.step(Process(store, clock))
        died = store.dead
        store.revive()
        clock.advance(1)
        await check_whole(Process(store, clock), mechanism, expected)
        await store.close()
    assert n > 1
