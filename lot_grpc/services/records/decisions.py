"""Decision ⇄ Record."""

from __future__ import annotations

from lot_grpc.domain.decision import (
    Decision,
    DecisionContent,
    DecisionFilter,
    DecisionOutcome,
)
from lot_grpc.domain.ids import point_id
from lot_grpc.domain.outcomes import Outcome
from lot_grpc.ports import Condition, Equals, Missing, Not, Payload, Record
from lot_grpc.services.records.collections import SORT_KEY
from lot_grpc.services.records.fields import (
    FieldCodec,
    after,
    any_of,
    before,
    label_keys,
    label_pairs,
)

REVISION = "result_revision"
"""Increases with every recorded outcome of a decision."""

PENDING = "pending_requests"
"""Requests whose outcome was applied and that may be repeated."""

_CONTENT = FieldCodec(DecisionContent)


def decision_point(namespace: str, decision_id: str) -> str:
    """The point id of a decision."""
    return point_id(namespace, "decision", decision_id)


def decision_record(decision: Decision, sort_key: int) -> Record:
    """Encode a decision without an outcome."""
    payload = {
        **_CONTENT.write(decision.content),
        **label_keys(decision.content.labels),
        "decision_id": decision.decision_id,
        "create_time": decision.create_time,
        REVISION: 1,
        PENDING: [],
        SORT_KEY: sort_key,
    }
    point = decision_point(decision.namespace, decision.decision_id)
    return Record(point, decision.namespace, payload)


def result_payload(result: DecisionOutcome) -> Payload:
    """The keys that an outcome writes; together they replace an earlier one."""
    return {
        "outcome": result.outcome.value,
        "result": {
            "time": result.outcome_time,
            "note": result.note,
            **({} if result.reward is None else {"reward": result.reward}),
        },
    }


def decision_from_record(record: Record) -> Decision:
    """Decode the decision of a record."""
    payload = record.payload
    result = None
    if "outcome" in payload:
        stored = payload["result"]
        result = DecisionOutcome(
            Outcome(payload["outcome"]), stored["time"], stored.get("reward"), stored["note"]
        )
    return Decision(
        record.namespace,
        payload["decision_id"],
        _CONTENT.read(payload),
        payload["create_time"],
        result,
        payload.get("feedback_reward"),
        payload[REVISION],
    )


def decision_conditions(criteria: DecisionFilter) -> list[Condition]:
    """A filter as conditions."""
    where: list[Condition] = [
        *any_of("agent_role", criteria.agent_roles),
        *any_of("chosen_option", criteria.chosen_options),
        *any_of("outcome", criteria.outcomes),
        *any_of("category", criteria.categories),
        *any_of("episode_id", criteria.episode_ids),
        *any_of("task_id", criteria.task_ids),
        *any_of("tags", criteria.tags_any),
        *(Equals("label_pairs", pair) for pair in label_pairs(criteria.labels)),
        *after("create_time", criteria.created_after),
        *before("create_time", criteria.created_before),
    ]
    if criteria.pending is not None:
        without = Missing("outcome")
        where.append(without if criteria.pending else Not(without))
    return where
