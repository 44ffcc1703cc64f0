"""Exports and imports between stores: deaths, conflicts, order, other models."""

from __future__ import annotations

import itertools
import threading
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from lot_grpc.domain import error_solution as error_solutions
from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.error_text import signature
from lot_grpc.domain.errors import ImportConflictError
from lot_grpc.domain.outcomes import Outcome
from lot_grpc.domain.policy import NamespacePolicy, PolicyEdit
from lot_grpc.domain.query import MemoryFilter, PatternFilter
from lot_grpc.domain.transfer import ExportSpec, ImportConflictPolicy, ImportTerms
from lot_grpc.ports import CollectionSpec, Equals, Record
from lot_grpc.services.outcomes.outcomes import OutcomeDraft
from lot_grpc.services.patterns.drafts import Dedupe
from lot_grpc.services.preferences.preferences import PreferenceDraft
from lot_grpc.services.records.collections import (
    META,
    OUTCOMES,
    PATTERNS,
    REPLICAS,
    REQUESTS,
    SELECTIONS,
    SORT_KEY,
    TOMBSTONES,
    TRAJECTORIES,
)
from lot_grpc.services.resources import REGISTRY
from lot_grpc.services.transfer.importer import ImportRun
from lot_grpc.services.transfer.rows import Row
from lot_grpc.testing.faults import FaultInjectingStore, InjectedFault, When
from lot_grpc.testing.in_memory import InMemoryStore
from tests.contract.clock import FixedClock
from tests.services.invariants import check_contents, check_invariants
from tests.services.world import (
    NS,
    STATE,
    SharedStore,
    World,
    decision,
    end,
    error_solution,
    feedback,
    learning_event,
    memory,
    of_pattern,
    open_world,
    outcome,
    save,
    start,
    steps,
    whole,
)


async def fill(world: World) -> None:
    """A little of everything that hangs together."""
    services = world.services
    named = (await save(world, "log in", language="python")).pattern.pattern_id
    await save(world, "deploy", pattern_id="p")
    await save(world, "deploy better", pattern_id="q", supersedes="p")
    for number in range(3):
        await outcome(world, named, "p", query=f"how {number}")
    await outcome(world, "p", outcome=Outcome.FAILURE)
    await feedback(world, "p", helpful=True)
    await services.memories.memories.create(NS, memory(memory_id="m"))
    await services.errors.solutions.save(NS, error_solution(error_solution_id="s"))
    await services.episodes.creator.record(NS, whole(3, episode_id="e"))
    await services.episodes.creator.start(NS, start(episode_id="r"))
    await services.learning.learning_events.record(NS, learning_event())
    await services.learning.decisions.record(NS, decision(decision_id="d"))


async def rows_of(world: World, namespace: str = NS, **asked: Any) -> list[Row]:
    exported = world.services.transfer.exporter.rows(ExportSpec(namespace, **asked))
    return [row async for row, _ in exported]


def moved(rows: list[Row], namespace: str) -> list[Row]:
    """As the server reads them for another namespace."""
    return [
        replace(
            row,
            record=replace(
                row.record,
                id=row.kind.point(namespace, row.record.payload),
                namespace=namespace,
            ),
        )
        for row in rows
    ]


def told(rows: list[Row]) -> list[tuple[str, Any, int, bool]]:
    return [(row.kind.collection, row.record.payload, row.birth, row.claimed) for row in rows]


async def take(
    world: World,
    rows: list[Row],
    conflict: ImportConflictPolicy = ImportConflictPolicy.FAIL,
    size: int = 7,
) -> ImportRun:
    """Import rows in messages of a few."""
    run = ImportRun(ImportTerms(conflict))
    for start_ in range(0, len(rows), size):
        await world.services.transfer.importer.take(run, rows[start_ : start_ + size])
    return run


# --- deaths -----------------------------------------------------------------------------------


async def dying(store_type: type[InMemoryStore]) -> AsyncIterator[tuple[World, list[Row], Any]]:
    """For each write and each side of it: a store whose import died there, restarted."""
    clock = FixedClock()
    source = await open_world(InMemoryStore(clock), clock)
    await fill(source)
    rows = await rows_of(source)
    for n in itertools.count(1):
        for when in (When.BEFORE, When.AFTER):
            store = FaultInjectingStore(store_type(clock))
            world = await open_world(store, clock)
            store.fail_at(n, when)
            try:
                await take(world, rows)
            except InjectedFault:
                store.revive()
                yield world.another_process(), rows, (n, when)
            else:
                assert n > 10
                return


