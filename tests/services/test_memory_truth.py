"""What supersedes what among memories, and when each is true."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.errors import LotError, MemoryNotFoundError, RequestInvalidError
from lot_grpc.domain.memory import Memory, MemoryContent
from lot_grpc.domain.query import MemoryFilter
from lot_grpc.domain.transfer import ExportSpec, ImportConflictPolicy, ImportTerms
from lot_grpc.services.context.request import ContextRequest
from lot_grpc.services.lineage.lineage import Note, Relation
from lot_grpc.services.memories.drafts import Created, MemoryEdit
from lot_grpc.services.recall.targets import RecallOptions, memory_request
from lot_grpc.services.records.collections import MEMORIES
from lot_grpc.services.records.memories import memory_point
from lot_grpc.services.seeder import Seeds
from lot_grpc.services.transfer.importer import ImportRun
from tests.contract.clock import FixedClock
from tests.services.invariants import check_invariants
from tests.services.steps.namespaces import sets_policy
from tests.services.world import (
    MINUTE,
    NS,
    Interleaving,
    Interrupted,
    SharedStore,
    World,
    memory,
    open_world,
    sweep,
)

SECOND = 1_000_000
TTL = MINUTE * SECOND


async def create(world: World, name: str, **named: Any) -> Memory:
    """A memory whose id is its content's last word."""
    named = {"memory_id": name, **named}
    return (
        await world.services.memories.memories.create(NS, memory(f"fact {name}", **named))
    ).memory


async def edit(world: World, memory_id: str, **changes: Any) -> None:
    wanted = MemoryEdit(MemoryContent(**{"content": "", **changes}), frozenset(changes))
    await world.services.memories.memories.update(NS, memory_id, wanted, "")


async def get(world: World, memory_id: str) -> Memory:
    return await world.services.memories.memories.get(NS, memory_id)


async def listed(world: World, **named: Any) -> set[str]:
    read = world.services.memories.memories.list_page
    return {one.memory_id for one in (await read(NS, MemoryFilter(**named), 100, None)).items}


async def marks(world: World) -> dict[str, str]:
    read = world.services.memories.memories.list_page
    found = (await read(NS, MemoryFilter(superseded=True), 100, None)).items
    return {one.memory_id: one.superseded_by for one in found}


async def found(world: World, as_of: int | None = None, **named: Any) -> set[str]:
    criteria, services = MemoryFilter(**named), world.services
    true = await services.recall.validity.conditions(NS, criteria, as_of)
    request = memory_request(RecallOptions("fact", 20), criteria, true)
    hits = (await services.recall.memories.find(NS, request)).hits
    return {hit.thing.memory_id for hit in hits}


async def three(world: World) -> None:
    """``a``, which ``b`` supersedes, which ``c`` supersedes."""
    await create(world, "a")
    await create(world, "b", supersedes="a")
    await create(world, "c", supersedes="b")


# --- superseding ------------------------------------------------------------------------------


async def test_recall_leaves_superseded_memories_out_and_lists_show_both(world):
    await three(world)
    assert await marks(world) == {"a": "b", "b": "c"}
    assert await found(world) == {"c"}
    assert await found(world, superseded=False) == {"c"}
    assert await found(world, superseded=True) == {"a", "b"}
    assert await listed(world) == {"a", "b", "c"}
    assert await listed(world, superseded=False) == {"c"}
    await check_invariants(world.store, NS)


async def test_the_mark_moves_no_etag_and_no_time_and_outlives_an_edit(world):
    before = await create(world, "a")
    world.clock.advance(MINUTE)
    successor = await create(world, "b", supersedes="a")
    after = await get(world, "a")
    assert (after.etag, after.update_time) == (before.etag, before.update_time)
    assert after.superseded_time == successor.create_time
    await edit(world, "a", content="other words")
    assert (await get(world, "a")).superseded_by == "b"
    assert await found(world) == {"b"}


async def test_another_name_unmarks_the_one_before(world):
    await three(world)
    await create(world, "d")
    await edit(world, "c", supersedes="d")
    assert await marks(world) == {"a": "b", "d": "c"}
    await edit(world, "c", supersedes="")
    assert await marks(world) == {"a": "b"}
    assert (await get(world, "d")).superseded_time is None
    assert await found(world) == {"b", "c", "d"}


