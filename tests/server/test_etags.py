"""The etags of all that has one: they fit one life of one thing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.server.service import SERVICES, Lot
from tests.server.wire import failure

OUTPUT = {
    "Pattern", "Memory", "ErrorSolution", "Episode", "Preference", "NamespacePolicy", "Decision",
    "RetrievedItem",
}  # fmt: skip
"""The messages that have one. Those of an episode and of an item are only read."""


@dataclass(frozen=True)
class Kind:
    """How to make one thing, and what takes its etag."""

    make: Callable[[Lot], Awaitable[Any]]
    edit: Callable[[Lot, str], Awaitable[Any]]
    delete: Callable[[Lot, str], Awaitable[Any]]


async def _pattern(lot: Lot) -> Any:
    return (await lot.patterns.SavePattern(pattern={"task": "t"}, pattern_id="x")).pattern


async def _memory(lot: Lot) -> Any:
    return (await lot.memories.CreateMemory(memory={"content": "c"}, memory_id="x")).memory


async def _error_solution(lot: Lot) -> Any:
    solution = {"error_message": "e", "resolution": "r"}
    answer = await lot.memories.SaveErrorSolution(error_solution=solution, error_solution_id="x")
    return answer.error_solution


async def _decision(lot: Lot) -> Any:
    decision = {"context": "c", "chosen_option": "o"}
    return (await lot.learning.RecordDecision(decision=decision, decision_id="x")).decision


async def _decision_after(lot: Lot, etag: str) -> Any:
    """What changes a decision takes no etag; so the delete stands for the edit that is refused."""
    if (await lot.learning.GetDecision(decision_id="x")).decision.etag != etag:
        return await lot.learning.DeleteDecision(decision_id="x", etag=etag)
    return await lot.learning.RecordDecisionOutcome(decision_id="x", outcome=1)


async def _preference(lot: Lot) -> Any:
    return (await lot.memories.PutPreference(key="x", value={"bool_value": True})).preference


async def _policy(lot: Lot) -> Any:
    return (await lot.admin.UpdateNamespacePolicy(policy={"max_patterns": 7})).policy


async def _clear(lot: Lot, _: str) -> Any:
    space = lot.namespace
    return await lot.admin.ClearNamespace(
        confirm_namespace=space, resource_kinds=["RESOURCE_KIND_POLICY"]
    )


KINDS = {
    "pattern": Kind(
        _pattern,
        lambda lot, etag: lot.patterns.UpdatePattern(
            pattern_id="x", pattern={"title": "T"}, etag=etag
        ),
        lambda lot, etag: lot.patterns.DeletePattern(pattern_id="x", etag=etag),
    ),
    "memory": Kind(
        _memory,
        lambda lot, etag: lot.memories.UpdateMemory(
            memory_id="x", memory={"title": "T"}, etag=etag
        ),
        lambda lot, etag: lot.memories.DeleteMemory(memory_id="x", etag=etag),
    ),
    "error solution": Kind(
        _error_solution,
        lambda lot, etag: lot.memories.UpdateErrorSolution(
            error_solution_id="x", error_solution={"context": "T"}, etag=etag
        ),
        lambda lot, etag: lot.memories.DeleteErrorSolution(error_solution_id="x", etag=etag),
    ),
    "decision": Kind(
        _decision,
        _decision_after,
        lambda lot, etag: lot.learning.DeleteDecision(decision_id="x", etag=etag),
    ),
    "preference": Kind(
        _preference,
        lambda lot, etag: lot.memories.PutPreference(
            key="x", value={"bool_value": False}, etag=etag
        ),
        lambda lot, etag: lot.memories.DeletePreference(key="x", etag=etag),
    ),
    "policy": Kind(
        _policy,
        lambda lot, etag: lot.admin.UpdateNamespacePolicy(policy={"max_patterns": 8}, etag=etag),
        _clear,
    ),
}


def test_the_table_has_all_that_take_an_etag():
    methods = [m for service in SERVICES.values() for m in service.methods]
    taking = {m.name for m in methods if "etag" in m.input_type.fields_by_name}
    assert taking == {
        "UpdatePattern", "DeletePattern", "UpdateMemory", "DeleteMemory", "PutPreference",
        "DeletePreference", "UpdateNamespacePolicy", "UpdateErrorSolution", "DeleteErrorSolution",
        "DeleteDecision",
    }  # fmt: skip
    files = {m.output_type.file for m in methods}
    files |= {dependency for file in files for dependency in file.dependencies}
    messages = {one for file in files for one in file.message_types_by_name.values()}
    having = {m.name for m in messages if "etag" in m.fields_by_name}
    assert having - {f"{name}Request" for name in taking} == OUTPUT | {"ReviewItem"}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
async def test_an_etag_of_a_deleted_thing_never_fits_the_next_of_its_id(lot, kind):
    first = await kind.make(lot)
    await kind.delete(lot, first.etag)
    lot.clock.advance(1)
    second = await kind.make(lot)
    assert second.etag != first.etag
    assert (await failure(kind.edit(lot, first.etag))).reason == "ETAG_MISMATCH"
    if kind is not KINDS["policy"]:
        assert (await failure(kind.delete(lot, first.etag))).reason == "ETAG_MISMATCH"
    edited = await kind.edit(lot, second.etag)
    assert edited is not None
    assert (await failure(kind.edit(lot, second.etag))).reason == "ETAG_MISMATCH"


async def test_etags_of_two_things_that_were_made_together_differ(lot):
    items = [{"memory": {"content": f"c{n}"}, "memory_id": f"m{n}"} for n in range(2)]
    made = (await lot.memories.BatchCreateMemories(items=items)).results
    assert made[0].response.memory.etag != made[1].response.memory.etag