@pytest.mark.parametrize("store_type", [InMemoryStore, SharedStore])
async def test_an_import_that_died_anywhere_is_completed_by_sending_it_again(store_type):
    async for world, rows, _ in dying(store_type):
        run = await take(world, rows)
        assert run.imported + run.unchanged == len(rows)
        assert told(await rows_of(world)) == told(rows)
        assert (await take(world, rows)).unchanged == len(rows)
        await check_invariants(world.store, NS)
        await check_contents(world, NS, ("log in",))


async def test_what_was_rolled_forward_between_a_death_and_the_rest_is_as_it_was():
    """Nothing that an import has stored makes the server count, merge or abandon anything."""
    async for world, rows, _ in dying(InMemoryStore):
        await world.services.housekeeping.roll_forward(starting=True)
        await take(world, rows)
        await world.services.housekeeping.roll_forward(starting=True)
        assert told(await rows_of(world)) == told(rows)


@pytest.mark.parametrize("conflict", [ImportConflictPolicy.SKIP, ImportConflictPolicy.OVERWRITE])
async def test_an_import_over_other_things_that_died_comes_to_what_one_without_death_does(conflict):
    clock = FixedClock()
    source = await open_world(InMemoryStore(clock), clock)
    await fill(source)
    rows = await rows_of(source)

    async def other(store: Any) -> World:
        world = await open_world(store, clock)
        await save(world, "brew coffee", pattern_id="p")
        await outcome(world, "p", query="coffee")
        await feedback(world, "p", helpful=False)
        await world.services.memories.memories.create(NS, memory("tea", memory_id="m"))
        await world.services.episodes.creator.record(
            NS, whole(5, episode_id="e", end=end(summary="x"))
        )
        return world

    expected = await other(InMemoryStore(clock))
    await take(expected, rows, conflict)
    for n in itertools.count(1):
        store = FaultInjectingStore(InMemoryStore(clock))
        world = await other(store)
        store.fail_at(n, When.AFTER)
        try:
            await take(world, rows, conflict)
        except InjectedFault:
            store.revive()
        else:
            return
        world = world.another_process()
        await take(world, rows, conflict)
        assert contents(await rows_of(world)) == contents(await rows_of(expected))


def contents(rows: list[Row]) -> list[tuple[str, Any]]:
    """Without what differs between two worlds that were filled alike."""
    made = {SORT_KEY, "outcome_id", "feedback_id", "pattern_id", "resource_id"}
    return sorted(
        (
            row.kind.collection,
            repr([(k, v) for k, v in row.record.payload.items() if k not in made]),
        )
        for row in rows
    )


# --- what is moved, and what is not -------------------------------------------------------------


def test_each_collection_is_moved_or_left_out_on_purpose():
    specs: list[CollectionSpec] = REGISTRY.collection_specs(8)
    exported = REGISTRY.exported
    left_out = {META, REPLICAS, REQUESTS, TOMBSTONES, SELECTIONS, TRAJECTORIES}
    assert {spec.name for spec in specs} == {*exported} | left_out
    assert not left_out & exported.keys()
    assert {one.resource_kind for one in exported.values() if one.is_thing} == set(ResourceKind)


def test_what_hangs_on_a_thing_comes_behind_it():
    seen: set[str] = set()
    payload = {
        "pattern_id": "x", "episode_id": "x", "session_id": "x", "key": "x", "outcome_id": "x",
        "resource_kind": "memory", "resource_id": "x",
    }  # fmt: skip
    for kind in REGISTRY.exported.values():
        if kind.rule.parent is not None:
            place = kind.rule.parent(NS, payload)
            assert place is not None
            assert place[0] in seen
            assert seen >= {*kind.rule.parents}
        seen.add(kind.collection)