async def test_a_deleted_successor_unmarks(world):
    await three(world)
    await world.services.memories.memories.delete(NS, "b", "")
    assert await marks(world) == {}
    assert await found(world) == {"a", "c"}


async def test_an_expired_successor_unmarks_with_the_next_sweep(world):
    await create(world, "a")
    await create(world, "b", supersedes="a", ttl=TTL)
    world.clock.advance(MINUTE)
    await world.services.housekeeping.drop_expired()
    assert await marks(world) == {}
    assert await found(world) == {"a"}


async def test_of_two_successors_the_newest_is_named_and_the_first_to_begin_counts(world):
    await create(world, "a")
    first = await create(world, "b", supersedes="a")
    world.clock.advance(1)
    later = world.clock.now() + TTL
    await create(world, "c", supersedes="a", valid_from=later)
    assert await marks(world) == {"a": "c"}
    assert (await get(world, "a")).superseded_time == first.create_time
    assert await found(world) == {"b"}
    await world.services.memories.memories.delete(NS, "b", "")
    assert (await get(world, "a")).superseded_time == later
    assert await found(world) == {"a"}
    await check_invariants(world.store, NS)


async def test_what_is_not_there_cannot_be_superseded_and_nothing_is_stored(world):
    await world.services.memories.memories.create("other", memory("x", memory_id="elsewhere"))
    await create(world, "a")
    for missing in ("none", "elsewhere"):
        with pytest.raises(MemoryNotFoundError, match="must name an existing memory"):
            await create(world, "new", supersedes=missing)
        with pytest.raises(MemoryNotFoundError):
            await edit(world, "a", supersedes=missing)
    assert await world.store.count(MEMORIES, NS) == 1
    await check_invariants(world.store, NS)


async def test_what_it_superseded_may_be_gone_when_it_is_edited_otherwise(world):
    await three(world)
    await world.services.memories.memories.delete(NS, "b", "")
    await edit(world, "c", valid_from=1)
    await edit(world, "c", title="t")
    assert (await get(world, "c")).content.supersedes == "b"
    await check_invariants(world.store, NS)


async def test_nothing_supersedes_itself_or_in_a_circle(world):
    await three(world)
    for memory_id, superseded in (("a", "a"), ("a", "b"), ("a", "c"), ("b", "c")):
        with pytest.raises(RequestInvalidError, match="supersede"):
            await edit(world, memory_id, supersedes=superseded)
    with pytest.raises(RequestInvalidError, match="itself"):
        await create(world, "new", supersedes="new")
    assert await marks(world) == {"a": "b", "b": "c"}
    await check_invariants(world.store, NS)


@pytest.mark.parametrize("seed", range(6))
async def test_of_several_that_close_a_circle_at_once_one_fails_at_least(seed):
    clock = FixedClock()
    world = await open_world(SharedStore(clock), clock)
    names = ("a", "b", "c")
    for name in names:
        await create(world, name)
    store = Interleaving(world.store, seed)
    worlds = [World(store, world.clock, world.services).another_process() for _ in names]
    pairs = [("a", "b"), ("b", "c"), ("c", "a")]
    results = await asyncio.gather(
        *(edit(w, one, supersedes=other) for w, (one, other) in zip(worlds, pairs, strict=True)),
        return_exceptions=True,
    )
    failed = [one for one in results if one is not None]
    assert failed
    assert all(isinstance(one, RequestInvalidError) for one in failed)
    await check_invariants(world.store, NS)
    for name in names:
        one, chain = name, []
        while one and one not in chain:
            chain.append(one)
            one = (await get(world, one)).content.supersedes
        assert not one, "a circle"


async def test_an_item_of_a_batch_may_supersede_one_of_it_and_one_that_may_not_fails_alone(world):
    drafts = [
        memory("two", memory_id="two", supersedes="one"),
        memory("lost", supersedes="nothing"),
        memory("one", memory_id="one"),
        memory("three", memory_id="three", supersedes="two"),
    ]
    results = await world.services.memories.memories.create_many(NS, drafts)
    assert [isinstance(one, Created) for one in results] == [True, False, True, True]
    assert isinstance(results[1], LotError)
    assert await marks(world) == {"one": "two", "two": "three"}
    await check_invariants(world.store, NS)


