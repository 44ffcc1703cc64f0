"""Quotas are exact: against a count of everything, over every operation, at once, after deaths."""

from __future__ import annotations

import asyncio
import random
import re
from pathlib import Path
from typing import Any

import pytest

from lot_grpc.checking import over_quota
from lot_grpc.domain.errors import LotError, QuotaExceededError
from lot_grpc.domain.memory import MemoryContent
from lot_grpc.domain.policy import NamespacePolicy, PolicyEdit
from lot_grpc.domain.quota import Quota, Usage, payload_bytes
from lot_grpc.domain.session import SessionMessage
from lot_grpc.ports import Record, VectorStore
from lot_grpc.services.memories.drafts import MemoryDraft, MemoryEdit
from lot_grpc.services.records.changes import STAMP_KEYS
from lot_grpc.services.records.collections import MEMORIES, POLICIES
from lot_grpc.services.resources import REGISTRY
from lot_grpc.services.sessions.session_messages import MessageDraft
from lot_grpc.storage.edge import EdgeStore
from lot_grpc.testing.in_memory import InMemoryStore
from tests.contract.clock import FixedClock
from tests.services.cases import CASES
from tests.services.invariants import check_invariants
from tests.services.states import state
from tests.services.steps.base import Case
from tests.services.world import NS, Interleaving, SharedStore, World, draft, open_world

KINDS = pytest.mark.parametrize("kind", [InMemoryStore, SharedStore], ids=["own", "shared"])
EACH = pytest.mark.parametrize("case", CASES, ids=str)
PLENTY = 10**9
DERIVES = (
    "first steps by request",
    "end with a lesson",
    "record with a lesson",
    "record with a lesson learned before",
    "end a failure with a lesson",
    "record with an error overcome",
    "feedback",
)
"""What stores further records that follow from those that were accepted."""


async def set_quota(world: World, records: int = 0, size: int = 0, ns: str = NS) -> None:
    policy = NamespacePolicy(record_quota=records, byte_quota=size)
    edit = PolicyEdit(policy, frozenset({"record_quota", "byte_quota"}))
    await world.services.retention.policies.update(ns, edit, "")


async def used(world: World, ns: str = NS) -> Usage:
    """What the process that is at work says."""
    return (await world.services.runtime.stack.quotas.of(ns)).usage


async def counted(world: World, ns: str = NS) -> Usage:
    """A count of what the store has, by the test itself."""
    usage = Usage()
    for kind, spec in REGISTRY.resources.items():
        if kind in ("policy", "retrieval"):
            continue
        for one in spec.collections:
            store = world.store
            records = await store.scroll(one.name, ns, (), limit=100_000)
            expired = await store.expired(one.name, limit=100_000)
            records += [record for record in expired if record.namespace == ns]
            for record in records:
                ours = {k: v for k, v in record.payload.items() if not k.endswith("_as_sent")}
                usage += Usage(int(one is spec.collection), payload_bytes(ours, STAMP_KEYS))
    return usage


def memory(text: str, **named: Any) -> MemoryDraft:
    own = {"memory_id", "request_id", "ttl"}
    content = MemoryContent(text, **{k: v for k, v in named.items() if k not in own})
    return MemoryDraft(content, **{k: v for k, v in named.items() if k in own})


# --- counted exactly --------------------------------------------------------------------------


