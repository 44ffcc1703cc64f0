"""Decisions on the wire: recorded, what came of them, read, listed and deleted."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from lot_grpc.pb.lot.v1 import decision_pb2, outcome_pb2
from tests.server.service import Lot, output_only
from tests.server.wire import failure

P: Any = decision_pb2
SUCCESS = outcome_pb2.OUTCOME_SUCCESS
FAILURE = outcome_pb2.OUTCOME_FAILURE
PARTIAL = outcome_pb2.OUTCOME_PARTIAL
GIVEN_BY_SERVER = (
    "decision_id", "outcome", "reward", "outcome_note", "outcome_time", "create_time", "namespace",
    "etag",
)  # fmt: skip


def whole_decision() -> Any:
    """A decision with every field that a caller can set."""
    return P.Decision(
        agent_role="planner",
        context="Where do we keep vectors?",
        options=[
            {"name": "qdrant", "description": "fast", "score": 0.0},
            {"name": "漢字"},
        ],
        chosen_option="qdrant",
        reasoning="it filters",
        confidence=0.0,
        episode_id="e-1",
        task_id="t 1",
        category="storage",
        tags=["a", "b"],
        labels={"team.name/x": "core=1"},
        metadata={"deep": [1, None, {"a": True}]},
        decision_time=datetime(2024, 1, 1, tzinfo=UTC),
    )


async def decided(lot: Lot, decision_id: str = "", **fields: Any) -> Any:
    given = {"context": "c", "chosen_option": "o", **fields}
    return (await lot.learning.RecordDecision(decision=given, decision_id=decision_id)).decision


async def listed(lot: Lot, **requested: Any) -> list[str]:
    answer = await lot.learning.ListDecisions(filter=requested, page_size=100)
    return [one.decision_id for one in answer.decisions]


async def test_every_field_comes_back_as_it_was_given(lot):
    given = whole_decision()
    unset = {f.name for f in given.DESCRIPTOR.fields} - {f.name for f, _ in given.ListFields()}
    assert unset == set(GIVEN_BY_SERVER)
    answer = await lot.learning.RecordDecision(decision=given)
    assert answer.created
    [again] = (await lot.learning.ListDecisions()).decisions
    for decision in (answer.decision, again):
        assert output_only(decision, *GIVEN_BY_SERVER) == given
        assert decision.namespace == lot.namespace
        assert decision.create_time.seconds > 0
        assert decision.outcome == outcome_pb2.OUTCOME_UNSPECIFIED
        assert not decision.HasField("reward")
        assert not decision.HasField("outcome_time")


async def test_what_is_not_said_is_absent_and_the_time_is_now(lot):
    decision = await decided(lot)
    assert not decision.HasField("confidence")
    assert decision.decision_time == decision.create_time


async def test_what_only_the_server_gives_is_ignored(lot):
    decision = await decided(lot, outcome=SUCCESS, reward=1.0, outcome_note="n", namespace="x")
    assert decision.outcome == outcome_pb2.OUTCOME_UNSPECIFIED
    assert not decision.HasField("reward")
    assert (decision.outcome_note, decision.namespace) == ("", lot.namespace)


async def test_an_outcome_is_recorded_and_replaced(lot):
    await decided(lot, "d")
    first = await lot.learning.RecordDecisionOutcome(
        decision_id="d", outcome=SUCCESS, reward=0.0, note="fine"
    )
    assert first.decision.outcome == SUCCESS
    assert first.decision.HasField("reward")
    assert first.decision.outcome_note == "fine"
    assert first.decision.outcome_time.seconds > 0
    second = await lot.learning.RecordDecisionOutcome(decision_id="d", outcome=FAILURE)
    assert (second.decision.outcome, second.decision.outcome_note) == (FAILURE, "")
    assert not second.decision.HasField("reward")
    assert list((await lot.learning.ListDecisions()).decisions) == [second.decision]


async def test_an_outcome_again_by_request_does_not_undo_a_later_one(lot):
    await decided(lot, "d")
    requested: dict[str, Any] = {"decision_id": "d", "outcome": SUCCESS, "request_id": "r"}
    await lot.learning.RecordDecisionOutcome(**requested)
    await lot.learning.RecordDecisionOutcome(decision_id="d", outcome=PARTIAL)
    answer = await lot.learning.RecordDecisionOutcome(**requested)
    assert answer.decision.outcome == PARTIAL
    failed = await failure(lot.learning.RecordDecisionOutcome(**{**requested, "outcome": FAILURE}))
    assert failed.reason == "REQUEST_ID_REUSED"


async def test_an_unknown_decision_is_not_found(lot):
    await decided(lot, "d")
    other = lot.on(f"{lot.namespace}-other")
    failed = await failure(other.learning.RecordDecisionOutcome(decision_id="d", outcome=SUCCESS))
    assert (failed.code, failed.reason) == ("NOT_FOUND", "DECISION_NOT_FOUND")
    assert failed.metadata["id"] == "d"


async def test_an_id_in_use_is_answered_for_the_same_content_and_refused_for_other(lot):
    first = await decided(lot, "d")
    again = await lot.learning.RecordDecision(
        decision={"context": "c", "chosen_option": "o"}, decision_id="d"
    )
    assert (again.decision, again.created) == (first, False)
    failed = await failure(
        lot.learning.RecordDecision(
            decision={"context": "c", "chosen_option": "other"}, decision_id="d"
        )
    )
    assert (failed.code, failed.reason) == ("ALREADY_EXISTS", "DECISION_ID_IN_USE")
    failed = await failure(
        lot.learning.RecordDecision(
            decision={"context": "c", "chosen_option": "o", "decision_id": "x"}, decision_id="y"
        )
    )
    assert failed.fields == {"decision.decision_id": "decision_id.beside"}


async def test_the_same_request_makes_one_decision(lot):
    requested = {"decision": {"context": "c", "chosen_option": "o"}, "request_id": "r"}
    first = await lot.learning.RecordDecision(**requested)
    assert await lot.learning.RecordDecision(**requested) == first
    assert len((await lot.learning.ListDecisions()).decisions) == 1


async def test_decisions_are_listed_newest_first_page_by_page(lot):
    for number in range(7):
        await decided(lot, f"d{number}", category="even" if number % 2 == 0 else "odd")
    found, token = [], ""
    while True:
        page = await lot.learning.ListDecisions(
            filter={"categories": ["even"]}, page_size=2, page_token=token
        )
        found += [one.decision_id for one in page.decisions]
        token = page.next_page_token
        if not token:
            break
    assert found == ["d6", "d4", "d2", "d0"]
    page = await lot.learning.ListDecisions(page_size=2)
    failed = await failure(
        lot.learning.ListDecisions(filter={"pending": True}, page_token=page.next_page_token)
    )
    assert failed.reason == "PAGE_TOKEN_MISMATCH"
    assert len((await lot.learning.ListDecisions()).decisions) == 7
    assert await listed(lot.on(f"{lot.namespace}-other")) == []


FILTERS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"agent_role": "r"}, {"agent_roles": ["r", "x"]}),
    ({"chosen_option": "p"}, {"chosen_options": ["p"]}),
    ({"category": "k"}, {"categories": ["k"]}),
    ({"episode_id": "e"}, {"episode_ids": ["e"]}),
    ({"task_id": "t"}, {"task_ids": ["t"]}),
    ({"tags": ["a", "b"]}, {"tags_any": ["b", "z"]}),
    ({"labels": {"team": "core"}}, {"labels": {"team": "core"}}),
]


@pytest.mark.parametrize(("fields", "requested"), FILTERS)
async def test_each_filter_narrows(lot, fields, requested):
    await decided(lot, "other")
    await decided(lot, "one", **fields)
    assert await listed(lot, **requested) == ["one"]


async def test_decisions_are_filtered_by_what_came_of_them_and_by_time(lot):
    for name, outcome in (("s", SUCCESS), ("f", FAILURE), ("p", None)):
        await decided(lot, name)
        if outcome:
            await lot.learning.RecordDecisionOutcome(decision_id=name, outcome=outcome)
    assert await listed(lot, outcomes=[SUCCESS]) == ["s"]
    assert await listed(lot, outcomes=[SUCCESS, FAILURE]) == ["f", "s"]
    assert await listed(lot, pending=True) == ["p"]
    assert await listed(lot, pending=False) == ["f", "s"]
    assert await listed(lot, created_after=datetime(2020, 1, 1, tzinfo=UTC)) == ["p", "f", "s"]
    assert await listed(lot, created_before=datetime(2020, 1, 1, tzinfo=UTC)) == []


async def test_one_is_read_by_its_id_where_it_is(lot):
    await decided(lot, "d")
    await lot.learning.RecordDecisionOutcome(decision_id="d", outcome=SUCCESS)
    decision = (await lot.learning.GetDecision(decision_id="d")).decision
    assert decision == (await lot.learning.ListDecisions()).decisions[0]
    failed = await failure(lot.on(f"{lot.namespace}-x").learning.GetDecision(decision_id="d"))
    assert (failed.code, failed.reason) == ("NOT_FOUND", "DECISION_NOT_FOUND")


async def test_one_is_deleted_where_it_is(lot):
    await decided(lot, "d")
    other = lot.on(f"{lot.namespace}-x")
    for call in (
        other.learning.DeleteDecision(decision_id="d"),
        lot.learning.DeleteDecision(decision_id="e"),
    ):
        failed = await failure(call)
        assert (failed.code, failed.reason) == ("NOT_FOUND", "DECISION_NOT_FOUND")
    assert not (await other.learning.DeleteDecision(decision_id="d", allow_missing=True)).deleted
    assert (await lot.learning.DeleteDecision(decision_id="d")).deleted
    for call in (
        lot.learning.GetDecision(decision_id="d"),
        lot.learning.DeleteDecision(decision_id="d"),
        lot.learning.RecordDecisionOutcome(decision_id="d", outcome=SUCCESS),
        lot.learning.SubmitFeedback(reward=1.0, target={"decision_id": "d"}),
    ):
        assert (await failure(call)).reason == "DECISION_NOT_FOUND"
    assert await listed(lot) == []


async def test_an_outcome_changes_the_etag_and_a_delete_with_the_old_one_is_refused(lot):
    old = (await decided(lot, "d")).etag
    new = await lot.learning.RecordDecisionOutcome(decision_id="d", outcome=SUCCESS)
    failed = await failure(lot.learning.DeleteDecision(decision_id="d", etag=old))
    assert (failed.code, failed.reason) == ("ABORTED", "ETAG_MISMATCH")
    assert (await lot.learning.GetDecision(decision_id="d")).decision.etag == new.decision.etag
    assert (await lot.learning.DeleteDecision(decision_id="d", etag=new.decision.etag)).deleted


async def test_a_repeat_brings_back_no_deleted_decision(lot):
    requested = {"decision": {"context": "c", "chosen_option": "o"}, "request_id": "r"}
    first = (await lot.learning.RecordDecision(**requested)).decision
    came = {"decision_id": first.decision_id, "outcome": SUCCESS, "request_id": "r"}
    await lot.learning.RecordDecisionOutcome(**came)
    await lot.learning.DeleteDecision(decision_id=first.decision_id)
    failed = await failure(lot.learning.RecordDecision(**requested))
    assert failed.reason == "DECISION_NOT_FOUND"
    assert "deleted" in failed.message
    assert await listed(lot) == []
    if lot.own_clock is not None:
        lot.own_clock.advance(1)
    await decided(lot, first.decision_id, reasoning="another")
    failed = await failure(lot.learning.RecordDecisionOutcome(**came))
    assert failed.reason == "DECISION_NOT_FOUND"
    again = (await lot.learning.GetDecision(decision_id=first.decision_id)).decision
    assert again.outcome == outcome_pb2.OUTCOME_UNSPECIFIED
