"""The retry loop: bounded, with pauses at random that grow to a bound."""

from __future__ import annotations

import asyncio

import pytest

from lot_grpc.domain.errors import ContentionError, EtagMismatchError
from lot_grpc.kernel.compare_and_set import (
    ATTEMPTS,
    ConflictError,
    compare_and_set,
    insert_new,
    replace_as_read,
    require_etag,
    update_as_read,
)
from lot_grpc.ports import Record
from lot_grpc.testing.in_memory import InMemoryStore
from tests.contract.clock import FixedClock
from tests.kernel.mechanisms import NS, SPECS, THINGS, Process, a_thing, point, thing
from tests.services.world import Interleaving, SharedStore


async def opened(kind: type[InMemoryStore] = InMemoryStore) -> Process:
    clock = FixedClock()
    store = kind(clock)
    await store.ensure_collections(SPECS)
    process = Process(store, clock)
    await a_thing(process)
    return process


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr("lot_grpc.kernel.compare_and_set.asyncio.sleep", sleep)
    return pauses


async def test_it_gives_up_after_so_many_attempts(pauses):
    attempts = 0

    async def attempt() -> None:
        nonlocal attempts
        attempts += 1
        raise ConflictError

    with pytest.raises(ContentionError, match="thing 'a' is being written by too many"):
        await compare_and_set("thing", "a", attempt)
    assert (attempts, len(pauses)) == (ATTEMPTS, ATTEMPTS - 1)
    assert max(pauses) <= 0.2
    assert len(set(pauses)) > ATTEMPTS // 2, "pauses are at random"
    attempts = 0
    with pytest.raises(ContentionError):
        await compare_and_set("thing", "a", attempt, 3)
    assert attempts == 3


async def test_the_first_attempt_waits_for_nothing_and_errors_pass_through(pauses):
    async def attempt() -> int:
        return 7

    async def failing() -> None:
        raise ZeroDivisionError

    assert await compare_and_set("thing", "a", attempt) == 7
    with pytest.raises(ZeroDivisionError):
        await compare_and_set("thing", "a", failing)
    assert pauses == []


async def test_no_update_of_many_writers_is_lost():
    process = await opened(SharedStore)

    async def add(view: Interleaving) -> None:
        async def attempt() -> None:
            record = await Process(view, process.clock).thing("a")
            assert record is not None
            changed = {"count": record.payload["count"] + 1}
            await update_as_read(view, THINGS, record, changed, "revision")

        for _ in range(3):
            await compare_and_set("thing", "a", attempt)

    await asyncio.gather(*(add(Interleaving(process.store, seed)) for seed in range(6)))
    record = await process.thing("a")
    assert record is not None
    assert (record.payload["count"], record.payload["revision"]) == (18, 19)


async def test_what_is_not_as_read_is_not_written_over():
    process = await opened()
    record = await process.thing("a")
    assert record is not None
    new = await update_as_read(process.store, THINGS, record, {"count": 1}, "revision")
    assert new == await process.thing("a")
    with pytest.raises(ConflictError):
        await update_as_read(process.store, THINGS, record, {"count": 5}, "revision")
    with pytest.raises(ConflictError):
        await replace_as_read(process.store, THINGS, record, record, "revision")
    with pytest.raises(ConflictError):
        await insert_new(process.store, THINGS, thing("a", process))
    assert await process.thing("a") == new


async def test_a_key_that_was_missing_must_be_missing_still():
    process = await opened()
    record = await process.thing("a")
    assert record is not None
    for expected in (1, 2):
        record = await update_as_read(process.store, THINGS, record, {}, "further", "none")
        assert record.payload["further"] == expected
    late = Record(point("a"), NS, {})
    with pytest.raises(ConflictError):
        await update_as_read(process.store, THINGS, late, {}, "further")


async def test_another_record_that_took_the_id_is_not_written_over():
    process = await opened()
    record = await process.thing("a")
    assert record is not None
    process.clock.advance(1)
    another = thing("a", process, count=7)
    await process.store.put(THINGS, [another])
    with pytest.raises(ConflictError):
        await update_as_read(process.store, THINGS, record, {"count": 5}, "revision")
    with pytest.raises(ConflictError):
        await replace_as_read(process.store, THINGS, record, record, "revision")
    assert await process.thing("a") == another


def test_an_etag_is_required_where_it_is_given():
    require_etag("thing", "a", "", "2")
    require_etag("thing", "a", "2", "2")
    with pytest.raises(EtagMismatchError):
        require_etag("thing", "a", "1", "2")