async def test_the_same_content_may_become_true_again(world):
    """Its first memory is history; what is stored once is what is true."""
    contents = world.services.memories.memories
    first = (await contents.create(NS, memory("tabs", unique=True))).memory
    spaces = (await contents.create(NS, memory("spaces", supersedes=first.memory_id))).memory
    again = await contents.create(NS, memory("tabs", unique=True, supersedes=spaces.memory_id))
    assert again.created
    assert again.memory.memory_id != first.memory_id
    repeat = await contents.create(NS, memory("tabs", unique=True))
    assert (repeat.created, repeat.memory.memory_id) == (False, again.memory.memory_id)


async def test_a_repeat_of_a_content_supersedes_nothing(world):
    await create(world, "a")
    contents = world.services.memories.memories
    await contents.create(NS, memory("new", unique=True))
    again = await contents.create(NS, memory("new", unique=True, supersedes="a"))
    assert (again.created, again.unchanged_fields) == (False, ("supersedes",))
    assert await marks(world) == {}


async def test_lineage_is_what_it_supersedes_and_what_supersedes_it(world):
    await three(world)
    read = world.services.memories.lineage.read
    assert [(r.relation, r.thing.memory_id, r.distance) for r in await read(NS, "c")] == [
        (Relation.SUPERSEDED, "b", 1),
        (Relation.SUPERSEDED, "a", 2),
    ]
    assert [(r.relation, r.thing.memory_id, r.distance) for r in await read(NS, "b")] == [
        (Relation.SUPERSEDED, "a", 1),
        (Relation.SUCCESSOR, "c", 1),
    ]


# --- ids that are used again, and other ways in -----------------------------------------------


async def _created(world: World) -> None:
    await create(world, "a")


async def _in_a_batch(world: World) -> None:
    drafts = [memory("new"), memory("fact a", memory_id="a")]
    await world.services.memories.memories.create_many(NS, drafts)


async def _superseding(world: World) -> None:
    await create(world, "d")
    await create(world, "a", supersedes="d")


@pytest.mark.parametrize("again", [_created, _in_a_batch, _superseding])
@pytest.mark.parametrize("expired", [False, True])
async def test_one_that_takes_the_id_of_a_deleted_one_is_marked_again(world, again, expired):
    await create(world, "a", ttl=TTL)
    await create(world, "b", supersedes="a")
    if expired:
        world.clock.advance(MINUTE)
        await world.services.housekeeping.drop_expired()
    else:
        await world.services.memories.memories.delete(NS, "a", "")
    await again(world)
    assert (await marks(world))["a"] == "b"
    await check_invariants(world.store, NS)


async def test_a_seeded_one_that_takes_the_id_again_is_marked_again(world):
    await world.services.seeder.seed(NS, Seeds())
    seeded = min(await listed(world))
    await create(world, "b", supersedes=seeded)
    await world.services.memories.memories.delete(NS, seeded, "")
    await world.services.seeder.seed(NS, Seeds(restore_deleted=True))
    assert await marks(world) == {seeded: "b"}


async def exported(world: World) -> list[Any]:
    return [row async for row, _ in world.services.transfer.exporter.rows(ExportSpec(NS))]


async def take(world: World, rows: Any, policy: ImportConflictPolicy) -> ImportRun:
    run = ImportRun(ImportTerms(policy))
    await world.services.transfer.importer.take(run, rows)
    return run


async def test_marks_are_derived_again_by_an_import_and_a_repeat_of_it_changes_nothing(world):
    await three(world)
    rows = await exported(world)
    assert not any("superseded_by" in row.record.payload for row in rows)
    other = await open_world()
    await take(other, rows, ImportConflictPolicy.FAIL)
    assert await marks(other) == {"a": "b", "b": "c"}
    await check_invariants(other.store, NS)
    again = await take(other, rows, ImportConflictPolicy.FAIL)
    assert (again.imported, again.unchanged) == (0, 3)


