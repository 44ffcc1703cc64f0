"""Erasing a subject, and processes that die of it."""

from __future__ import annotations

import contextlib
import itertools
from typing import Any

from lot_grpc.domain.subject import mentions, named_for
from lot_grpc.services.records.collections import REQUESTS
from lot_grpc.testing.faults import FaultInjectingStore, InjectedFault, When
from lot_grpc.testing.in_memory import InMemoryStore
from tests.contract.clock import FixedClock
from tests.services.deaths import LONGER_THAN_ANY_CALL
from tests.services.filled import held
from tests.services.steps.subjects import erases_alice, of_alice
from tests.services.world import World, open_world


def texts(found: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """The records that still name her; ids in tombstones stay."""
    return {
        name: left
        for name, records in found.items()
        if name != "tombstones"
        and (left := [one for one in records if "alice" in str(one.payload)])
    }


async def world_of(clock: FixedClock) -> World:
    return await open_world(FaultInjectingStore(InMemoryStore(clock)), clock)


async def test_an_erasure_that_died_at_any_write_goes_on_by_itself() -> None:
    clock = FixedClock()
    world = await world_of(clock)
    await of_alice(world, "whole")
    await erases_alice(world, "whole")
    whole = {name: len(found) for name, found in (await held(world.store, "whole")).items()}
    assert texts(await held(world.store, "whole")) == {}
    for n in itertools.count(1):
        for when in When:
            ns = f"n{n}{when}"
            await of_alice(world, ns)
            world.store.fail_at(n, when)
            died = True
            try:
                await erases_alice(world, ns)
                died = False
            except InjectedFault:
                pass
            world.store.fail_at(0)
            world.store.revive()
            world = world.another_process()
            clock.advance(LONGER_THAN_ANY_CALL)
            await world.services.housekeeping.roll_forward(starting=True)
            found = await held(world.store, ns)
            if n == 1 and when is When.BEFORE:
                assert texts(found), "it was not begun"
                continue
            assert texts(found) == {}, (n, when)
            assert {name: len(records) for name, records in found.items()} == whole, (n, when)
            if not died:
                assert n > 10
                return


async def test_a_call_goes_on_with_what_was_interrupted() -> None:
    clock = FixedClock()
    world = await world_of(clock)
    await of_alice(world, "a")
    world.store.fail_at(4, When.AFTER)
    with contextlib.suppress(InjectedFault):
        await erases_alice(world, "a")
    world.store.fail_at(0)
    world.store.revive()
    world = world.another_process()
    await erases_alice(world, "a")
    found = await held(world.store, "a")
    assert texts(found) == {}
    assert not [one for one in found.get(REQUESTS, []) if one.payload["kind"] == "erasure"]


def test_an_id_belongs_to_the_subject_that_it_begins_with() -> None:
    assert [
        id_ for id_ in ("alice", "alice:x", "alice/x", "alice2", "alice.x", "al", "x:alice")
        if named_for("alice", id_)
    ] == ["alice", "alice:x", "alice/x"]  # fmt: skip


def test_a_text_mentions_whole_words() -> None:
    about = mentions("a.b")
    assert about("what does A.B want?")
    assert about("a.b")
    assert not about("xa.b")
    assert not about("a.bc")
    assert not about("axb")
