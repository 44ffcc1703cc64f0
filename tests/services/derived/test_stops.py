"""A rebuild that stops anywhere resumes where it was."""

from __future__ import annotations

import itertools

import pytest

from lot_grpc.services.derived_data import needs_rebuild, rebuild_derived_data
from lot_grpc.services.records.collections import MEMORIES
from lot_grpc.services.resources import REGISTRY
from lot_grpc.services.store_metadata import (
    DERIVED_UP_TO,
    open_store,
    update_metadata,
)
from lot_grpc.testing.faults import InjectedFault, When
from lot_grpc.testing.hashing import HashingEmbedder
from tests.contract.clock import FixedClock
from tests.services.deaths import EITHER_SIDE
from tests.services.derived.old_stores import (
    LIVING,
    SEARCHED,
    WRITES,
    Make,
    after,
    has_old_terms,
    old_store,
    records_of,
)
from tests.services.world import rows


@EITHER_SIDE
async def test_a_rebuild_that_dies_at_any_write_resumes_where_it_was(
    make: Make, when: When
) -> None:
    for n in itertools.count(1):
        old = await old_store(make(clock := FixedClock()), clock)
        old.store.fail_at(n, when)
        try:
            await rebuild_derived_data(old.store, REGISTRY)
        except InjectedFault:
            old.store.revive()
            assert await needs_rebuild(old.store) or n == len(old.store.writes)
        else:
            break
        await open_store(old.store, REGISTRY, HashingEmbedder().contract)
        await rebuild_derived_data(old.store, REGISTRY)
        await old.assert_up_to_date()
        again = len(old.store.writes) - WRITES
        assert again <= 10, "the opening, one batch again, and one of each record at its edge"
    assert n == WRITES + 1


@pytest.mark.parametrize("make", ["edge"], indirect=True)
async def test_a_rebuild_that_dies_on_edge_resumes_where_it_was(make: Make) -> None:
    old = await old_store(make(clock := FixedClock()), clock)
    for writes in (1, 3, 2, 9):
        old.store.fail_at(writes, When.AFTER)
        with pytest.raises(InjectedFault):
            await rebuild_derived_data(old.store, REGISTRY)
        old.store.revive()
        assert await needs_rebuild(old.store)
    await rebuild_derived_data(old.store, REGISTRY)
    await old.assert_up_to_date()


async def test_it_stops_between_two_batches_when_it_is_told_to(make: Make) -> None:
    old = await old_store(make(clock := FixedClock()), clock)
    rounds = 0
    while await needs_rebuild(old.store):
        rounds += 1
        await rebuild_derived_data(old.store, REGISTRY, stop=after(5))
        assert rounds < 99
    assert rounds > 2
    await old.assert_up_to_date()


async def test_a_rebuild_by_an_older_version_that_was_left_is_begun_anew(make: Make) -> None:
    old = await old_store(make(clock := FixedClock()), clock)
    await update_metadata(old.store, {DERIVED_UP_TO: dict.fromkeys(SEARCHED, 2**60)})
    assert await rebuild_derived_data(old.store, REGISTRY) == LIVING
    await old.assert_up_to_date()


async def test_records_of_one_sort_key_are_all_done(make: Make) -> None:
    """Two processes may hand out the same one."""
    old = await old_store(make(clock := FixedClock()), clock)
    for record in await rows(old.store, MEMORIES, None):
        await old.store.update(MEMORIES, record.namespace, record.id, set={"sort_key": 7})
    await rebuild_derived_data(old.store, REGISTRY, stop=after(9))
    assert await rebuild_derived_data(old.store, REGISTRY)
    got = (await records_of(old.store))[MEMORIES]
    assert not any(map(has_old_terms, got))
    assert len(got) > 2 * 4
