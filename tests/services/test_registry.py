"""The registry: what it makes of the kinds there are, and that a new one is a module and a line."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lot_grpc.domain.change import ChangeType, ResourceKind
from lot_grpc.domain.errors import EtagMismatchError
from lot_grpc.domain.policy import NamespacePolicy, PolicyEdit
from lot_grpc.domain.transfer import ExportSpec, ImportTerms
from lot_grpc.services.records.collections import POLICIES, TEXT_VECTOR, TOMBSTONES
from lot_grpc.services.registry import Registry
from lot_grpc.services.reindex.epochs import stored_name
from lot_grpc.services.resources import REGISTRY, RESOURCES
from lot_grpc.services.transfer.importer import ImportRun
from lot_grpc.testing.faults import FaultInjectingStore, InjectedFault, When
from lot_grpc.testing.hashing import HashingEmbedder
from lot_grpc.testing.in_memory import InMemoryStore
from tests.contract.clock import FixedClock
from tests.services.watching import change_watcher
from tests.services.widget import MOST, WIDGET, WIDGETS, WidgetNotFoundError, Widgets, widget_point
from tests.services.world import NS, World, open_world, rows, save, sweep

WITH_WIDGETS = Registry((*RESOURCES, WIDGET))

# --- the kinds there are ----------------------------------------------------------------------


def test_every_kind_of_the_contract_is_there_in_its_order() -> None:
    assert list(REGISTRY.resources) == list(ResourceKind)


def test_each_collection_is_declared_once() -> None:
    with pytest.raises(ValueError, match="collection of one name"):
        Registry((*RESOURCES, replace(WIDGET, collection=RESOURCES[0].collection)))


def test_what_belongs_to_itself_cannot_be_put_in_order() -> None:
    export = WIDGET.collection.export
    assert export is not None
    circular = replace(WIDGET.collection, export=replace(export, parents=(WIDGETS,)))
    with pytest.raises(ValueError, match="belong to each other"):
        Registry((replace(WIDGET, collection=circular),))


def test_policies_are_exported_behind_all_others() -> None:
    assert list(WITH_WIDGETS.exported)[-2:] == [WIDGETS, POLICIES]


def test_what_a_point_of_the_registry_needs_is_there() -> None:
    for resource in (*REGISTRY.watched.values(), *REGISTRY.seeded):
        assert resource.point is not None, "it is found by its id"
    for name in REGISTRY.embedded:
        one = REGISTRY.collections[name]
        assert (one.text_of is None) is bool(one.query_key), "there is one text to embed"
    for resource in REGISTRY.retained:
        assert resource.retention is not None
        keys = resource.collection.indexes.keys()
        assert keys >= {*resource.retention.age_keys, "sort_key"}


# --- a new kind: one module and one line --------------------------------------------------------


@pytest.fixture
async def world() -> World:
    return await open_world(registry=WITH_WIDGETS)


def widgets_of(world: World) -> Widgets:
    return Widgets(world.services.runtime)


async def test_it_is_created_once_read_listed_edited_and_deleted(world: World) -> None:
    widgets = widgets_of(world)
    one = await widgets.create(NS, "one", request_id="r")
    assert await widgets.create(NS, "one", request_id="r") == one
    others = [await widgets.create(NS, f"more {n}") for n in range(2)]
    assert await widgets.get(NS, one.widget_id) == one
    page, after = await widgets.list_page(NS, None, 2, None)
    assert page == others[::-1]
    assert (await widgets.list_page(NS, None, 2, after))[0] == [one]
    edited = await widgets.rename(NS, one.widget_id, "renamed", one.etag)
    assert await widgets.get(NS, one.widget_id) == edited
    with pytest.raises(EtagMismatchError):
        await widgets.rename(NS, one.widget_id, "again", one.etag)
    await widgets.delete(NS, one.widget_id)
    for call in (widgets.get(NS, one.widget_id), widgets.create(NS, "one", request_id="r")):
        with pytest.raises(WidgetNotFoundError):
            await call


async def test_a_delete_that_died_is_finished() -> None:
    clock = FixedClock()
    store = FaultInjectingStore(InMemoryStore(clock))
    world = await open_world(store, clock, registry=WITH_WIDGETS)
    one = await widgets_of(world).create(NS, "one")
    store.fail_at(2, When.BEFORE)
    with pytest.raises(InjectedFault):
        await widgets_of(world).delete(NS, one.widget_id)
    store.revive()
    world = world.another_process()
    assert (await world.services.housekeeping.roll_forward(starting=True)).counts["deletes"] == 1
    with pytest.raises(WidgetNotFoundError):
        await widgets_of(world).get(NS, one.widget_id)


async def test_it_is_exported_and_imported(world: World) -> None:
    made = [await widgets_of(world).create(NS, f"w{n}") for n in range(3)]
    moved = [row async for row, _ in world.services.transfer.exporter.rows(ExportSpec(NS))]
    counts = await world.services.transfer.exporter.counts(ExportSpec(NS))
    assert {kind: count for kind, count in counts.items() if count} == {"widget": 3}
    there = await open_world(registry=WITH_WIDGETS)
    run = ImportRun(ImportTerms())
    await there.services.transfer.importer.take(run, moved)
    assert run.stored == {"widget": 3}
    assert (await widgets_of(there).list_page(NS, None, 9, None))[0] == made[::-1]
    (record, *_) = await there.store.scroll(WIDGETS, NS, (), limit=9, vectors=True)
    assert TEXT_VECTOR in record.vectors


async def test_it_is_watched(world: World) -> None:
    widgets = widgets_of(world)
    before = await widgets.create(NS, "before")
    async with change_watcher(world, from_start=True, resource_kinds=("widget",)) as watcher:
        await watcher.until(lambda: len(watcher.events) == 1)
        one = await widgets.create(NS, "one")
        await watcher.until(lambda: len(watcher.events) == 2)
        await save(world)  # which is not watched
        await widgets.rename(NS, one.widget_id, "two", one.etag)
        await watcher.until(lambda: len(watcher.events) == 3)
        await widgets.delete(NS, one.widget_id)
        await watcher.until(lambda: len(watcher.events) == 4)
    assert [(one.type, one.id) for one in watcher.events] == [
        (ChangeType.STORED, before.widget_id),
        (ChangeType.STORED, one.widget_id),
        (ChangeType.UPDATED, one.widget_id),
        (ChangeType.DELETED, one.widget_id),
    ]
    assert watcher.events[0].thing == before
    assert watcher.events[0].resource_kind == "widget"


async def test_it_is_kept_within_its_bound(world: World) -> None:
    widgets = widgets_of(world)
    made = [await widgets.create(NS, f"w{n}") for n in range(MOST + 2)]
    edit = PolicyEdit(NamespacePolicy(max_patterns=9), frozenset({"max_patterns"}))
    stored = await world.services.retention.policies.update(NS, edit, "")
    assert await world.services.retention.sweep.pending(NS, stored.policy) == {"WIDGET": 2}
    assert await sweep(world) == [(NS, {"WIDGET": 2})]
    assert (await widgets.list_page(NS, None, 99, None))[0] == made[:1:-1]


async def test_it_is_listed_and_cleared(world: World) -> None:
    await widgets_of(world).create(NS, "one")
    await save(world)
    (usage,) = (await world.services.clearing.namespaces.page(9, "")).items
    assert usage.record_counts == {"pattern": 1, "widget": 1}
    assert await world.services.clearing.clearer.count(NS, ["widget"]) == {"widget": 1}
    assert await world.services.clearing.clearer.clear(NS, ["widget"]) == {"widget": 1}
    assert await rows(world.store, WIDGETS) == []
    await widgets_of(world).create(NS, "two")
    assert await world.services.clearing.clearer.clear(NS) == {"pattern": 1, "widget": 1}
    assert await rows(world.store, WIDGETS) == []
    (mark,) = await rows(world.store, TOMBSTONES)
    assert mark.payload["resource_kind"] == ""


async def test_it_expires(world: World) -> None:
    await widgets_of(world).create(NS, "one", expire_time=world.clock.now() + 1)
    world.clock.advance(1)
    assert await world.services.housekeeping.drop_expired() == 1
    assert await world.store.expired(WIDGETS, limit=9) == []


async def test_it_is_embedded_anew_by_another_model() -> None:
    clock, store = FixedClock(), InMemoryStore(FixedClock())
    world = await open_world(store, clock, registry=WITH_WIDGETS)
    one = await widgets_of(world).create(NS, "one")

    async def another(_: str) -> HashingEmbedder:
        return HashingEmbedder(32)

    world.services.reindexer._open_model = another
    steps = [step async for step in world.services.reindexer.run("another")]
    assert steps[-1].done == 1
    point = widget_point(NS, one.widget_id)
    record = (await store.get(WIDGETS, NS, [point], vectors=True))[point]
    assert stored_name(TEXT_VECTOR, 1) in record.vectors
    assert world.services.runtime.model.contract == HashingEmbedder(32).contract
