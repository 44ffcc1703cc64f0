"""Finding, exporting and erasing what belongs to a subject."""

from __future__ import annotations

from typing import Any

import grpc.aio
import pytest

from lot_grpc.pb.lot.v1 import outcome_pb2
from lot_grpc.pb.lot.v1 import resource_kind_pb2 as kinds
from tests.server.service import Lot

ALICE = {"subject": "alice"}
SUCCESS = outcome_pb2.OUTCOME_SUCCESS


async def store(lot: Lot, name: str, text: str) -> None:
    """Something of each kind that belongs to a subject."""
    labels = {"subject": name}
    own = {"labels": labels, "metadata": {"text": text}}
    await lot.memories.CreateMemory(memory={"content": text, **own}, memory_id=f"m-{name}")
    await lot.patterns.SavePattern(pattern={"task": text, **own}, pattern_id=f"p-{name}")
    await lot.episodes.StartEpisode(episode={"task": text, **own}, episode_id=f"e-{name}")
    event = {"event_type": "x", "data": {"text": text}}
    await lot.episodes.RecordEvent(episode_id=f"e-{name}", event=event)
    await lot.memories.SaveErrorSolution(
        error_solution={"error_message": text, "resolution": text, **own},
        error_solution_id=f"s-{name}",
    )
    await lot.learning.RecordLearningEvent(
        learning_event={"event_type": "x", "text": text, **own}, learning_event_id=f"l-{name}"
    )
    await lot.learning.RecordDecision(
        decision={"context": text, "chosen_option": "o", **own}, decision_id=f"d-{name}"
    )
    for number in range(2):
        await lot.memories.PutPreference(
            key=f"{name}:theme", value={"string_value": f"{number} {text}"}
        )
    await lot.memories.PutSessionValue(
        session_id=f"{name}:1", key="k", value={"string_value": text}
    )
    await lot.memories.AppendSessionMessage(
        session_id=f"{name}:1", message={"role": "user", "content": text}
    )
    await lot.patterns.RecordOutcome(
        pattern_ids=[f"p-{name}"], memory_ids=[f"m-{name}"], outcome=SUCCESS, query=text, note=text
    )


async def use_of_others(lot: Lot, text: str) -> None:
    """Recalls about the subject whose outcome is one of a record that stays."""
    await lot.patterns.SavePattern(pattern={"task": "shared"}, pattern_id="shared")
    found = await lot.patterns.RecallPatterns(query=f"what does Alice want, {text}")
    await lot.patterns.RecordOutcome(
        pattern_ids=["shared"], outcome=SUCCESS, retrieval_id=found.retrieval_id, note=text
    )


COUNTS = {
    "MEMORY": 1, "PATTERN": 1, "EPISODE": 1, "ERROR_SOLUTION": 1, "LEARNING_EVENT": 1,
    "DECISION": 1, "PREFERENCE": 1, "SESSION": 1,
}  # fmt: skip


EXPORTED: dict[str | None, int] = {
    "memory": 1, "pattern": 1, "episode": 1, "episode_event": 1, "error_solution": 1,
    "learning_event": 1, "decision": 1, "preference": 2, "session": 2, "retrieval": 1,
    "outcome": 2, None: 2,
}  # fmt: skip
"""By the field of the export record; None are context stats. A former value counts, and a part."""


async def exported(lot: Lot, **given: Any) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    async for message in lot.admin.Export(**given):
        for record in message.records:
            found.setdefault(record.WhichOneof("record"), []).append(str(record))
    return found


async def test_a_dry_run_tells_what_belongs_to_it(lot: Lot) -> None:
    await store(lot, "alice", "her text")
    await store(lot, "bob", "his text")
    found = await lot.admin.EraseSubject(subject="alice", dry_run=True)
    assert {**found.deleted_counts} == COUNTS
    assert found.deleted_count == 8
    ids = {(kinds.ResourceKind.Name(one.resource_kind), one.id) for one in found.records}
    assert ("RESOURCE_KIND_PREFERENCE", "alice:theme") in ids
    assert ("RESOURCE_KIND_EPISODE", "e-alice") in ids
    assert all("alice" in name for _, name in ids)
    again = await lot.admin.EraseSubject(subject="alice", dry_run=True)
    assert again == found, "nothing was deleted"


