"""SeedKnowledge on the wire: what it answers, and what it leaves alone."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from lot_grpc.knowledge import built_in_packs
from lot_grpc.pb.lot.v1 import memory_pb2, pattern_pb2
from tests.server.wire import failure

SIZES = {pack.name: pack.size for pack in built_in_packs()}
EVERYTHING = sum(SIZES.values())


async def test_all_packs_are_stored_once_and_counted_by_group_and_kind(lot):
    first = await lot.admin.SeedKnowledge()
    assert (first.created_count, first.existing_count, first.skipped_deleted_count) == (
        EVERYTHING,
        0,
        0,
    )
    assert dict(first.created_by_pack) == SIZES
    assert set(SIZES) == {"design_patterns", "best_practices", "common_errors"}
    resource_kinds = {"PATTERN": "design_patterns", "MEMORY": "best_practices"}
    resource_kinds["ERROR_SOLUTION"] = "common_errors"
    assert dict(first.created_counts) == {
        resource_kind: SIZES[pack] for resource_kind, pack in resource_kinds.items()
    }
    assert all(pack.description and pack.created_count for pack in first.packs)
    again = await lot.admin.SeedKnowledge()
    assert (again.created_count, again.existing_count) == (0, EVERYTHING)
    assert set(again.created_by_pack.values()) == {0}
    assert (
        len((await lot.patterns.ListPatterns(page_size=1000)).patterns) == SIZES["design_patterns"]
    )


async def test_each_kind_is_what_it_should_be_and_is_found(lot):
    await lot.admin.SeedKnowledge()
    pattern = (
        await lot.patterns.GetPattern(pattern_id="seed:design_patterns:repository.go")
    ).pattern
    assert (pattern.kind, pattern.language) == (pattern_pb2.PATTERN_KIND_CODE, "go")
    assert pattern.code_kind == pattern_pb2.CODE_KIND_CLASS
    assert dict(pattern.labels) == {"seed": "design_patterns"}
    hits = (
        await lot.patterns.RecallPatterns(
            query="Share one instance across a Python process", filter={"languages": ["py"]}
        )
    ).hits
    assert hits[0].pattern.pattern_id == "seed:design_patterns:singleton.python"
    memory = (
        await lot.memories.GetMemory(memory_id="seed:best_practices:type_hints.python")
    ).memory
    assert memory.kind == memory_pb2.MEMORY_KIND_BEST_PRACTICE
    found = await lot.memories.ListErrorSolutions(
        filter={"signatures": ["ModuleNotFoundError: No module named '<name>'"]}
    )
    [solution] = found.error_solutions
    assert solution.error_solution_id == "seed:common_errors:module_not_found.python"
    assert len(solution.steps) > 3


async def test_a_dry_run_tells_the_same_and_stores_nothing(lot):
    told = await lot.admin.SeedKnowledge(dry_run=True)
    assert (await lot.patterns.ListPatterns()).patterns == []
    assert told == await lot.admin.SeedKnowledge()


async def test_just_the_packs_that_are_named(lot):
    answer = await lot.admin.SeedKnowledge(packs=["common_errors"])
    assert [pack.name for pack in answer.packs] == ["common_errors"]
    assert answer.created_count == SIZES["common_errors"]
    assert (await lot.patterns.ListPatterns()).patterns == []


async def test_a_pack_that_is_not_there_is_refused_with_those_that_are(lot):
    failed = await failure(lot.admin.SeedKnowledge(packs=["common_errors", "recipes"]))
    assert (failed.code, failed.fields) == ("INVALID_ARGUMENT", {"packs[1]": "packs.known"})
    assert "best_practices" in failed.message
    assert (await lot.memories.ListErrorSolutions()).error_solutions == []


async def test_an_edit_and_outcomes_survive(lot):
    await lot.admin.SeedKnowledge()
    pattern_id = "seed:design_patterns:factory.python"
    await lot.patterns.UpdatePattern(pattern_id=pattern_id, pattern={"title": "ours"})
    await lot.patterns.RecordOutcome(pattern_ids=[pattern_id], outcome=2)
    before = (await lot.patterns.GetPattern(pattern_id=pattern_id)).pattern
    await lot.admin.SeedKnowledge(restore_deleted=True)
    after = (await lot.patterns.GetPattern(pattern_id=pattern_id)).pattern
    assert after == before
    assert (after.title, after.outcomes.usage_count) == ("ours", 1)


def _deletes(lot: Any) -> list[Any]:
    return [
        lot.patterns.DeletePattern(pattern_id="seed:design_patterns:factory.python"),
        lot.memories.DeleteMemory(memory_id="seed:best_practices:async_await.go"),
        lot.memories.DeleteErrorSolution(
            error_solution_id="seed:common_errors:timeout.asyncio.python"
        ),
    ]


async def test_what_was_deleted_stays_away_until_it_is_asked_back(lot):
    await lot.admin.SeedKnowledge()
    await asyncio.gather(*_deletes(lot))
    again = await lot.admin.SeedKnowledge()
    assert (again.created_count, again.skipped_deleted_count) == (0, 3)
    assert again.existing_count == EVERYTHING - 3
    assert {pack.name: pack.skipped_deleted_count for pack in again.packs} == dict.fromkeys(
        SIZES, 1
    )
    back = await lot.admin.SeedKnowledge(restore_deleted=True)
    assert (back.created_count, back.skipped_deleted_count) == (3, 0)
    assert set(back.created_counts.values()) == {1}
    assert (await lot.admin.SeedKnowledge()).existing_count == EVERYTHING


async def test_calls_at_once_store_each_thing_once(lot):
    answers = await asyncio.gather(*(lot.admin.SeedKnowledge() for _ in range(4)))
    assert sum(answer.created_count for answer in answers) == EVERYTHING
    assert all(a.created_count + a.existing_count == EVERYTHING for a in answers)


async def test_another_namespace_has_its_own(lot):
    await lot.admin.SeedKnowledge()
    other = lot.on(f"{lot.namespace}-other")
    assert (await other.patterns.ListPatterns()).patterns == []
    assert (await other.admin.SeedKnowledge()).created_count == EVERYTHING


@pytest.mark.parametrize("packs", [["Bad Name"], [""], ["a", "a"]])
async def test_packs_of_another_form_are_refused(lot, packs):
    failed = await failure(lot.admin.SeedKnowledge(packs=packs))
    assert failed.reason == "REQUEST_INVALID"