async def test_an_export_says_nothing_of_work_that_is_not_done():
    """An outcome that a process counted and did not settle is exported as one that is done."""
    clock = FixedClock()
    store = FaultInjectingStore(InMemoryStore(clock))
    world = await open_world(store, clock)
    await save(world, "deploy", pattern_id="p")
    store.fail_at(3, When.BEFORE)  # the fact, the counters, and then
    with pytest.raises(InjectedFault):
        await world.services.outcomes.recorder.record(NS, OutcomeDraft(("p",), Outcome.SUCCESS))
    store.revive()
    rows = await rows_of(world)
    there = await open_world(InMemoryStore(clock), clock)
    await take(there, rows)
    await there.services.housekeeping.roll_forward(starting=True)
    await check_invariants(there.store, NS)
    assert (await there.services.patterns.patterns.get(NS, "p")).outcomes.usage_count == 1


async def test_what_hangs_on_nothing_is_not_exported():
    world = await open_world()
    await save(world, pattern_id="p")
    await outcome(world, "p")
    (entry,) = await world.store.scroll(OUTCOMES, NS, [], limit=9)
    await world.store.put(
        OUTCOMES,
        [replace(entry, id="6f0f5a7e-0d0b-5c1e-9a53-1f2d6c0e4b11",
                 payload={**entry.payload, "resource_id": "gone"})],
    )  # fmt: skip
    assert [row.kind.resource_kind for row in await rows_of(world)] == [
        ResourceKind.PATTERN,
        ResourceKind.OUTCOME,
    ]


async def test_what_hangs_on_a_thing_that_was_deleted_since_is_skipped():
    clock = FixedClock()
    source, target = await open_world(), await open_world()
    del clock
    await fill(source)
    rows = await rows_of(source)
    await take(target, rows)
    await target.services.patterns.patterns.delete(NS, "p", "")
    logs = [
        row for row in rows
        if row.kind.rule.parent
        and "p" in (row.record.payload.get("pattern_id"), row.record.payload.get("resource_id"))
    ]  # fmt: skip
    assert len(logs) > 5
    run = await take(target, logs)
    assert (run.skipped, run.imported) == (len(logs), 0)
    await save(target, "another", pattern_id="p")
    assert (await take(target, logs)).skipped == len(logs)
    assert await target.store.count(OUTCOMES, NS, [Equals("resource_id", "p")]) == 0


async def test_an_imported_log_can_be_corrected_and_goes_with_its_pattern():
    source, target = await open_world(), await open_world()
    await fill(source)
    await take(target, await rows_of(source))
    from lot_grpc.services.outcomes.outcome_log import CorrectionDraft

    page = await target.services.outcomes.log.list_page(NS, of_pattern("p"), 10, None)
    first = page.items[0].recorded.outcome_id
    await target.services.outcomes.log.correct(NS, CorrectionDraft(first, Outcome.SUCCESS))
    await check_invariants(target.store, NS)
    await target.services.patterns.patterns.delete(NS, "p", "")
    await check_invariants(target.store, NS)


async def test_the_worth_of_actions_is_moved_without_the_steps_behind_it():
    source, target = await open_world(), await open_world()
    await source.services.learning.step_recorder.record(NS, steps(("a", 0.5), ("b", 1.0)))
    await take(target, await rows_of(source))
    wanted = await source.services.learning.action_values.best(NS, STATE, 5)
    assert len(wanted) == 2
    assert await target.services.learning.action_values.best(NS, STATE, 5) == wanted
    await target.services.learning.step_recorder.record(NS, steps(("a", 0.5)))
    await source.services.learning.step_recorder.record(NS, steps(("a", 0.5)))
    assert await target.services.learning.action_values.best(
        NS, STATE, 5
    ) == await source.services.learning.action_values.best(NS, STATE, 5)


# --- order ------------------------------------------------------------------------------------


async def test_things_of_one_sort_key_are_all_exported_and_gone_on_from():
    """As two processes may give; more than are read at once."""
    world = await open_world()
    await save(world, pattern_id="p")
    (one,) = await world.store.scroll(PATTERNS, NS, [], limit=1)
    many = []
    for number in range(150):
        payload = {**one.payload, "pattern_id": f"p{number}"}
        payload[SORT_KEY] = one.payload[SORT_KEY] + (number >= 20) + (number >= 140)
        many.append(Record(REGISTRY.exported[PATTERNS].point(NS, payload), NS, payload))
    await world.store.put(PATTERNS, many)
    ask = ExportSpec(NS)
    found = [(row, place) async for row, place in world.services.transfer.exporter.rows(ask)]
    ids = [row.record.payload["pattern_id"] for row, _ in found]
    assert len(ids) == len(set(ids)) == 151
    for place in range(0, 151, 13):
        rest = world.services.transfer.exporter.rows(ask, found[place][1])
        assert [row.record.payload["pattern_id"] async for row, _ in rest] == ids[place + 1 :]