async def test_an_import_without_the_successor_leaves_the_old_one_true(world):
    await create(world, "a")
    await create(world, "b", supersedes="a")
    rows = [row for row in await exported(world) if row.record.payload["memory_id"] == "a"]
    other = await open_world()
    await take(other, rows, ImportConflictPolicy.FAIL)
    assert await marks(other) == {}
    assert await found(other) == {"a"}


async def test_an_import_over_memories_derives_their_marks(world):
    await create(world, "a")
    await create(world, "b", supersedes="a")
    rows = await exported(world)
    await edit(world, "b", supersedes="", title="t")
    await edit(world, "a", title="t")
    await take(world, rows, ImportConflictPolicy.OVERWRITE)
    assert await marks(world) == {"a": "b"}
    await check_invariants(world.store, NS)


async def test_a_clear_of_memories_takes_their_notes_along(world):
    await create(world, "a")
    await world.services.memories.lineage.begin(NS, "b", "", "a")
    await world.services.clearing.clearer.clear(NS, (ResourceKind.MEMORY,))
    await check_invariants(world.store, NS)


# --- deletes and policies ---------------------------------------------------------------------


async def test_a_policy_deletes_superseded_memories_first_however_important(world):
    await create(world, "a", importance=1.0)
    await create(world, "b", supersedes="a", importance=0.1)
    await create(world, "c", importance=0.5)
    await sets_policy(max_memories=2)(world, NS)
    await sweep(world)
    assert await listed(world) == {"b", "c"}
    await check_invariants(world.store, NS)


async def test_deleting_by_filter_may_take_history_alone(world):
    await three(world)
    history = MemoryFilter(superseded=True)
    deleted = await world.services.memories.bulk_deleter.delete(NS, history, dry_run=False)
    assert deleted.count == 2
    assert await listed(world) == {"c"}
    await check_invariants(world.store, NS)


# --- a note that was left ---------------------------------------------------------------------


async def test_a_note_that_was_left_is_followed_and_dropped(world):
    await three(world)
    lineage = world.services.memories.lineage
    await lineage.begin(NS, "c", "", "b")
    assert await lineage.roll_forward(world.clock.now() - 1) == 0
    assert await lineage.roll_forward(world.clock.now()) == 1
    assert await marks(world) == {"a": "b", "b": "c"}
    await check_invariants(world.store, NS)


async def test_a_circle_that_a_death_left_is_broken(world):
    """Its writer died before it looked whether another had closed the circle."""
    await three(world)
    lineage = world.services.memories.lineage
    await lineage.begin(NS, "a", "", "c")
    await world.store.update(MEMORIES, NS, memory_point(NS, "a"), set={"supersedes": "c"})
    assert await lineage.roll_forward(world.clock.now()) == 1
    assert (await get(world, "a")).content.supersedes == ""
    assert await marks(world) == {"a": "b", "b": "c"}
    await check_invariants(world.store, NS)


# --- stale writers ----------------------------------------------------------------------------


@pytest.fixture
async def interrupted() -> World:
    """A process on a shared store in which others may come first."""
    clock = FixedClock()
    return await open_world(Interrupted(SharedStore(clock)), clock)


async def test_an_edit_keeps_a_mark_that_came_meanwhile(interrupted):
    world = interrupted
    await create(world, "a")
    world.store.before("replace", MEMORIES, lambda: create(world, "b", supersedes="a"))
    await edit(world, "a", title="t")
    assert (await get(world, "a")).content.title == "t"
    assert await marks(world) == {"a": "b"}
    await check_invariants(world.store, NS)


async def test_a_mark_rests_on_who_supersedes_now(interrupted):
    world = interrupted
    await create(world, "a")
    world.store.before("update", MEMORIES, lambda: create(world, "c", supersedes="a"))
    await create(world, "b", supersedes="a")
    assert await marks(world) == {"a": "c"}
    await check_invariants(world.store, NS)


async def test_a_mark_of_one_deleted_meanwhile_is_not_left(interrupted):
    world = interrupted
    await create(world, "a")

    async def gone() -> None:
        await world.another_process().services.memories.memories.delete(NS, "b", "")

    world.store.before("update", MEMORIES, gone)
    await create(world, "b", supersedes="a")
    assert await marks(world) == {}
    await check_invariants(world.store, NS)


