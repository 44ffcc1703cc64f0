"""Scanning meets each record once, whatever the batches and the sort keys are."""

from __future__ import annotations

import asyncio
import time

import pytest

from lot_grpc.ports import Equals, Record
from lot_grpc.services.records.collections import EPISODES, OUTCOMES, SORT_KEY
from lot_grpc.services.scanning import scan
from lot_grpc.services.time_slice import TimeSlice
from tests.services.world import NS, open_world


@pytest.mark.parametrize("descending", [False, True])
async def test_each_record_comes_once_in_order_over_many_batches_and_equal_keys(descending):
    world = await open_world()
    records = [
        Record(
            f"00000000-0000-0000-0000-{n:012}",
            NS,
            {SORT_KEY: n // 130, "resource": f"p{n % 2}", "rest": n},
        )
        for n in range(500)
    ]
    await world.store.put(OUTCOMES, records)
    found = [
        one.payload
        async for one in scan(
            world.store, OUTCOMES, NS, [Equals("resource", "p1")], descending=descending
        )
    ]
    assert sorted(payload["rest"] for payload in found) == list(range(1, 500, 2))
    keys = [payload[SORT_KEY] for payload in found]
    assert keys == sorted(keys, reverse=descending)


async def test_named_keys_are_all_that_is_read():
    world = await open_world()
    record = Record("00000000-0000-0000-0000-000000000001", NS, {SORT_KEY: 1, "a": 1, "b": 2})
    await world.store.put(OUTCOMES, [record])
    [found] = [one async for one in scan(world.store, OUTCOMES, NS, [], payload=("a",))]
    assert found.payload == {SORT_KEY: 1, "a": 1}


async def test_long_work_lets_others_go_first():
    turns = []

    async def other():
        turns.append("other")

    time_slice = TimeSlice()
    task = asyncio.create_task(other())
    await time_slice.give_way()  # its turn has just begun
    assert turns == []
    time.sleep(0.006)
    await time_slice.give_way()
    assert turns == ["other"]
    await task


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("equal", [1, 70, 130, 500])
async def test_another_key_orders_as_well_however_many_are_equal(descending, equal):
    world = await open_world()
    records = [
        Record(
            f"00000000-0000-0000-0000-{(n * 7919) % 10_007:012}",
            NS,
            {SORT_KEY: n, "end_time": n // equal, "status": "failed"},
        )
        for n in range(700)
    ]
    await world.store.put(EPISODES, records)
    found = [
        one
        async for one in scan(
            world.store,
            EPISODES,
            NS,
            [Equals("status", "failed")],
            payload=("end_time",),
            descending=descending,
            key="end_time",
        )
    ]
    assert sorted(one.id for one in found) == sorted(record.id for record in records)
    keys = [one.payload["end_time"] for one in found]
    assert keys == sorted(keys, reverse=descending)