async def test_it_erases_what_belongs_to_it_and_nothing_else(lot: Lot) -> None:
    await store(lot, "bob", "his text")
    before = await exported(lot, subject="bob")
    await store(lot, "alice", "her text")
    await use_of_others(lot, "her text")
    expected = await lot.admin.EraseSubject(subject="alice", dry_run=True)
    erased = await lot.admin.EraseSubject(subject="alice")
    assert {**erased.deleted_counts} == {**COUNTS, "RETRIEVAL": 1}
    assert erased.removed_text_count == 1
    assert (expected.deleted_counts, expected.removed_text_count) == (erased.deleted_counts, 1)
    assert {one.id for one in expected.records} == {one.id for one in erased.records}
    left = await exported(lot)
    texts = [text for records in left.values() for text in records]
    assert not [text for text in texts if "her text" in text or "alice" in text.lower()]
    assert await exported(lot, subject="bob") == before
    shared = (await lot.patterns.GetPattern(pattern_id="shared")).pattern
    assert shared.outcomes.usage_count == 1, "what was counted stays counted"
    again = await lot.admin.EraseSubject(subject="alice")
    assert (again.deleted_count, again.removed_text_count) == (0, 0)


async def test_an_export_has_what_an_erasure_would_erase(lot: Lot) -> None:
    await store(lot, "alice", "her text")
    await use_of_others(lot, "her text")
    await store(lot, "bob", "his text")
    found = await exported(lot, subject="alice")
    texts = [text for records in found.values() for text in records]
    assert all("alice" in text.lower() or "her text" in text for text in texts)
    assert {kind: len(records) for kind, records in found.items()} == EXPORTED
    assert len(found["outcome"]) == 2, "those of its records, not of the shared pattern"
    summary = None
    async for message in lot.admin.Export(subject="alice", dry_run=True):
        summary = message.summary
    assert summary is not None
    assert {**summary.record_counts} | COUNTS == {**summary.record_counts}


async def test_what_showed_a_record_goes_with_it(lot: Lot) -> None:
    await lot.memories.CreateMemory(memory={"content": "tea", "labels": ALICE}, memory_id="m")
    await lot.memories.CreateMemory(memory={"content": "coffee"}, memory_id="other")
    shown = await lot.memories.SearchMemories(query="tea")
    assert "m" in [hit.memory.memory_id for hit in shown.hits]
    erased = await lot.admin.EraseSubject(subject="alice")
    assert {**erased.deleted_counts} == {"MEMORY": 1, "RETRIEVAL": 1}
    with pytest.raises(grpc.aio.AioRpcError) as gone:
        await lot.learning.GetRetrieval(retrieval_id=shown.retrieval_id)
    assert gone.value.code() == grpc.StatusCode.NOT_FOUND


async def test_names_are_whole_and_other_namespaces_are_left_alone(lot: Lot) -> None:
    for label in ("alice", "alice2", "Alice", "ali"):
        await lot.memories.CreateMemory(memory={"content": label, "labels": {"subject": label}})
    await lot.memories.PutPreference(key="alice2:theme", value={"bool_value": True})
    await lot.on(f"{lot.namespace}-2").memories.CreateMemory(
        memory={"content": "x", "labels": ALICE}
    )
    erased = await lot.admin.EraseSubject(subject="alice")
    assert {**erased.deleted_counts} == {"MEMORY": 1}
    other = await lot.on(f"{lot.namespace}-2").admin.EraseSubject(subject="alice", dry_run=True)
    assert other.deleted_count == 1
