"""The proof: a process may die between any two writes, and nothing is half, lost, or done twice.

Each mechanism is proven by itself in ``tests/kernel``, with all deaths and all pairs of them. What
is proven here is that each call uses them in the right order: a death at every write of it, and of
what a repeat or a second death meets a sample; ``make exhaustive`` takes them all.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from lot_grpc.domain.errors import NotFoundError
from lot_grpc.domain.outcomes import Outcome
from lot_grpc.domain.pattern import PatternContent
from lot_grpc.ports import VectorStore
from lot_grpc.services.outcomes.outcomes import OutcomeDraft
from lot_grpc.services.patterns.drafts import Dedupe
from lot_grpc.services.patterns.patterns import PatternEdit
from lot_grpc.services.records.collections import EVENTS, MEMORIES, PATTERNS
from lot_grpc.storage.edge import EdgeStore
from lot_grpc.storage.qdrant import QdrantStore
from lot_grpc.testing.faults import FaultInjectingStore, InjectedFault, When
from lot_grpc.testing.in_memory import InMemoryStore
from tests.contract.clock import FixedClock
from tests.sampling import one_in
from tests.services.cases import CASES
from tests.services.deaths import (
    LONGER_THAN_ANY_CALL,
    deaths_of,
    restarted,
    retry,
    roll_forward,
    some,
)
from tests.services.invariants import check_contents, check_invariants
from tests.services.states import state
from tests.services.steps.base import Case, nothing
from tests.services.steps.patterns import id_of, three_patterns
from tests.services.world import NS, SharedStore, World, draft, memory, open_world, rows

MODES = (When.BEFORE, When.AFTER)
_NUMBERS = itertools.count()


class Lab:
    """Processes that die, each over a new namespace of one store, or over a new store."""

    def __init__(self, world: World, make: Callable[[FixedClock], VectorStore] | None) -> None:
        self.world = world
        self._make = make

    @property
    def store(self) -> FaultInjectingStore:
        store: FaultInjectingStore = self.world.store
        return store

    async def namespace(self) -> str:
        if self._make is not None:
            self.world = await new_world(self._make(self.world.clock), self.world.clock)
        return f"{NS}{next(_NUMBERS)}"

    async def without_fault(self, case: Case) -> tuple[int, Any]:
        """How many writes the operation takes, and what it comes to."""
        ns = await self.namespace()
        await case.begin(self.world, ns)
        before = len(self.store.writes)
        await case.run(self.world, ns)
        count = len(self.store.writes) - before
        await check_invariants(self.store, ns)
        assert count, "it writes nothing"
        return count, await state(self.store, ns)

    async def die(self, case: Case, ns: str, n: int, when: When) -> None:
        """Begin, then die at the ``n``-th write of the operation."""
        await case.begin(self.world, ns)
        await self.killed(case.run, ns, n, when)

    async def killed(self, step: Any, ns: str, n: int, when: When) -> bool:
        """Die at the ``n``-th write of a step and restart; False if it took fewer writes."""
        self.store.fail_at(n, when)
        try:
            await step(self.world, ns)
            died = False
        except InjectedFault:
            died = True
        assert died == self.store.dead
        self.store.revive()
        self.world = self.world.another_process()
        return died

    async def roll_forward(self, world: World, ns: str = "") -> None:
        await roll_forward(world)

    async def retry(self, case: Case, ns: str, expected: Any) -> None:
        """The same call again comes to what one call without a fault comes to."""
        await case.run(self.world, ns)
        await check_invariants(self.store, ns)
        found = await state(self.store, ns)
        for collection, told in expected.items():
            assert found[collection] == told, collection


async def new_world(store: VectorStore, clock: FixedClock) -> World:
    return await open_world(FaultInjectingStore(store), clock)


@pytest.fixture(params=["own store", "shared store"])
async def lab(request: pytest.FixtureRequest) -> Lab:
    clock = FixedClock()
    make = InMemoryStore if request.param == "own store" else SharedStore
    return Lab(await new_world(make(clock), clock), make)


def deaths(count: int) -> list[tuple[int, When]]:
    """After one write is before the next. Writes that go at once are looked at in memory."""
    return [(n, When.BEFORE) for n in range(1, count + 1)] + [(count, When.AFTER)]


# --- every death, over a store in memory ------------------------------------------------------

KINDS = pytest.mark.parametrize("kind", [InMemoryStore, SharedStore], ids=["own", "shared"])
EACH = pytest.mark.parametrize("case", CASES, ids=str)
EACH_REPEATABLE = pytest.mark.parametrize(
    "case", [case for case in CASES if case.repeatable], ids=str
)
MOST = pytest.mark.parametrize(
    "most", [pytest.param(2, id="some"), pytest.param(0, id="all", marks=pytest.mark.exhaustive)]
)
"""How many deaths, and how many second ones of each, a test takes of a case; 0 is all."""


async def check_whole(world: World, case: Case, expected: Any) -> None:
    """Nothing is half; sent again, and once more, the call has been carried out once."""
    await check_invariants(world.store, NS)
    if case.contents:
        await check_contents(restarted(world.store.inner), NS, case.contents)
    if case.repeatable:
        await retry(world, case, expected)
        await retry(world, case, expected)


@KINDS
@EACH
async def test_a_death_at_any_write_leaves_no_half(kind, case):
    states, expected = await deaths_of(case, kind)
    for left in states:
        world = restarted(left)
        await roll_forward(world)
        await check_whole(world, case, expected)


@MOST
@KINDS
@EACH_REPEATABLE
async def test_a_call_that_is_sent_again_before_anything_was_rolled_forward_is_done_once(
    kind, case, most
):
    """As a client does that reconnects to another process at once."""
    states, expected = await deaths_of(case, kind)
    for left in some(states, most, case):
        world = restarted(left)
        await case.run(world, NS)
        await roll_forward(world)
        await retry(world, case, expected)


@MOST
@KINDS
@EACH
async def test_a_second_death_while_rolling_forward_leaves_no_half(kind, case, most):
    states, expected = await deaths_of(case, kind)
    for left in some(states, most, case):
        dying = restarted(left)
        second = await dying.store.record(lambda dying=dying: roll_forward(dying))
        for left_again in some(second[1:-1], most, case):
            world = restarted(left_again)
            await roll_forward(world)
            await check_whole(world, case, expected)


@MOST
@KINDS
@EACH_REPEATABLE
async def test_a_second_death_of_the_same_call_leaves_no_half(kind, case, most):
    """It dies, is rolled forward, is sent again, dies again, and is rolled forward again."""
    states, expected = await deaths_of(case, kind)
    for left in some(states, most, case):
        dying = restarted(left)
        await roll_forward(dying)
        second = await dying.store.record(lambda dying=dying: case.run(dying, NS))
        for left_again in some(second[1:-1], most, case):
            world = restarted(left_again)
            await roll_forward(world)
            await check_whole(world, case, expected)


# --- the stores that are really used ----------------------------------------------------------

SOME = [
    case
    for case in CASES
    if case.name
    in {
        "save new by request", "save again by request", "save a batch", "edit the content",
        "delete a pattern", "outcome by request", "feedback by request",
        "prune", "sweep by a policy", "delete an episode",
        "event by request", "stream of events", "end by request",
        "record whole by request", "create a memory by request", "delete a memory",
        "create successors by requests", "let a memory supersede no more",
        "move the beginning of a successor", "delete a superseding memory",
        "steps by request", "feedback on a selection by request",
        "save an error solution by request", "delete an error solution",
        "outcome of an error solution by request", "delete a used error solution",
        "extract patterns again", "record with a lesson learned before",
        "end a failure with a lesson",
        "end that used others by request", "abandon", "late event by request",
        "put a preference by request", "delete a preference", "message by request",
        "message after a lapse by request", "value of a session", "clear a session",
        "clear messages and values", "sweep sessions",
    }
]  # fmt: skip


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def edge(module_path: Path) -> AsyncIterator[tuple[Any, FixedClock]]:
    clock = FixedClock()
    store = EdgeStore(module_path / "data", clock, min_free_bytes=0)
    yield store, clock
    await store.close()


async def prove(lab: Lab, case: Case, most: int) -> None:
    count, expected = await lab.without_fault(case)
    for n, when in some(deaths(count), most, case):
        ns = await lab.namespace()
        await lab.die(case, ns, n, when)
        await lab.roll_forward(lab.world)
        await check_invariants(lab.store, ns)
        if case.repeatable:
            await lab.retry(case, ns, expected)
        await check_contents(lab.world, ns, case.contents)


@MOST
@pytest.mark.parametrize("case", one_in(4, SOME), ids=str)
@pytest.mark.asyncio(loop_scope="module")
async def test_a_death_leaves_no_half_on_edge(edge, case, most):
    store, clock = edge
    await prove(Lab(await new_world(store, clock), None), case, most)


@MOST
@pytest.mark.parametrize("case", one_in(2, SOME), ids=str)
async def test_a_death_leaves_no_half_on_qdrant(case, most):
    clock = FixedClock()
    store = QdrantStore(clock, location=":memory:")
    await prove(Lab(await new_world(store, clock), None), case, most)
    await store.close()


async def test_a_store_on_disk_that_is_closed_and_opened_again_is_rolled_forward(tmp_path: Path):
    """The death of the process itself: what is done is on the disk, what is not is finished."""
    clock = FixedClock()
    case = next(case for case in CASES if case.name == "outcome by request")

    def opened() -> EdgeStore:
        return EdgeStore(tmp_path / "data", clock, min_free_bytes=0)

    lab = Lab(await new_world(opened(), clock), None)
    count, expected = await lab.without_fault(case)
    died = [await lab.namespace() for _ in range(count)]
    for n, ns in enumerate(died, 1):
        await lab.die(case, ns, n, When.BEFORE)
    await lab.store.close()
    lab = Lab(await new_world(opened(), clock), None)
    await lab.roll_forward(lab.world)
    for ns in died:
        await check_invariants(lab.store, ns)
        await lab.retry(case, ns, expected)
    await lab.store.close()


# --- deaths that meet other callers -----------------------------------------------------------


async def killed_in_delete(lab: Lab, case: Case, n: int) -> str:
    ns = await lab.namespace()
    await lab.die(case, ns, n, When.AFTER)
    return ns


async def test_a_delete_that_is_finished_late_spares_what_took_the_id_since():
    """A shared store leaves unfinished work a quarter of an hour to whoever began it."""
    clock = FixedClock()
    lab = Lab(await new_world(SharedStore(clock), clock), SharedStore)

    async def begin(world: World, ns: str) -> None:
        await world.services.patterns.writer.save(ns, draft("old", pattern_id="mine"))
        await world.services.outcomes.recorder.record(ns, OutcomeDraft(("mine",), Outcome.FAILURE))

    async def delete(world: World, ns: str) -> None:
        await world.services.patterns.patterns.delete(ns, "mine", "")

    case = Case("delete", begin, delete)
    count, _ = await lab.without_fault(case)
    for n in range(2, count):  # from the death on at which the pattern was gone
        ns = await killed_in_delete(lab, case, n)
        clock.advance(60)
        pattern_writer = lab.world.services.patterns.writer
        assert (await pattern_writer.save(ns, draft("new", pattern_id="mine"))).created
        await lab.world.services.outcomes.recorder.record(
            ns, OutcomeDraft(("mine",), Outcome.SUCCESS)
        )
        await lab.roll_forward(lab.world)
        found = await lab.world.services.patterns.patterns.get(ns, "mine")
        assert (found.content.task, found.outcomes.usage_count) == ("new", 1)
        await check_invariants(lab.store, ns)


async def test_a_memory_that_took_a_deleted_id_is_spared_too():
    clock = FixedClock()
    lab = Lab(await new_world(SharedStore(clock), clock), SharedStore)

    async def begin(world: World, ns: str) -> None:
        await world.services.memories.memories.create(ns, memory("old", memory_id="mine"))

    async def delete(world: World, ns: str) -> None:
        await world.services.memories.memories.delete(ns, "mine", "")

    ns = await killed_in_delete(lab, Case("delete", begin, delete), 2)
    clock.advance(60)
    await lab.world.services.memories.memories.create(ns, memory("new", memory_id="mine"))
    await lab.roll_forward(lab.world)
    found = await lab.world.services.memories.memories.get(ns, "mine")
    assert found.content.content == "new"
    await check_invariants(lab.store, ns)


async def test_an_edit_after_a_delete_that_died_early_is_kept():
    clock = FixedClock()
    lab = Lab(await new_world(SharedStore(clock), clock), SharedStore)

    async def begin(world: World, ns: str) -> None:
        await world.services.patterns.writer.save(ns, draft("old", pattern_id="mine"))

    async def delete(world: World, ns: str) -> None:
        await world.services.patterns.patterns.delete(ns, "mine", "")

    ns = await killed_in_delete(lab, Case("delete", begin, delete), 1)
    edit = PatternEdit(PatternContent("edited"), frozenset({"task"}))
    await lab.world.services.patterns.patterns.update(ns, "mine", edit, "")
    await lab.roll_forward(lab.world)
    assert (await lab.world.services.patterns.patterns.get(ns, "mine")).content.task == "edited"
    await check_invariants(lab.store, ns)


async def test_a_retry_after_an_edit_answers_with_the_edited_pattern():
    """The first try got as far as the pattern; somebody edited it before the retry."""
    clock = FixedClock()
    lab = Lab(await new_world(InMemoryStore(clock), clock), InMemoryStore)
    for dedupe in (Dedupe.EXACT, Dedupe.NONE):

        async def run(world: World, ns: str, dedupe: Dedupe = dedupe) -> Any:
            return await world.services.patterns.writer.save(
                ns, draft("one", dedupe=dedupe, request_id="r")
            )

        case = Case("save", nothing, run)
        count, _ = await lab.without_fault(case)
        ns = await lab.namespace()
        await lab.die(case, ns, count, When.BEFORE)
        pattern_id = await id_of(lab.world, ns, "one")
        edit = PatternEdit(PatternContent("two"), frozenset({"task"}))
        await lab.world.services.patterns.patterns.update(ns, pattern_id, edit, "")
        again = await run(lab.world, ns)
        assert (again.pattern.pattern_id, again.pattern.content.task) == (pattern_id, "two")
        assert await lab.store.count(PATTERNS, ns) == 1


async def test_a_recording_that_is_retried_late_is_not_swept_up_under_its_hands():
    """The sweep of another process runs in the middle of a retry, long after the first try."""
    clock = FixedClock()
    lab = Lab(await new_world(SharedStore(clock), clock), SharedStore)
    case = next(case for case in CASES if case.name == "record whole by request")
    _, expected = await lab.without_fault(case)
    ns = await lab.namespace()
    await lab.die(case, ns, 2, When.BEFORE)
    clock.advance(LONGER_THAN_ANY_CALL)
    other = lab.world.another_process()
    insert = lab.store.insert

    async def swept_in_between(collection: str, records: Any) -> Any:
        inserted = await insert(collection, records)
        if collection == EVENTS:
            await other.services.housekeeping.roll_forward()
        return inserted

    lab.store.insert = swept_in_between  # type: ignore[method-assign]
    await lab.retry(case, ns, expected)


async def test_a_first_outcome_that_died_is_counted_before_the_next_one_drops_it(lab):
    """Facts, their ids in the pattern and the counters keep together over many deaths."""
    ns = await lab.namespace()
    await three_patterns(lab.world, ns)
    rng = random.Random(7)
    sent = 0
    for number in range(40):
        given = OutcomeDraft(("p2", "p3"), Outcome.SUCCESS, request_id=f"r{number}")

        async def step(world: World, ns: str, given: OutcomeDraft = given) -> None:
            await world.services.outcomes.recorder.record(ns, given)

        while await lab.killed(step, ns, rng.randrange(1, 12), rng.choice(MODES)):
            if rng.random() < 0.3:
                await lab.roll_forward(lab.world)
        sent += 1
    await lab.roll_forward(lab.world)
    await check_invariants(lab.store, ns)
    found = await lab.world.services.patterns.patterns.get(ns, "p3")
    assert found.outcomes.usage_count == sent


async def test_an_outcome_that_died_is_counted_once_though_others_came_in_between(lab):
    """The next count of a pattern must not forget a fact that is counted and not yet settled."""
    case = next(case for case in CASES if case.name == "outcome by request")
    count, _ = await lab.without_fault(case)
    for n, when in deaths(count):
        ns = await lab.namespace()
        await lab.die(case, ns, n, when)
        before = await lab.world.services.patterns.patterns.get(ns, "p2")
        for _ in range(2):
            other = OutcomeDraft(("p2",), Outcome.FAILURE)
            await lab.world.services.outcomes.recorder.record(ns, other)
        await case.run(lab.world, ns)
        await lab.roll_forward(lab.world)
        await check_invariants(lab.store, ns)
        found = await lab.world.services.patterns.patterns.get(ns, "p2")
        assert found.outcomes.usage_count == 2 + 2 + 1, (n, when, before.outcomes)


@pytest.mark.parametrize("name", ["save new by request", "create a memory by request"])
async def test_what_was_deleted_is_not_brought_back_by_a_request_that_died_at_its_end(lab, name):
    case = next(case for case in CASES if case.name == name)
    count, _ = await lab.without_fault(case)
    ns = await lab.namespace()
    await lab.die(case, ns, count, When.BEFORE)
    services = lab.world.services
    if "memory" in name:
        (made,) = [r for r in await rows(lab.store, MEMORIES, ns) if r.payload["memory_id"] != "m"]
        await services.memories.memories.delete(ns, made.payload["memory_id"], "")
    else:
        await services.patterns.patterns.delete(ns, await id_of(lab.world, ns, "new"), "")
    with pytest.raises(NotFoundError, match="it was deleted after this request"):
        await case.run(lab.world, ns)
