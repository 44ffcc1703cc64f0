"""Retrievals as records: written behind, read at once, hashed, expired, watched."""

from __future__ import annotations

import asyncio
import gc
import json
import sys
from dataclasses import replace
from types import FunctionType, ModuleType
from typing import Any

import pytest

from lot_grpc.domain.change import ChangeType, ResourceKind
from lot_grpc.domain.errors import RetrievalNotFoundError, StoreUnavailableError
from lot_grpc.domain.policy import NamespacePolicy, PolicyEdit
from lot_grpc.domain.query import EpisodeFilter, MemoryFilter, PatternFilter
from lot_grpc.domain.retrieval import (
    RetrievalFilter,
    RetrievalMethod,
    RetrievalQueries,
    query_hash,
)
from lot_grpc.domain.transfer import ExportSpec
from lot_grpc.services.recall.targets import RecallOptions, memory_request, pattern_request
from lot_grpc.services.records.collections import RETRIEVALS
from tests.contract.clock import FixedClock
from tests.services.watching import change_watcher
from tests.services.world import (
    NS,
    CalibratedDouble,
    Interrupted,
    SharedStore,
    World,
    memory,
    open_world,
    payloads,
    recall,
    rows,
    save,
)

QUERY = "log in to the site"


async def search(world: World, query: str = QUERY) -> Any:
    request = memory_request(RecallOptions(query, 5), MemoryFilter())
    return await world.services.recall.memories.find(NS, request)


async def listed(world: World, **narrowed: Any) -> list[str]:
    page = await world.services.receipts.receipts_page(NS, RetrievalFilter(**narrowed), 100, None)
    return [one.retrieval.retrieval_id for one in page.items]


async def set_policy(world: World, **fields: Any) -> None:
    edit = PolicyEdit(NamespacePolicy(**fields), frozenset(fields))
    await world.services.retention.policies.update(NS, edit, "")


# --- written behind ---------------------------------------------------------------------------


async def test_a_receipt_is_the_same_before_and_after_it_was_written(world):
    await save(world, QUERY)
    answer = await recall(world, QUERY)
    receipts = world.services.receipts
    waiting = await receipts.receipt(NS, answer.retrieval_id)
    assert await payloads(world, RETRIEVALS) == []
    await world.services.runtime.retrievals.flush()
    written = await receipts.receipt(NS, answer.retrieval_id)
    restarted = await world.another_process().services.receipts.receipt(NS, answer.retrieval_id)
    [item] = waiting.retrieval.items
    for other in (written, restarted):
        assert list(other.retrieval.vector) == pytest.approx(list(waiting.retrieval.vector))
        same = replace(other.retrieval, vector=waiting.retrieval.vector)
        [found] = same.items
        assert found.etag_in(NS) == item.etag_in(NS)
        assert found.match_probability == item.match_probability
        assert replace(same, items=waiting.retrieval.items) == waiting.retrieval


async def test_a_probability_that_is_computed_for_the_answer_is_in_the_receipt():
    world = await open_world(embedder=CalibratedDouble())
    await save(world, QUERY)
    answer = await recall(world, QUERY)
    receipt = await world.services.receipts.receipt(NS, answer.retrieval_id)
    assert receipt.retrieval.items[0].match_probability is None  # nobody looked at it
    probability = answer.hits[0].match
    assert probability is not None
    receipt = await world.services.receipts.receipt(NS, answer.retrieval_id)
    assert receipt.retrieval.items[0].match_probability == probability


def reachable(root: Any) -> int:
    """The bytes of all values that an object keeps alive."""
    seen: dict[int, Any] = {}
    left = [root]
    while left:
        one = left.pop()
        if id(one) not in seen and not isinstance(one, type | ModuleType | FunctionType):
            seen[id(one)] = one
            left += gc.get_referents(one)
    return sum(map(sys.getsizeof, seen.values()))