async def test_a_circle_is_broken_in_the_memory_as_it_is_by_then(interrupted):
    world = interrupted
    for one, other in ("ab", "ba"):
        await create(world, one)
        await world.store.update(MEMORIES, NS, memory_point(NS, one), set={"supersedes": other})
    world.store.before("update", MEMORIES, lambda: edit(world, "a", title="edited"))
    with pytest.raises(RequestInvalidError):
        await world.services.memories.lineage.follow(Note(NS, "note", "a", ("b",)))
    left = await get(world, "a")
    assert (left.content.title, left.content.supersedes, left.revision) == ("edited", "", 3)


async def test_one_superseded_since_it_was_seen_is_not_deleted_as_seen(interrupted):
    world = interrupted
    await create(world, "a")
    memories = world.services.memories.memories
    record = await memories.find_record(NS, "a")
    assert record is not None
    await create(world, "b", supersedes="a")
    assert not await memories.delete_as_seen(record)
    assert await listed(world) == {"a", "b"}


# --- validity ---------------------------------------------------------------------------------


async def test_recall_finds_what_is_true_now_or_as_of_a_time(world):
    start = world.clock.now()
    hour = 60 * TTL
    await create(world, "old", valid_from=start - 3 * hour, valid_until=start - hour)
    await create(world, "now", valid_from=start - hour)
    await create(world, "always")
    await create(world, "soon", valid_from=start + hour)
    await create(world, "ending", valid_until=start + hour)
    assert await found(world) == {"now", "always", "ending"}
    assert await found(world, start - 4 * hour) == set()
    assert await found(world, start - 2 * hour) == {"old"}
    assert await found(world, start - hour) == {"now"}
    assert await found(world, start) == {"now", "always", "ending"}
    assert await found(world, start + hour) == {"now", "always", "soon"}
    world.clock.advance(3600)
    assert await found(world) == {"now", "always", "soon"}
    assert len(await listed(world)) == 5


async def test_a_successor_hides_the_old_one_only_from_its_beginning_on(world):
    start = world.clock.now()
    await create(world, "a")
    await create(world, "b", supersedes="a", valid_from=start + TTL)
    assert await found(world) == {"a"}
    assert await found(world, start + TTL - 1) == {"a"}
    assert await found(world, start + TTL) == {"b"}
    world.clock.advance(MINUTE)
    assert await found(world) == {"b"}
    assert await found(world, start) == {"a"}


async def test_a_moved_beginning_moves_the_end_of_what_is_superseded(world):
    start = world.clock.now()
    await create(world, "a", valid_from=1)
    await create(world, "b", supersedes="a")
    await edit(world, "b", valid_from=start - 5)
    assert (await get(world, "a")).superseded_time == start - 5
    assert await found(world, start - 6) == {"a"}
    assert await found(world, start - 5) == {"b"}
    await edit(world, "b", valid_from=None)
    assert (await get(world, "a")).superseded_time == start
    await check_invariants(world.store, NS)


async def test_times_that_cross_are_refused(world):
    start = world.clock.now()
    bad: list[dict[str, int]] = [
        {"valid_from": 5, "valid_until": 5},
        {"valid_from": start + 2, "valid_until": start + 1},
        {"valid_until": start},
        {"valid_until": start - TTL},
    ]
    await create(world, "a")
    for times in bad:
        with pytest.raises(RequestInvalidError, match="later than valid_from") as caught:
            await create(world, "new", **times)
        assert caught.value.violations[0].rule == "memory.valid_until.order"
        with pytest.raises(RequestInvalidError, match="later than valid_from"):
            await edit(world, "a", **times)
    assert await listed(world) == {"a"}


async def test_a_request_sent_again_once_the_memory_has_ended_answers_alike(world):
    until = world.clock.now() + TTL
    first = await create(world, "a", request_id="r", valid_until=until)
    world.clock.advance(2 * MINUTE)
    assert await create(world, "a", request_id="r", valid_until=until) == first


async def test_the_context_of_a_task_shows_what_is_true_now(world):
    await create(world, "a")
    await create(world, "b", supersedes="a")
    await create(world, "c", valid_from=world.clock.now() + TTL)
    context = await world.services.task_contexts.gather(NS, ContextRequest(task="fact"))
    assert {hit.thing.memory_id for hit in context.memories} == {"b"}
