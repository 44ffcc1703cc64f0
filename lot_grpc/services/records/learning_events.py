"""Learning event ⇄ Record."""

from __future__ import annotations

from lot_grpc.domain.ids import point_id
from lot_grpc.domain.learning_event import (
    LearningEvent,
    LearningEventContent,
    LearningEventFilter,
)
from lot_grpc.ports import Condition, Equals, Range, Record
from lot_grpc.services.records.collections import SORT_KEY
from lot_grpc.services.records.fields import (
    FieldCodec,
    after,
    any_of,
    before,
    label_keys,
    label_pairs,
)

APPLIED = "applied"
"""False until the effects of a judgement have been applied."""


_CONTENT = FieldCodec(LearningEventContent)


def learning_event_point(namespace: str, learning_event_id: str) -> str:
    """The point id of a learning event."""
    return point_id(namespace, "learning_event", learning_event_id)


def learning_event_record(event: LearningEvent, sort_key: int, *, applied: bool = True) -> Record:
    """Encode the whole record."""
    payload = {
        **_CONTENT.write(event.content),
        **label_keys(event.content.labels),
        "learning_event_id": event.learning_event_id,
        "create_time": event.create_time,
        APPLIED: applied,
        SORT_KEY: sort_key,
    }
    if event.content.target is not None:
        payload["target_key"] = event.content.target.key
    point = learning_event_point(event.namespace, event.learning_event_id)
    return Record(point, event.namespace, payload)


def learning_event_from_record(record: Record) -> LearningEvent:
    """Decode the learning event of a record."""
    payload = record.payload
    return LearningEvent(
        record.namespace,
        payload["learning_event_id"],
        _CONTENT.read(payload),
        payload["create_time"],
    )


def learning_event_conditions(criteria: LearningEventFilter) -> list[Condition]:
    """A filter as conditions. An event without a reward meets no bound on it."""
    where: list[Condition] = [
        *any_of("event_type", criteria.event_types),
        *any_of("outcome", criteria.outcomes),
        *any_of("agent_role", criteria.agent_roles),
        *any_of("tags", criteria.tags_any),
        *(Equals("label_pairs", pair) for pair in label_pairs(criteria.labels)),
        *after("create_time", criteria.created_after),
        *before("create_time", criteria.created_before),
    ]
    if criteria.min_reward is not None or criteria.max_reward is not None:
        where.append(Range("reward", gte=criteria.min_reward, lte=criteria.max_reward))
    if criteria.target is not None:
        where.append(Equals("target_key", criteria.target.key))
    return where
