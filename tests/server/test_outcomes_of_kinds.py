"""Outcomes of memories, episodes and error solutions, on the wire."""

from __future__ import annotations

from typing import Any

import pytest

from lot_grpc.pb.lot.v1 import episode_pb2, outcome_pb2
from tests.server.wire import failure

SUCCESS, FAILURE = outcome_pb2.OUTCOME_SUCCESS, outcome_pb2.OUTCOME_FAILURE
QUERY = "rotate the signing keys of the gateway"
FIELDS = {
    "pattern_id": "patterns",
    "memory_id": "memories",
    "episode_id": "episodes",
    "error_solution_id": "error_solutions",
}
of_each_kind = pytest.mark.parametrize("key", FIELDS)


@pytest.fixture
async def filled(lot: Any) -> Any:
    """One ``x`` of each kind."""
    await lot.patterns.SavePattern(pattern={"task": QUERY}, pattern_id="x")
    await lot.memories.CreateMemory(memory={"content": QUERY}, memory_id="x")
    await lot.episodes.RecordEpisode(
        episode={
            "task": QUERY,
            "status": episode_pb2.EPISODE_STATUS_FAILED,
            "error": {"type": "TimeoutError", "message": "TimeoutError: no answer in 30 s"},
        },
        episode_id="x",
    )
    await lot.memories.SaveErrorSolution(
        error_solution={"error_message": "KeyError: 'kid'", "resolution": "reload the keys"},
        error_solution_id="x",
    )
    return lot


async def shown(lot: Any, key: str) -> tuple[Any, str]:
    """The hit of a recall of a kind, if any, and the retrieval's id."""
    if key == "pattern_id":
        answer = await lot.patterns.RecallPatterns(query=QUERY, explain=True)
    elif key == "memory_id":
        answer = await lot.memories.SearchMemories(query=QUERY, explain=True)
    elif key == "episode_id":
        answer = await lot.episodes.RecallEpisodes(query=QUERY, explain=True)
    else:
        answer = await lot.memories.FindErrorSolutions(error_message="KeyError: 'kid'")
    return answer.hits[0], answer.retrieval_id


@of_each_kind
async def test_an_outcome_is_counted_listed_corrected_and_shown(filled, key):
    _, retrieval_id = await shown(filled, key)
    record = filled.patterns.RecordOutcome
    given = {f"{key}s": ["x"], "outcome": FAILURE, "retrieval_id": retrieval_id, "note": "no"}
    recorded = await record(**given)
    [counted] = getattr(recorded, FIELDS[key])
    assert counted.outcomes.failure_count == 1
    [entry] = (await filled.patterns.ListOutcomes(**{key: "x"})).outcomes
    assert getattr(entry, key) == "x"
    assert [name for name in FIELDS if getattr(entry, name)] == [key]
    assert (entry.outcome, entry.note) == (FAILURE, "no")
    hit, _ = await shown(filled, key)
    if key != "error_solution_id":
        [learned] = hit.outcome_evidence
        assert (learned.query, learned.trial_count, learned.success_count) == (QUERY, 1, 0)
    corrected = await filled.patterns.CorrectOutcome(outcome_id=recorded.outcome_id)
    [undone] = getattr(corrected, FIELDS[key])
    assert undone.outcomes.usage_count == 0


@of_each_kind
async def test_what_was_not_shown_is_refused_by_name(filled, key):
    other = "pattern_id" if key != "pattern_id" else "memory_id"
    _, retrieval_id = await shown(filled, other)
    failed = await failure(
        filled.patterns.RecordOutcome(
            **{f"{key}s": ["x"]}, outcome=SUCCESS, retrieval_id=retrieval_id
        )
    )
    assert (failed.code, failed.reason) == ("INVALID_ARGUMENT", "NOT_IN_RETRIEVAL")
    assert failed.metadata == {"retrieval_id": retrieval_id, "ids": "x"}
    assert "Name only what it showed" in failed.message
    assert not (await filled.patterns.ListOutcomes(**{key: "x"})).outcomes


@of_each_kind
async def test_what_is_not_there_is_refused_with_its_own_reason(lot, key):
    reason = f"{key.removesuffix('_id').upper()}_NOT_FOUND"
    failed = await failure(lot.patterns.RecordOutcome(**{f"{key}s": ["x"]}, outcome=SUCCESS))
    assert (failed.code, failed.reason) == ("NOT_FOUND", reason)
    failed = await failure(lot.patterns.ListOutcomes(**{key: "x"}))
    assert (failed.code, failed.reason) == ("NOT_FOUND", reason)


async def test_a_context_shows_things_of_every_kind_and_what_its_warnings_cite(filled):
    task = f"{QUERY}: KeyError: 'kid'"
    context = await filled.memories.GetTaskContext(task=task, min_similarity=0)
    assert [list(one.episode_ids) for one in context.warnings] == [["x"]]
    recorded = await filled.patterns.RecordOutcome(
        **{f"{key}s": ["x"] for key in FIELDS},
        outcome=SUCCESS,
        retrieval_id=context.retrieval_id,
    )
    for name in FIELDS.values():
        [counted] = getattr(recorded, name)
        assert counted.outcomes.success_count == 1


async def test_nothing_of_a_recall_was_used(filled):
    _, retrieval_id = await shown(filled, "memory_id")
    recorded = await filled.patterns.RecordOutcome(outcome=FAILURE, retrieval_id=retrieval_id)
    assert recorded.outcome_id
    for name in FIELDS.values():
        assert not getattr(recorded, name)
    for key in FIELDS:
        assert not (await filled.patterns.ListOutcomes(**{key: "x"})).outcomes
    hit, _ = await shown(filled, "memory_id")
    assert not hit.outcome_evidence
    assert not hit.memory.HasField("outcomes")


async def test_a_list_of_outcomes_is_of_one_thing(lot):
    for ids in ({}, {"pattern_id": "x", "memory_id": "x"}):
        failed = await failure(lot.patterns.ListOutcomes(**ids))
        assert failed.fields == {"": "list_outcomes.one_id"}
        assert "exactly one of" in failed.message


async def test_at_most_a_hundred_ids_in_all(lot):
    ids = {"pattern_ids": [f"p{n}" for n in range(50)], "memory_ids": [f"m{n}" for n in range(51)]}
    failed = await failure(lot.patterns.RecordOutcome(**ids, outcome=SUCCESS))
    assert failed.fields == {"": "record_outcome.at_most_100"}
