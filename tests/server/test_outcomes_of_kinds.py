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


async def store(lot: Any, key: str) -> None:
    """Store an ``x`` of a kind."""
    if key == "pattern_id":
        await lot.patterns.SavePattern(pattern={"task": QUERY}, pattern_id="x")
    elif key == "memory_id":
        await lot.memories.CreateMemory(memory={"content": QUERY}, memory_id="x")
    elif key == "episode_id":
        await lot.episodes.RecordEpisode(
            episode={
                "task": QUERY,
                "status": episode_pb2.EPISODE_STATUS_FAILED,
                "error": {"type": "TimeoutError", "message": "TimeoutError: no answer in 30 s"},
            },
            episode_id="x",
        )
    else:
        await lot.memories.SaveErrorSolution(
            error_solution={"error_message": "KeyError: 'kid'", "resolution": "reload the keys"},
            error_solution_id="x",
        )


@pytest.fixture
async def filled(lot: Any) -> Any:
    """One ``x`` of each kind."""
    for key in FIELDS:
        await store(lot, key)
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


async def _anew(lot: Any, key: str) -> None:
    """Delete ``x`` of a kind, and store another one under its ID."""
    service = {"pattern_id": lot.patterns, "episode_id": lot.episodes}.get(key, lot.memories)
    kind = "".join(word.title() for word in key.removesuffix("_id").split("_"))
    await getattr(service, f"Delete{kind}")(**{key: "x"})
    lot.clock.advance(1)
    await store(lot, key)


@pytest.mark.parametrize("written", [False, True], ids=["waiting", "written"])
@of_each_kind
async def test_what_was_stored_anew_under_the_id_was_not_shown(filled, key, written):
    _, retrieval_id = await shown(filled, key)
    if written:
        await filled.learning.ListRetrievals()
    record = filled.patterns.RecordOutcome
    given: dict[str, Any] = {f"{key}s": ["x"], "outcome": SUCCESS}
    await record(**given, retrieval_id=retrieval_id)
    await _anew(filled, key)
    failed = await failure(record(**given, retrieval_id=retrieval_id))
    assert (failed.code, failed.reason) == ("INVALID_ARGUMENT", "NOT_IN_RETRIEVAL")
    assert "a deleted record with the same ID is another one" in failed.message
    assert not (await filled.patterns.ListOutcomes(**{key: "x"})).outcomes
    receipt = await filled.learning.GetRetrieval(retrieval_id=retrieval_id)
    assert not receipt.retrieval.outcomes
    counted = await record(**given, query=QUERY)
    assert getattr(counted, FIELDS[key])[0].outcomes.success_count == 1
    _, again = await shown(filled, key)
    counted = await record(**given, retrieval_id=again)
    assert getattr(counted, FIELDS[key])[0].outcomes.success_count == 2


async def test_what_was_edited_since_was_shown(filled):
    _, retrieval_id = await shown(filled, "memory_id")
    filled.clock.advance(1)
    await filled.memories.UpdateMemory(
        memory_id="x", memory={"title": "another"}, update_mask={"paths": ["title"]}
    )
    counted = await filled.patterns.RecordOutcome(
        memory_ids=["x"], outcome=SUCCESS, retrieval_id=retrieval_id
    )
    assert counted.memories[0].outcomes.success_count == 1


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