async def test_an_export_into_another_namespace_comes_in_the_same_order():
    world = await open_world()
    await fill(world)
    rows = await rows_of(world)
    await take(world, moved(rows, "other"))
    assert told(await rows_of(world, "other")) == told(rows)
    assert told(await rows_of(world)) == told(rows)


# --- conflicts and claims ---------------------------------------------------------------------


async def test_a_conflict_names_the_thing_and_keeps_what_came_before():
    source, target = await open_world(), await open_world()
    await save(source, "one", pattern_id="a")
    await save(source, "two", pattern_id="b")
    await save(target, "other", pattern_id="b")
    with pytest.raises(ImportConflictError) as caught:
        await take(target, await rows_of(source))
    assert caught.value.metadata["id"] == "b"
    assert (await target.services.patterns.patterns.get(NS, "a")).content.task == "one"
    assert (await target.services.patterns.patterns.get(NS, "b")).content.task == "other"


async def test_the_same_thing_used_since_is_a_conflict():
    source, target = await open_world(), await open_world()
    await save(source, "one", pattern_id="a")
    rows = await rows_of(source)
    await take(target, rows)
    await outcome(target, "a")
    with pytest.raises(ImportConflictError):
        await take(target, rows)
    run = await take(target, rows, ImportConflictPolicy.SKIP)
    assert (run.skipped, run.unchanged) == (1, 0)
    assert (await target.services.patterns.patterns.get(NS, "a")).outcomes.usage_count == 1


async def test_a_claim_of_a_pattern_that_is_gone_is_moved_to_the_imported_one():
    source, target = await open_world(), await open_world()
    imported = (await save(source, "log in")).pattern.pattern_id
    local = (await save(target, "log in")).pattern.pattern_id
    await target.store.delete(PATTERNS, NS, [])  # and its claim stays, as after a death
    await take(target, await rows_of(source))
    again = await save(target, "log in")
    assert (again.created, again.pattern.pattern_id) == (False, imported)
    assert local != imported


async def test_a_claim_of_a_pattern_that_is_here_stays():
    source, target = await open_world(), await open_world()
    await save(source, "log in")
    local = (await save(target, "log in")).pattern.pattern_id
    await take(target, await rows_of(source))
    assert (await save(target, "log in", dedupe=Dedupe.EXACT)).pattern.pattern_id == local


async def test_etags_outlive_a_restart_and_an_import(world: World) -> None:
    await fill(world)
    await world.services.preferences.put(NS, PreferenceDraft("k", 1))
    await world.services.retention.policies.update(
        NS, PolicyEdit(NamespacePolicy(9), frozenset({"max_episodes"})), ""
    )
    there = await open_world(InMemoryStore(world.clock), world.clock)
    await take(there, await rows_of(world))

    async def etags(one: World) -> list[str]:
        services = one.services
        patterns = (
            await services.patterns.patterns.list_page(NS, PatternFilter(), 100, None)
        ).items
        memories = (await services.memories.memories.list_page(NS, MemoryFilter(), 100, None)).items
        preferences = (await services.preferences.list_page(NS, (), 100, None)).items
        policy = await services.retention.policies.get(NS)
        things: list[Any] = [*patterns, *memories, *preferences, policy]
        assert all((patterns, memories, preferences))
        return [thing.etag for thing in things]

    before = await etags(world)
    assert await etags(world.another_process()) == before
    assert await etags(there) == before


async def test_errors_are_read_beside_the_loop(monkeypatch):
    """Else the long ones of an import would keep every other call waiting."""
    source, target = await open_world(), await open_world()
    await source.services.errors.solutions.save(NS, error_solution("Error: no part 1 of it\n" * 80))
    rows = await rows_of(source)
    threads = []
    read = signature.read_error

    def spy(*given):
        threads.append(threading.current_thread())
        return read(*given)

    monkeypatch.setattr(error_solutions, "read_error", spy)
    assert (await take(target, rows)).stored[ResourceKind.ERROR_SOLUTION] == 1
    assert threads
    assert threading.main_thread() not in threads
