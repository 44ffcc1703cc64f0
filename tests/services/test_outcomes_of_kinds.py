"""Outcomes of whatever is recalled: counted, undone and deleted by one mechanism."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.errors import (
    EpisodeNotFoundError,
    ErrorSolutionNotFoundError,
    MemoryNotFoundError,
    NotInRetrievalError,
    PatternNotFoundError,
    RetrievalNotFoundError,
)
from lot_grpc.domain.ids import ResourceRef, new_id
from lot_grpc.domain.memory import MemoryContent
from lot_grpc.domain.outcomes import NO_OUTCOMES, Outcome
from lot_grpc.domain.policy import NamespacePolicy
from lot_grpc.domain.retrieval import RetrievalMethod, RetrievalOptions, RetrievedItem
from lot_grpc.domain.transfer import ExportSpec, ImportTerms
from lot_grpc.services.memories.drafts import MemoryEdit
from lot_grpc.services.outcomes.evidence import OutcomesOnQueries
from lot_grpc.services.outcomes.outcome_log import CorrectionDraft
from lot_grpc.services.outcomes.outcomes import OutcomeDraft, Recorded
from lot_grpc.services.records.collections import CONTEXT_STATS, EPISODES, MEMORIES, OUTCOMES
from lot_grpc.services.retrievals.retrievals import BegunRetrieval
from lot_grpc.services.transfer.importer import ImportRun
from lot_grpc.testing.in_memory import InMemoryStore
from tests.contract.clock import FixedClock
from tests.services.invariants import check_invariants
from tests.services.world import (
    NS,
    Interrupted,
    World,
    draft,
    end,
    error_solution,
    memory,
    open_world,
    payloads,
    start,
    sweep,
)

QUERY = "how do I log in"


async def make_pattern(world: World, ttl: int | None) -> None:
    await world.services.patterns.writer.save(NS, draft("Log in", pattern_id="x", ttl=ttl))


async def make_memory(world: World, ttl: int | None) -> None:
    await world.services.memories.memories.create(NS, memory("Log in", memory_id="x", ttl=ttl))


async def make_episode(world: World, ttl: int | None) -> None:
    await world.services.episodes.creator.start(NS, start("Log in", episode_id="x"))
    await world.services.episodes.ender.end(NS, "x", end(), "")


async def make_solution(world: World, ttl: int | None) -> None:
    given = error_solution("Log in", error_solution_id="x", ttl=ttl)
    await world.services.errors.solutions.save(NS, given)


@dataclass(frozen=True)
class Kind:
    make: Callable[[World, int | None], Awaitable[None]]
    missing: type[Exception]
    expires: bool = True


KINDS = {
    ResourceKind.PATTERN: Kind(make_pattern, PatternNotFoundError),
    ResourceKind.MEMORY: Kind(make_memory, MemoryNotFoundError),
    ResourceKind.EPISODE: Kind(make_episode, EpisodeNotFoundError, expires=False),
    ResourceKind.ERROR_SOLUTION: Kind(make_solution, ErrorSolutionNotFoundError),
}
EXPIRING = [kind for kind, one in KINDS.items() if one.expires]
of_each_kind = pytest.mark.parametrize("kind", KINDS)
S, F, P = Outcome.SUCCESS, Outcome.FAILURE, Outcome.PARTIAL


async def record(world: World, *used: str, outcome: Outcome = S, **named: Any) -> Recorded:
    """``used``: kinds, of which ``x`` was used."""
    ids: dict[str, Any] = {f"{kind}_ids": ("x",) for kind in used}
    given = OutcomeDraft(**({"pattern_ids": ()} | ids), outcome=outcome, **named)
    return await world.services.outcomes.recorder.record(NS, given)


async def get(world: World, kind: str) -> Any:
    return await world.services.resources.of(kind).get(NS, "x")


@of_each_kind
async def test_an_outcome_is_counted_logged_and_changes_no_version(world, kind):
    await KINDS[kind].make(world, None)
    before = await get(world, kind)
    world.clock.advance(1)
    await record(world, kind, outcome=F, query=QUERY, duration=2.0, request_id="r")
    recorded = await record(world, kind, outcome=F, query=QUERY, duration=2.0, request_id="r")
    after = await get(world, kind)
    assert (after.outcomes.failure_count, after.outcomes.average_duration) == (1, 2.0)
    assert (after.etag, after.update_time) == (before.etag, before.update_time)
    found = [*recorded.patterns, *recorded.memories, *recorded.episodes, *recorded.error_solutions]
    assert found == [after]
    page = await world.services.outcomes.log.list_page(NS, ResourceRef(kind, "x"), 9, None)
    [entry] = page.items
    assert (entry.recorded.outcome_id, entry.recorded.query) == (recorded.outcome_id, QUERY)
    stats = await payloads(world, CONTEXT_STATS)
    assert len(stats) == (kind != ResourceKind.ERROR_SOLUTION)
    await check_invariants(world.store, NS)


async def test_one_call_names_several_kinds_and_is_undone_as_a_whole(world):
    for one in KINDS.values():
        await one.make(world, None)
    recorded = await record(world, *KINDS, query=QUERY)
    told: list[Any] = [
        *recorded.patterns, *recorded.memories, *recorded.episodes, *recorded.error_solutions,
    ]  # fmt: skip
    assert [one.outcomes.success_count for one in told] == [1, 1, 1, 1]
    undo = CorrectionDraft(recorded.outcome_id, F, request_id="r")
    for _ in range(2):
        undone = await world.services.outcomes.log.correct(NS, undo)
        told = [
            *undone.patterns, *undone.memories, *undone.episodes, *undone.error_solutions,
        ]  # fmt: skip
        assert [one.outcomes.failure_count for one in told] == [1, 1, 1, 1]
        assert [one.outcomes.success_count for one in told] == [0, 0, 0, 0]
    await check_invariants(world.store, NS)


@of_each_kind
async def test_what_does_not_exist_is_refused_and_nothing_is_counted(world, kind):
    for other, one in KINDS.items():
        if other != kind:
            await one.make(world, None)
    with pytest.raises(KINDS[kind].missing, match="nothing was counted"):
        await record(world, *KINDS)
    assert await payloads(world, OUTCOMES) == []
    with pytest.raises(KINDS[kind].missing):
        await world.services.outcomes.log.list_page(NS, ResourceRef(kind, "x"), 9, None)


@of_each_kind
async def test_outcomes_go_with_what_is_deleted(world, kind):
    await KINDS[kind].make(world, None)
    await record(world, kind, query=QUERY)
    await world.services.resources.of(kind).delete(NS, "x")
    assert await payloads(world, OUTCOMES) == await payloads(world, CONTEXT_STATS) == []
    await KINDS[kind].make(world, None)
    assert (await get(world, kind)).outcomes == NO_OUTCOMES


@pytest.mark.parametrize("swept", [True, False])
@pytest.mark.parametrize("kind", EXPIRING)
async def test_what_takes_the_id_of_an_expired_one_inherits_nothing(world, kind, swept):
    await KINDS[kind].make(world, 1_000_000)
    await record(world, kind, query=QUERY)
    world.clock.advance(3600 * 1_000_000)
    if swept:
        await sweep(world)
    await KINDS[kind].make(world, None)
    assert (await get(world, kind)).outcomes == NO_OUTCOMES
    assert await payloads(world, OUTCOMES) == await payloads(world, CONTEXT_STATS) == []


@of_each_kind
async def test_a_clear_of_a_kind_takes_its_outcomes_and_no_others(world, kind):
    for one in KINDS.values():
        await one.make(world, None)
    await record(world, *KINDS, query=QUERY)
    deleted = await world.services.clearing.clearer.clear(NS, (kind,))
    assert deleted == {kind: 1, ResourceKind.OUTCOME: 1}
    left = {one["resource_kind"] for one in await payloads(world, OUTCOMES)}
    assert left == {one for one in KINDS if one != kind}
    await check_invariants(world.store, NS)


async def test_two_kinds_that_are_cleared_are_counted_apart(world):
    for one in KINDS.values():
        await one.make(world, None)
    await record(world, *KINDS)
    kinds = (ResourceKind.MEMORY, ResourceKind.EPISODE)
    deleted = await world.services.clearing.clearer.clear(NS, kinds)
    assert deleted == {ResourceKind.MEMORY: 1, ResourceKind.EPISODE: 1, ResourceKind.OUTCOME: 2}


# --- edits that come between ------------------------------------------------------------------


async def interrupted() -> tuple[World, Interrupted]:
    clock = FixedClock()
    store = Interrupted(InMemoryStore(clock))
    return await open_world(store, clock), store


async def test_an_outcome_between_the_read_and_the_write_of_an_edit_is_kept():
    world, store = await interrupted()
    await make_memory(world, None)
    store.before("replace", MEMORIES, lambda: record(world, "memory"))
    edit = MemoryEdit(MemoryContent("", tags=("t",)), frozenset({"tags"}))
    await world.services.memories.memories.update(NS, "x", edit, "")
    edited = await get(world, "memory")
    assert (edited.content.tags, edited.outcomes.success_count) == (("t",), 1)
    await check_invariants(world.store, NS)


async def test_an_outcome_between_the_read_and_the_write_of_an_end_is_kept():
    world, store = await interrupted()
    await world.services.episodes.creator.start(NS, start("Log in", episode_id="x"))
    store.before("replace", EPISODES, lambda: record(world, "episode"))
    await world.services.episodes.ender.end(NS, "x", end(summary="It went well"), "")
    ended = await get(world, "episode")
    assert (ended.status.ended, ended.outcomes.success_count) == (True, 1)
    await check_invariants(world.store, NS)


# --- retrievals -------------------------------------------------------------------------------


def remembered(world: World, *shown: str) -> str:
    now = world.clock.now()
    items = [RetrievedItem(ResourceRef(kind, "x"), (now, now, 1)) for kind in shown]
    begun = BegunRetrieval(NS, new_id("r"), NamespacePolicy())
    method = RetrievalMethod.GET_TASK_CONTEXT
    world.services.runtime.retrievals.remember(
        begun, method, QUERY, [1.0] * 64, items, RetrievalOptions()
    )
    return begun.retrieval_id


@of_each_kind
async def test_what_a_retrieval_did_not_show_is_refused(world, kind):
    for one in KINDS.values():
        await one.make(world, None)
    named: dict[str, Any] = {
        "retrieval_id": remembered(world, *(one for one in KINDS if one != kind))
    }
    with pytest.raises(NotInRetrievalError, match="did not show 'x'") as caught:
        await record(world, *KINDS, **named)
    assert caught.value.metadata == {**named, "ids": "x"}
    assert await payloads(world, OUTCOMES) == []
    others = [one for one in KINDS if one != kind]
    await record(world, *others, **named)
    assert {one["resource_kind"] for one in await payloads(world, OUTCOMES)} == set(others)


async def test_an_outcome_of_a_retrieval_of_which_nothing_was_used_counts_for_nothing(world):
    for one in KINDS.values():
        await one.make(world, None)
    retrieval_id = remembered(world, *KINDS)
    for _ in range(2):
        recorded = await record(world, outcome=F, retrieval_id=retrieval_id, request_id="r")
        assert recorded == Recorded(recorded.outcome_id)
    [logged] = await payloads(world, OUTCOMES)
    assert (logged["resource_kind"], logged["retrieval_id"]) == ("retrieval", retrieval_id)
    assert (logged["query"], logged["outcome"], logged["applied"]) == (QUERY, "failure", True)
    assert await payloads(world, CONTEXT_STATS) == []
    for kind in KINDS:
        assert (await get(world, kind)).outcomes == NO_OUTCOMES
    undone = await world.services.outcomes.log.correct(NS, CorrectionDraft(recorded.outcome_id))
    assert undone == Recorded(undone.outcome_id)
    await check_invariants(world.store, NS)


async def test_a_retrieval_that_is_not_known_needs_ids_and_a_query(world):
    await make_memory(world, None)
    given: list[tuple[tuple[str, ...], str]] = [((), ""), ((), QUERY), (("memory",), "")]
    for used, query in given:
        with pytest.raises(RetrievalNotFoundError):
            await record(world, *used, retrieval_id="r-lost", query=query)
    await record(world, "memory", retrieval_id="r-lost", query=QUERY)
    assert (await get(world, "memory")).outcomes.success_count == 1


async def test_an_episode_that_runs_is_answered_with_its_events():
    world = await open_world()
    await world.services.episodes.creator.start(NS, start("Log in", episode_id="x"))
    recorded = await record(world, "episode")
    assert recorded.episodes == [await get(world, "episode")]


# --- exports and imports ----------------------------------------------------------------------


async def import_all(target: World, source: World, namespace: str) -> None:
    """Import what another store exports, under another namespace."""
    rows = []
    async for row, _ in source.services.transfer.exporter.rows(ExportSpec(NS)):
        assert "resource" not in row.record.payload
        point = row.kind.point(namespace, row.record.payload)
        rows.append(replace(row, record=replace(row.record, id=point, namespace=namespace)))
    for number in range(2):  # again: nothing changes
        run = ImportRun(ImportTerms())
        await target.services.transfer.importer.take(run, rows)
        counts = (run.imported, run.unchanged, run.skipped)
        assert counts == ((0, len(rows), 0) if number else (len(rows), 0, 0))


async def test_what_was_learned_of_every_kind_is_moved_to_another_namespace(world):
    for one in KINDS.values():
        await one.make(world, None)
    recorded = await record(world, *KINDS, query=QUERY)
    await record(world, outcome=F, retrieval_id=remembered(world, *KINDS))
    target = await open_world(clock=world.clock)
    await import_all(target, world, "other")
    await check_invariants(target.store, "other")
    for kind in KINDS:
        ref = ResourceRef(kind, "x")
        [entry] = (await target.services.outcomes.log.list_page("other", ref, 9, None)).items
        assert entry.recorded.outcome_id == recorded.outcome_id
        found = await target.services.resources.of(kind).get("other", "x")
        assert found.outcomes.success_count == 1
        if kind != ResourceKind.ERROR_SOLUTION:
            learned = OutcomesOnQueries(target.services.runtime, kind)
            vector = (await target.embedder.embed_query(QUERY)).vector
            evidence = await learned.of("other", vector, [ref.point("other")])
            assert evidence[ref.point("other")].same_query == pytest.approx((1.0, 1.0))
    await target.services.outcomes.log.correct("other", CorrectionDraft(recorded.outcome_id, F))
    await check_invariants(target.store, "other")
    for kind in KINDS:
        await target.services.resources.of(kind).delete("other", "x")
    await check_invariants(target.store, "other")


async def test_a_namespace_keeps_its_own_outcomes_though_another_has_the_same_ids(world):
    await make_memory(world, None)
    await record(world, "memory", query=QUERY)
    given = memory("Log in", memory_id="x")
    await world.services.memories.memories.create("other", given)
    found = await world.services.memories.memories.get("other", "x")
    assert found.outcomes == NO_OUTCOMES
    with pytest.raises(EpisodeNotFoundError):
        await record(world, "episode")


@of_each_kind
async def test_the_change_feed_reports_an_outcome_as_an_update(world, kind):
    await KINDS[kind].make(world, None)
    collection = world.services.resources.of(kind).spec.collection.name
    [before] = await payloads(world, collection)
    await record(world, kind)
    [after] = await payloads(world, collection)
    assert after["change_seq"] > before["change_seq"]
    assert after["stored_seq"] == before["stored_seq"]