async def test_what_waits_keeps_no_record_alive(world):
    """A memory of a mebibyte that was found must not stay in memory until its row is written."""
    content = f"{QUERY} " * (2**20 // len(f"{QUERY} "))
    await world.services.memories.memories.create(NS, memory(content, memory_id="m"))
    answer = await search(world)
    [hit] = answer.hits
    assert reachable(hit) > 2**20
    assert reachable(world.services.runtime.retrievals._waiting) < 64 * 2**10
    assert await listed(world) == [answer.retrieval_id]


async def test_a_write_that_fails_is_repeated_and_nothing_is_lost(world):
    store = Interrupted(world.store)
    world = await open_world(store, world.clock)
    ids = [(await search(world, f"{QUERY} {n}")).retrieval_id for n in range(100)]

    async def fail() -> None:
        raise StoreUnavailableError("away")

    store.before("put", RETRIEVALS, fail)
    with pytest.raises(StoreUnavailableError):
        await world.services.runtime.retrievals.flush()
    assert await listed(world) == ids[::-1]
    assert len(await rows(world.store, RETRIEVALS)) == 100


async def test_a_recall_while_rows_are_written_is_written_too(world):
    """Several flushes at once, as of a list and of housekeeping, write each row once."""
    store = Interrupted(world.store)
    world = await open_world(store, world.clock)
    first = (await search(world)).retrieval_id
    later: list[str] = []

    async def another() -> None:
        later.append((await search(world)).retrieval_id)

    store.before("put", RETRIEVALS, another)
    flush = world.services.runtime.retrievals.flush
    await asyncio.gather(flush(), flush(), flush())
    assert await listed(world) == [*later, first]


# --- policy -----------------------------------------------------------------------------------


async def test_rows_expire_as_the_policy_said_when_they_were_made(world):
    kept = (await search(world)).retrieval_id
    await set_policy(world, max_retrieval_age=60_000_000)
    short = (await search(world)).retrieval_id
    await world.services.runtime.retrievals.flush()
    world.clock.advance(61)
    assert await listed(world) == [kept]
    with pytest.raises(RetrievalNotFoundError):
        await world.services.receipts.receipt(NS, short)
    assert await world.services.runtime.retrievals.find(NS, short) is None
    assert await world.services.housekeeping.drop_expired() == 1
    assert len(await rows(world.store, RETRIEVALS)) == 1


async def test_a_policy_that_another_process_set_holds_within_five_seconds():
    clock = FixedClock()
    world = await open_world(SharedStore(clock), clock)
    other = world.another_process()
    await search(other)
    await set_policy(world, retrieval_queries=RetrievalQueries.HASH)
    clock.advance(5)
    answer = await search(other)
    receipt = await other.services.receipts.receipt(NS, answer.retrieval_id)
    assert receipt.retrieval.query == query_hash(QUERY)


async def test_no_text_of_a_query_is_stored_where_hashes_are_wished(world):
    await world.services.memories.memories.create(NS, memory("the port is 8080"))
    await set_policy(world, retrieval_queries=RetrievalQueries.HASH)
    secret = "zanzibar port"
    async with change_watcher(world, resource_kinds=(ResourceKind.RETRIEVAL,)) as watcher:
        answer = await search(world, secret)
        assert [hit.thing.content.content for hit in answer.hits] == ["the port is 8080"]
        await world.services.runtime.retrievals.flush()
        await watcher.until(lambda: len(watcher.events) == 1)
    assert "zanzibar" not in repr(watcher.events)
    assert "zanzibar" not in repr(await payloads(world, RETRIEVALS))
    assert "zanzibar" not in repr(vars(world.services.runtime.retrievals))


async def test_watchers_of_matches_get_the_hash_as_well(world):
    await save(world, QUERY)
    await set_policy(world, retrieval_queries=RetrievalQueries.HASH)
    async with change_watcher(world) as watcher:
        await recall(world, QUERY)
        await watcher.until(lambda: bool(watcher.events))
    [match] = watcher.events
    assert (match.type, match.thing.query) == (ChangeType.PATTERN_MATCHED, query_hash(QUERY))


async def many_large(world: World, count: int) -> list[str]:
    """Receipts of many items each."""
    for number in range(30):
        await save(world, f"{QUERY} {number}", pattern_id=f"p{number}")
    return [(await recall(world, QUERY, limit=30)).retrieval_id for _ in range(count)]


async def test_large_receipts_are_written_in_small_batches(world, monkeypatch):
    """Encoding and writing one batch holds up other calls."""
    ids = await many_large(world, 70)
    put, sizes = world.store.put, []

    async def counted(collection: str, records: Any) -> None:
        sizes.append(len(records))
        await put(collection, records)

    monkeypatch.setattr(world.store, "put", counted)
    await world.services.runtime.retrievals.flush()
    assert sum(sizes) == len(ids)
    assert max(sizes) <= 22  # 640 items, and the receipt that exceeds them


@pytest.mark.parametrize("reads", ["list", "report"])
async def test_others_go_on_while_receipts_are_read(world, monkeypatch, reads):
    ids = await many_large(world, 90)
    await world.services.runtime.retrievals.flush()
    monkeypatch.setattr("lot_grpc.services.time_slice._LONGEST_SECONDS", 0.0)
    decoded, longest, turn = 0, 0, 0
    load = json.loads

    def counted(text: str) -> Any:
        nonlocal decoded
        decoded += 1
        return load(text)

    async def other() -> None:
        nonlocal decoded, longest, turn
        while True:
            longest, decoded = max(longest, decoded), 0
            turn += 1
            await asyncio.sleep(0)

    monkeypatch.setattr("json.loads", counted)
    beside = asyncio.create_task(other())
    if reads == "list":
        assert await listed(world) == ids[::-1]
        assert longest == 1
    else:
        report = await world.services.learning.performance.report(NS, EpisodeFilter(), 20)
        await asyncio.sleep(0)
        assert (report.adoption.retrievals, report.adoption.kinds[0].shown) == (90, 90 * 30)
        assert longest == 0  # what a report counts needs no item decoded
    beside.cancel()
    assert turn >= 90


# --- exports and clears -----------------------------------------------------------------------


async def test_an_export_includes_what_waits_to_be_written(world):
    await save(world, QUERY)
    answer = await recall(world, QUERY)
    spec = ExportSpec(NS, frozenset({ResourceKind.RETRIEVAL}))
    exporter = world.services.transfer.exporter
    assert await exporter.counts(spec) == {ResourceKind.RETRIEVAL: 1}
    later = await recall(world, QUERY)
    moved = [row.record.payload["retrieval_id"] async for row, _ in exporter.rows(spec)]
    assert moved == [answer.retrieval_id, later.retrieval_id]


@pytest.mark.parametrize("written", [True, False])
async def test_a_clear_of_another_kind_keeps_the_receipts(world, written):
    await save(world, QUERY, pattern_id="p")
    answer = await recall(world, QUERY)
    if written:
        await world.services.runtime.retrievals.flush()
    await world.services.clearing.clearer.clear(NS, (ResourceKind.PATTERN,))
    assert await listed(world) == [answer.retrieval_id]


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize(
    ("kinds", "kept"), [((ResourceKind.PATTERN,), True), ((ResourceKind.RETRIEVAL,), False)]
)
async def test_receipts_that_meet_a_clear_wait_for_its_end_unless_it_is_theirs(kinds, kept, shared):
    clock = FixedClock()
    world = await open_world(SharedStore(clock) if shared else None, clock)
    await save(world, QUERY, pattern_id="p")
    other = world.another_process() if shared else world
    answer = await recall(other, QUERY)
    request = pattern_request(RecallOptions(QUERY, 5), PatternFilter())
    await other.services.recall.patterns.find("elsewhere", request)
    registry, seen_by = world.services.runtime.stack.clears, other.services.runtime.stack.clears
    clear = await registry.begin(NS, kinds)
    await seen_by.of(NS, fresh=True)
    await other.services.runtime.retrievals.flush()
    assert await payloads(world, RETRIEVALS) == []
    assert len(await world.store.scroll(RETRIEVALS, "elsewhere", [], limit=9)) == 1
    await registry.end(clear, 0)
    await seen_by.of(NS, fresh=True)
    assert await listed(other) == ([answer.retrieval_id] if kept else [])


# --- the change feed --------------------------------------------------------------------------


async def test_retrievals_are_watched_if_they_are_named_and_not_otherwise(world):
    named = (ResourceKind.RETRIEVAL, ResourceKind.MEMORY)
    async with (
        change_watcher(world) as plain,
        change_watcher(world, resource_kinds=named) as both,
    ):
        answer = await search(world)
        await world.services.runtime.retrievals.flush()
        await world.services.memories.memories.create(NS, memory(memory_id="m"))
        await both.until(lambda: len(both.events) == 2)
        await plain.until_seen("m")
    assert [(one.resource_kind, one.type) for one in both.events] == [
        (ResourceKind.RETRIEVAL, ChangeType.STORED),
        (ResourceKind.MEMORY, ChangeType.STORED),
    ]
    assert both.events[0].id == answer.retrieval_id
    assert both.events[0].thing.method is RetrievalMethod.SEARCH_MEMORIES
    assert [one.id for one in plain.events] == ["m"]


async def test_who_names_retrievals_later_misses_none_of_those_made_since(world):
    """The poller reads retrievals only while somebody watches them."""
    async with change_watcher(world) as plain:
        await search(world)
        await world.services.runtime.retrievals.flush()
        await world.services.memories.memories.create(NS, memory(memory_id="m"))
        await plain.until_seen("m")
        cursor = plain.cursor
        second = (await search(world)).retrieval_id
        await world.services.runtime.retrievals.flush()
        kinds = (ResourceKind.RETRIEVAL,)
        async with change_watcher(world, resource_kinds=kinds, cursor=cursor) as named:
            await named.until_seen(second)
            third = (await search(world)).retrieval_id
            await world.services.runtime.retrievals.flush()
            await named.until_seen(third)
    assert [one.id for one in named.events] == [second, third]


async def test_retrievals_are_told_from_the_start_newest_first(world):
    ids = [(await search(world, f"{QUERY} {n}")).retrieval_id for n in range(3)]
    await world.services.runtime.retrievals.flush()
    kinds = (ResourceKind.RETRIEVAL,)
    async with change_watcher(world, resource_kinds=kinds, from_start=True) as watcher:
        await watcher.until(lambda: len(watcher.events) == 3)
    assert [one.id for one in watcher.events] == ids[::-1]
    assert not any(one.type is not ChangeType.STORED for one in watcher.events)
