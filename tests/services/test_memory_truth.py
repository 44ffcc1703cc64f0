"""What supersedes what among memories, and when each is true."""

from __future__ import annotations

from typing import Any

import pytest

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.errors import LotError, MemoryNotFoundError, RequestInvalidError
from lot_grpc.domain.query import MemoryFilter
from lot_grpc.domain.transfer import ExportSpec, ImportConflictPolicy, ImportTerms
from lot_grpc.services.lineage.lineage import Relation
from lot_grpc.services.memories.drafts import Created
from lot_grpc.services.records.collections import MEMORIES
from lot_grpc.services.seeder import Seeds
from lot_grpc.services.transfer.importer import ImportRun
from tests.services.circles import check_closing_a_circle_at_once
from tests.services.invariants import check_invariants
from tests.services.steps.namespaces import sets_policy
from tests.services.truth import TTL, create, edit, found, get, listed, marks, three
from tests.services.world import (
    MINUTE,
    NS,
    World,
    memory,
    open_world,
    sweep,
)

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
    async def supersede(world: World, name: str, superseded: str) -> None:
        await edit(world, name, supersedes=superseded)

    async def supersedes(world: World, name: str) -> str:
        return (await get(world, name)).content.supersedes

    await check_closing_a_circle_at_once(seed, create, supersede, supersedes)


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
