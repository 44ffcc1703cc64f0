"""Memories edited, listed and deleted by a filter."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from lot_grpc.domain.errors import (
    ContentionError,
    EtagMismatchError,
    MemoryNotFoundError,
    RequestInvalidError,
)
from lot_grpc.domain.memory import (
    ConversationSummary,
    Memory,
    MemoryContent,
    MemoryKind,
    Project,
)
from lot_grpc.domain.query import MemoryFilter
from lot_grpc.services.memories import bulk_deleter as deleting
from lot_grpc.services.memories.drafts import MemoryDraft, MemoryEdit
from lot_grpc.services.records.collections import MEMORIES, PASSAGE_VECTORS, TEXT_VECTOR
from lot_grpc.services.records.memories import memory_point
from lot_grpc.testing.in_memory import InMemoryStore
from tests.contract.clock import FixedClock
from tests.services.world import NS, Interleaving, World, memory, open_world


async def create(world: World, content: str = "The port is 8080", **named: Any) -> Memory:
    draft = memory(content, **named)
    return (await world.services.memories.memories.create(NS, draft)).memory


async def update(
    world: World, memory_id: str, etag: str = "", ttl: int | None = None, **named: Any
) -> Memory:
    edit = MemoryEdit(replace(MemoryContent("unset"), **named), frozenset(named), ttl)
    return (await world.services.memories.memories.update(NS, memory_id, edit, etag)).memory


async def vectors(world: World, memory_id: str) -> Any:
    point = memory_point(NS, memory_id)
    return (await world.store.get(MEMORIES, NS, [point], vectors=True))[point].vectors


async def ids(world: World, **asked: Any) -> list[str]:
    page = await world.services.memories.memories.list_page(NS, MemoryFilter(**asked), 100, None)
    return [one.memory_id for one in page.items]


async def delete(world: World, *, dry_run: bool = False, **asked: Any) -> deleting.Deleted:
    asked_for = MemoryFilter(**asked)
    return await world.services.memories.bulk_deleter.delete(NS, asked_for, dry_run=dry_run)


# --- editing ----------------------------------------------------------------------------------


async def test_an_edit_changes_just_the_named_fields(world: World) -> None:
    made = await create(world, memory_id="m", tags=("a",), title="T", importance=0.9)
    world.clock.advance(5)
    edited = await update(world, "m", tags=(), pinned=True)
    assert edited.content == replace(made.content, tags=(), pinned=True)
    assert (edited.create_time, edited.update_time) == (made.create_time, world.clock.now())
    assert edited.etag != made.etag
    assert await world.services.memories.memories.get(NS, "m") == edited
    same = await update(world, "m", pinned=True)
    assert same == edited, "an edit that changes nothing is none"


async def test_it_is_embedded_anew_only_when_its_text_changed(world: World) -> None:
    await create(world, memory_id="m", title="T")
    before = await vectors(world, "m")
    await update(world, "m", tags=("b",), importance=0.1)
    assert await vectors(world, "m") == before
    await update(world, "m", title="Another")
    assert (await vectors(world, "m"))[TEXT_VECTOR] != before[TEXT_VECTOR]


async def test_a_long_content_made_short_loses_its_passages(world: World) -> None:
    await create(world, "word " * 1000, memory_id="m")
    assert PASSAGE_VECTORS in await vectors(world, "m")
    await update(world, "m", tags=("kept",))
    assert PASSAGE_VECTORS in await vectors(world, "m")
    await update(world, "m", content="short")
    assert PASSAGE_VECTORS not in await vectors(world, "m")


async def test_an_edit_goes_by_etag(world: World) -> None:
    made = await create(world, memory_id="m")
    edited = await update(world, "m", made.etag, tags=("b",))
    with pytest.raises(EtagMismatchError):
        await update(world, "m", made.etag, tags=("c",))
    with pytest.raises(MemoryNotFoundError):
        await update(world, "none", tags=("c",))
    assert await world.services.memories.memories.get(NS, "m") == edited


async def test_details_go_with_their_kind(world: World) -> None:
    await create(world, memory_id="m", kind=MemoryKind.PROJECT, details=Project("/x"))
    await update(world, "m", details=Project("/x", ("go",), "done"))
    assert await ids(world, project_statuses=("done",), tech_stack=("go",)) == ["m"]
    wrong: dict[str, Any]
    for wrong in ({"kind": MemoryKind.NOTE}, {"details": ConversationSummary(("a",))}):
        with pytest.raises(RequestInvalidError, match="set kind and details together"):
            await update(world, "m", **wrong)
    both: dict[str, Any] = {
        "kind": MemoryKind.CONVERSATION_SUMMARY,
        "details": ConversationSummary(("a",)),
    }
    assert (await update(world, "m", **both)).content.details == ConversationSummary(("a",))
    assert await ids(world, project_statuses=("done",)) == []
    await update(world, "m", kind=MemoryKind.NOTE, details=None)
    with pytest.raises(RequestInvalidError, match="content must not be blank"):
        await update(world, "m", content="")


async def test_an_expiry_is_set_moved_and_taken_back(world: World) -> None:
    await create(world, memory_id="m")
    set_now = await update(world, "m", ttl=10_000_000, expire_time=None)
    assert set_now.content.expire_time == world.clock.now() + 10_000_000
    assert (await update(world, "m", expire_time=None)).content.expire_time is None
    with pytest.raises(RequestInvalidError, match="must be in the future"):
        await update(world, "m", expire_time=world.clock.now())
    await update(world, "m", ttl=10_000_000, expire_time=None)
    await update(world, "m", tags=("an edit of the rest leaves it",))
    world.clock.advance(10)
    with pytest.raises(MemoryNotFoundError):
        await update(world, "m", tags=("late",))
    assert (await create(world, "new", memory_id="m")).revision == 1


@pytest.mark.parametrize("seed", range(5))
async def test_edits_at_the_same_time_all_take_place(seed: int) -> None:
    clock = FixedClock()
    world = await open_world(Interleaving(InMemoryStore(clock), seed), clock)
    await create(world, memory_id="m")
    others = [world, world.another_process()]
    named: list[dict[str, Any]] = [
        {"tags": ("t",)},
        {"title": "T"},
        {"pinned": True},
        {"content": "new"},
    ]
    edits = [update(others[n % 2], "m", **one) for n, one in enumerate(named)]
    await asyncio.gather(*edits)
    got = await world.services.memories.memories.get(NS, "m")
    want = MemoryContent("new", tags=("t",), title="T", pinned=True)
    assert (got.content, got.revision) == (want, 5)


# --- listing ----------------------------------------------------------------------------------


async def test_a_list_pages_newest_first_through_a_filter(world: World) -> None:
    for n in range(7):
        await create(world, memory_id=f"m{n}", tags=("odd",) if n % 2 else ())
    memories = world.services.memories.memories
    page = await memories.list_page(NS, MemoryFilter(tags_any=("odd",)), 2, None)
    assert [one.memory_id for one in page.items] == ["m5", "m3"]
    rest = await memories.list_page(NS, MemoryFilter(tags_any=("odd",)), 2, page.next)
    assert ([one.memory_id for one in rest.items], rest.next) == (["m1"], None)
    assert await ids(world) == [f"m{n}" for n in reversed(range(7))]


# --- deleting by a filter ---------------------------------------------------------------------


async def test_a_filter_deletes_what_it_lets_through_but_for_what_is_pinned(world: World) -> None:
    for n in range(5):
        await create(world, memory_id=f"m{n}", importance=n / 10, pinned=n == 1)
    would = await delete(world, max_importance=0.2, dry_run=True)
    assert would == deleting.Deleted(2, ("m0", "m2"))
    assert len(await ids(world)) == 5
    assert await delete(world, max_importance=0.2) == would
    assert await ids(world) == ["m4", "m3", "m1"]
    assert await delete(world, max_importance=0.2) == deleting.Deleted(0, ())
    assert await delete(world, pinned=True) == deleting.Deleted(1, ("m1",))
    assert await delete(world, pinned=False) == deleting.Deleted(2, ("m3", "m4"))


@pytest.mark.parametrize("asked", [MemoryFilter(), MemoryFilter(min_importance=0.0)])
async def test_a_filter_that_lets_all_through_is_refused(world: World, asked: MemoryFilter) -> None:
    await create(world)
    for dry_run in (True, False):
        with pytest.raises(RequestInvalidError, match="would delete everything"):
            await world.services.memories.bulk_deleter.delete(NS, asked, dry_run=dry_run)
    assert len(await ids(world)) == 1


async def test_only_the_first_hundred_are_named(world: World) -> None:
    drafts = [MemoryDraft(MemoryContent(f"fact {n}"), f"m{n:03}") for n in range(250)]
    await world.services.memories.memories.create_many(NS, drafts)
    deleted = await delete(world, max_importance=1.0)
    assert deleted.count == 250
    assert deleted.memory_ids == tuple(f"m{n:03}" for n in range(100))
    assert await ids(world) == []


@pytest.mark.parametrize("stays", [True, False])
async def test_one_edited_meanwhile_is_looked_at_again(
    world: World, monkeypatch: pytest.MonkeyPatch, stays: bool
) -> None:
    await create(world, memory_id="m", importance=0.1)
    memories = world.services.memories.memories
    delete_as_seen, edits = memories.delete_as_seen, [0.9 if stays else 0.05]

    async def edited_first(record: Any) -> bool:
        while edits:
            await update(world, "m", importance=edits.pop())
        return await delete_as_seen(record)

    monkeypatch.setattr(type(memories), "delete_as_seen", lambda _, record: edited_first(record))
    assert (await delete(world, max_importance=0.2)).count == (0 if stays else 1)
    assert await ids(world) == (["m"] if stays else [])


async def test_one_edited_again_and_again_is_told(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await create(world, memory_id="m", importance=0.1)

    async def never(record: Any) -> bool:
        return False

    monkeypatch.setattr("lot_grpc.kernel.compare_and_set.ATTEMPTS", 2)
    monkeypatch.setattr(
        type(world.services.memories.memories), "delete_as_seen", lambda _, record: never(record)
    )
    with pytest.raises(ContentionError):
        await delete(world, max_importance=0.2)