@KINDS
@EACH
async def test_every_operation_is_counted(case: Case, kind: type[InMemoryStore]) -> None:
    clock = FixedClock()
    world = await open_world(kind(clock), clock)
    await set_quota(world, PLENTY, PLENTY)
    assert await used(world) == await counted(world)
    for step in (case.begin, case.run):
        await step(world, NS)
        kept = world.services.runtime.stack.quotas.counters._counters[NS].usage
        assert kept in (None, await counted(world)), "what was kept of it is wrong"
        assert await used(world) == await counted(world)


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.exhaustive)])
@KINDS
@EACH
async def test_what_a_quota_refuses_leaves_no_half(
    case: Case, kind: type[InMemoryStore], every: bool
) -> None:
    """At every number of records; in the normal run at eight or more of the many that some add."""
    clock = FixedClock()
    world = await open_world(kind(clock), clock)
    await case.begin(world, NS)
    before = await counted(world)
    await case.run(world, NS)
    expected = await state(world.store, NS)
    growth = await counted(world) - before
    added = range(max(0, growth.records))
    step = 1 if every else 1 + len(added) // 16
    limits = [(n, 0) for n in sorted({*added[::step], *added[-1:]})]
    limits += [(0, growth.bytes * n // 4) for n in range(4) if growth.bytes > 0]
    for records, size in limits:
        clock = FixedClock()
        world = await open_world(kind(clock), clock)
        await case.begin(world, NS)
        before = await counted(world)
        most = Quota(0 if size else max(1, before.records + records), size and before.bytes + size)
        await set_quota(world, most.records, most.bytes)
        refusal: QuotaExceededError | None = None
        try:
            await case.run(world, NS)
        except QuotaExceededError as error:
            refusal = error
        except (LotError, AssertionError, AttributeError):
            pass  # the step itself met the error of an item
        if refusal is not None:
            given = refusal.metadata
            assert int(given["used"]) + int(given["added"]) > int(given["limit"])
            assert given["namespace"] == NS
        await check_invariants(world.store, NS)
        assert await used(world) == await counted(world)
        if most.records and case.name not in DERIVES:
            assert (await used(world)).records <= max(most.records, before.records)
        await world.services.housekeeping.roll_forward(starting=True)
        await check_invariants(world.store, NS)
        await set_quota(world)
        if case.repeatable and refusal is not None:
            await case.run(world, NS)
            await check_invariants(world.store, NS)
            found = await state(world.store, NS)
            for collection in expected.keys() - {POLICIES}:
                ours, theirs = _without_ids(found[collection]), _without_ids(expected[collection])
                assert ours == theirs, (collection, records, size)


def _without_ids(rows: Any) -> Any:
    """Those of retrievals are random in each store."""
    return re.sub(r"r-\w+", "r-", repr(rows))


# --- at once ----------------------------------------------------------------------------------


@KINDS
async def test_writes_at_once_do_not_exceed_a_quota_together(kind: type[InMemoryStore]) -> None:
    clock = FixedClock()
    world = await open_world(Interleaving(kind(clock)), clock)
    await set_quota(world, 20)
    memories = world.services.memories.memories
    writer = world.services.patterns.writer

    async def stored(number: int) -> int:
        drafts = [memory(f"note {number} {n}") for n in range(number % 3 + 1)]
        if number % 4 == 0:
            try:
                return int((await writer.save(NS, draft(f"task {number}"))).created)
            except QuotaExceededError:
                return 0
        results = await memories.create_many(NS, drafts)
        refused = [one for one in results if isinstance(one, LotError)]
        assert all(isinstance(one, QuotaExceededError) for one in refused)
        return len(results) - len(refused)

    made = await asyncio.gather(*map(stored, range(40)))
    assert sum(made) == 20, "as many as fit, and not one more"
    assert (await used(world)).records == 20
    assert await used(world) == await counted(world)


class Watch:
    """The monotonic clock of the counters."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


async def test_what_other_processes_write_counts_after_a_second(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On a shared store, each exceeds a quota at most by what the others wrote within it."""
    watch, clock = Watch(), FixedClock()
    monkeypatch.setattr("lot_grpc.services.quotas.counter.time", watch)
    monkeypatch.setattr("lot_grpc.services.quotas.counters.time", watch)
    world = await open_world(SharedStore(clock), clock)
    await set_quota(world, 30)
    processes = [world.another_process() for _ in range(3)]

    async def stored(process: World, number: int) -> int:
        made = await process.services.memories.memories.create_many(
            NS, [memory(f"note {number} {n} {watch.now}") for n in range(4)]
        )
        return sum(not isinstance(one, LotError) for one in made)

    held = 0
    for _ in range(8):
        added = [await stored(process, n) for n, process in enumerate(processes)]
        held += sum(added)
        assert held <= 30 + 4 * (len(processes) - 1), "what the others wrote within the second"
        watch.now += 1
        assert {(await used(process)).records for process in processes} == {held}
    assert held >= 30
    assert [await stored(process, 9) for process in processes] == [0, 0, 0]


async def test_room_that_another_process_made_is_found_after_a_second(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watch, clock = Watch(), FixedClock()
    monkeypatch.setattr("lot_grpc.services.quotas.counter.time", watch)
    world = await open_world(SharedStore(clock), clock)
    await set_quota(world, 1)
    other = world.another_process()
    memories = world.services.memories.memories
    await memories.create(NS, memory("one", memory_id="m"))
    with pytest.raises(QuotaExceededError):
        await other.services.memories.memories.create(NS, memory("two"))
    await memories.delete(NS, "m")
    watch.now += 1
    await other.services.memories.memories.create(NS, memory("two"))
    assert await counted(world) == await used(other)


class Paused(InMemoryStore):
    """Stops each scan of memories until it may go on."""

    def __init__(self, clock: FixedClock) -> None:
        super().__init__(clock)
        self.reached, self.go_on = asyncio.Event(), asyncio.Event()
        self.go_on.set()

    async def scroll(self, collection: str, *given: Any, **options: Any) -> list[Record]:
        if collection == MEMORIES:
            self.reached.set()
            await self.go_on.wait()
        return await super().scroll(collection, *given, **options)


async def test_a_look_at_what_has_no_quota_delays_no_write() -> None:
    clock = FixedClock()
    store = Paused(clock)
    world = await open_world(store, clock)
    memories = world.services.memories.memories
    await memories.create(NS, memory("one"))
    store.reached.clear()
    store.go_on.clear()
    look = asyncio.create_task(used(world))
    await store.reached.wait()
    await asyncio.wait_for(memories.create(NS, memory("two")), 10)
    store.go_on.set()
    assert (await look).records == 2
    assert world.services.runtime.stack.quotas.counters.counting() == []
    assert await used(world) == await counted(world)


# --- what a check says ------------------------------------------------------------------------


@pytest.mark.parametrize("default", [Quota(), Quota(records=2), Quota(bytes=1)], ids=repr)
async def test_a_check_names_the_namespaces_over_their_quota(default: Quota) -> None:
    world = await open_world(InMemoryStore(FixedClock()), FixedClock())
    memories = world.services.memories.memories
    assert await over_quota(world.services) == ""
    for name, count in (("few", 1), ("many", 3)):
        await memories.create_many(name, [memory(f"note {number}") for number in range(count)])
    assert await over_quota(world.services) == "", "there is no quota"
    world.services.runtime.stack.quotas.counters.default = default
    world.services.runtime.stack.quotas.counters.policy_written(None)
    said = await over_quota(world.services)
    few, many = await used(world, "few"), await used(world, "many")
    assert (
        said
        == {
            Quota(): "",
            Quota(records=2): "over their quota, so writes are refused: many (3 of 2 records)",
            Quota(bytes=1): "over their quota, so writes are refused: "
            f"few ({few.bytes} of 1 bytes), many ({many.bytes} of 1 bytes)",
        }[default]
    )
    await set_quota(world, 3, 10**6, "many")
    await set_quota(world, 3, 10**6, "few")
    assert await over_quota(world.services) == "", "a policy is above the default"
    await set_quota(world, 1, ns="many")
    assert "many (3 of 1 records" in await over_quota(world.services)


# --- at random --------------------------------------------------------------------------------


STORES = pytest.mark.parametrize("kind", ["in memory", "shared", "edge"])


def _store(kind: str, clock: FixedClock, path: Path) -> VectorStore:
    if kind == "edge":
        return EdgeStore(path, clock=clock, search_threads=1)
    return (InMemoryStore if kind == "in memory" else SharedStore)(clock)


@STORES
@pytest.mark.parametrize("seed", range(3))
async def test_random_operations_at_once_are_counted(kind: str, seed: int, tmp_path: Path) -> None:
    rng, clock = random.Random(seed), FixedClock()
    store = _store(kind, clock, tmp_path / "data")
    world = await open_world(Interleaving(store, seed), clock)
    limit = Quota(rng.randint(5, 40), rng.randint(2_000, 12_000))
    await set_quota(world, limit.records, limit.bytes)
    ids = [f"m-{number}" for number in range(30)]

    async def operate(number: int) -> None:
        memories, one = world.services.memories.memories, rng.choice(ids)
        text = "x" * rng.randint(1, 400) + f" é {number}"
        match rng.randrange(7):
            case 0 | 1:
                ttl = rng.choice([None, None, 5_000_000])
                await memories.create(NS, memory(text, memory_id=one, ttl=ttl))
            case 2:
                await memories.create_many(NS, [memory(f"{text} {n}") for n in range(4)])
            case 3:
                edit = MemoryEdit(MemoryContent(text), frozenset({"content"}))
                await memories.update(NS, one, edit, "")
            case 4:
                await memories.delete(NS, one)
            case 5:
                values = world.services.sessions.values
                await values.put(NS, rng.choice("abc"), rng.choice("kl"), text.encode())
            case _:
                draft = MessageDraft(rng.choice("abc"), SessionMessage("user", text))
                await world.services.sessions.messages.append(NS, draft)

    for turn in range(12):
        results = await asyncio.gather(*map(operate, range(8)), return_exceptions=True)
        for result in results:
            if result is not None and not isinstance(result, LotError):
                raise result
        usage = await used(world)
        assert usage == await counted(world), turn
        assert usage.records <= limit.records
        assert usage.bytes <= limit.bytes + 8 * 600, "beyond it go only marks and counters"
        if rng.random() < 0.3:
            clock.advance(6)
            await world.services.housekeeping.drop_expired()
            assert await used(world) == await counted(world), turn
        if rng.random() < 0.2:
            world = world.another_process()
            assert await used(world) == await counted(world), "after a restart"
    await store.close()
