"""Decisions, their filter and drafts."""

from __future__ import annotations

from lot_grpc.domain.decision import Decision, DecisionContent, DecisionFilter, DecisionOption
from lot_grpc.pb.lot.v1 import decision_pb2 as pb
from lot_grpc.server.convert.outcomes import OUTCOME
from lot_grpc.server.convert.patterns import same_id
from lot_grpc.server.convert.values import (
    struct_from_json,
    struct_from_pb,
    time_from_pb,
    time_to_pb,
)
from lot_grpc.services.learning.decisions import DecisionDraft, DecisionOutcomeDraft


def decision_to_pb(decision: Decision) -> pb.Decision:
    """A stored decision."""
    content, result = decision.content, decision.result
    decided = decision.create_time if content.decision_time is None else content.decision_time
    message = pb.Decision(
        decision_id=decision.decision_id,
        agent_role=content.agent_role,
        context=content.context,
        options=[
            pb.DecisionOption(name=option.name, description=option.description, score=option.score)
            for option in content.options
        ],
        chosen_option=content.chosen_option,
        reasoning=content.reasoning,
        confidence=content.confidence,
        episode_id=content.episode_id,
        task_id=content.task_id,
        category=content.category,
        tags=content.tags,
        labels=content.labels,
        decision_time=time_to_pb(decided),
        reward=decision.reward,
        create_time=time_to_pb(decision.create_time),
        namespace=decision.namespace,
        etag=decision.etag,
    )
    if content.metadata:
        message.metadata.CopyFrom(struct_from_json(content.metadata))
    if result is not None:
        message.outcome = OUTCOME.to_pb(result.outcome)
        message.outcome_note = result.note
        message.outcome_time.CopyFrom(time_to_pb(result.outcome_time))
    return message


def draft_from_pb(message: pb.RecordDecisionRequest) -> DecisionDraft:
    """A decision to record."""
    decision = message.decision
    same_id("decision", decision.decision_id, message.decision_id)
    content = DecisionContent(
        context=decision.context,
        chosen_option=decision.chosen_option,
        agent_role=decision.agent_role,
        options=tuple(
            DecisionOption(
                option.name,
                option.description,
                option.score if option.HasField("score") else None,
            )
            for option in decision.options
        ),
        reasoning=decision.reasoning,
        confidence=decision.confidence if decision.HasField("confidence") else None,
        episode_id=decision.episode_id,
        task_id=decision.task_id,
        category=decision.category,
        tags=tuple(decision.tags),
        labels=dict(decision.labels),
        metadata=struct_from_pb(decision.metadata, "decision.metadata"),
        decision_time=time_from_pb(decision, "decision_time", "decision"),
    )
    return DecisionDraft(content, message.decision_id, message.request_id)


def outcome_from_pb(message: pb.RecordDecisionOutcomeRequest) -> DecisionOutcomeDraft:
    """What came of a decision."""
    return DecisionOutcomeDraft(
        message.decision_id,
        OUTCOME.all_from_pb([message.outcome])[0],
        message.reward if message.HasField("reward") else None,
        message.note,
        message.request_id,
    )


def filter_from_pb(message: pb.DecisionFilter) -> DecisionFilter:
    """A filter."""
    return DecisionFilter(
        agent_roles=tuple(message.agent_roles),
        chosen_options=tuple(message.chosen_options),
        outcomes=OUTCOME.all_from_pb(message.outcomes),
        pending=message.pending if message.HasField("pending") else None,
        categories=tuple(message.categories),
        episode_ids=tuple(message.episode_ids),
        task_ids=tuple(message.task_ids),
        tags_any=tuple(message.tags_any),
        labels=dict(message.labels),
        created_after=time_from_pb(message, "created_after", "filter"),
        created_before=time_from_pb(message, "created_before", "filter"),
    )
