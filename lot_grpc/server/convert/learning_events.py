"""Learning events, their filter, drafts and targets; judgements."""

from __future__ import annotations

from lot_grpc.domain.learning_event import (
    FeedbackTarget,
    LearningEvent,
    LearningEventContent,
    LearningEventFilter,
    TargetKind,
)
from lot_grpc.pb.lot.v1 import learning_event_pb2 as pb
from lot_grpc.server.convert.outcomes import OUTCOME
from lot_grpc.server.convert.patterns import same_id
from lot_grpc.server.convert.preferences import preference_to_pb
from lot_grpc.server.convert.values import (
    struct_from_json,
    struct_from_pb,
    time_from_pb,
    time_to_pb,
)
from lot_grpc.services.learning.feedback_handler import FeedbackTextDraft, Submitted
from lot_grpc.services.learning.learning_events import LearningEventDraft


def target_from_pb(message: pb.FeedbackTarget) -> FeedbackTarget | None:
    """A target; None for one that names nothing."""
    name = message.WhichOneof("target")
    if name is None:
        return None
    return FeedbackTarget(TargetKind(name.removesuffix("_id")), getattr(message, name))


def target_to_pb(target: FeedbackTarget) -> pb.FeedbackTarget:
    """A target."""
    message = pb.FeedbackTarget()
    setattr(message, f"{target.kind.value}_id", target.id)
    return message


def learning_event_to_pb(event: LearningEvent) -> pb.LearningEvent:
    """A stored learning event."""
    content = event.content
    happened = event.create_time if content.event_time is None else content.event_time
    message = pb.LearningEvent(
        learning_event_id=event.learning_event_id,
        event_type=content.event_type,
        task=content.task,
        outcome=OUTCOME.to_pb(content.outcome),
        text=content.text,
        reward=content.reward,
        agent_role=content.agent_role,
        tags=content.tags,
        labels=content.labels,
        event_time=time_to_pb(happened),
        create_time=time_to_pb(event.create_time),
        namespace=event.namespace,
    )
    if content.target is not None:
        message.target.CopyFrom(target_to_pb(content.target))
    if content.metadata:
        message.metadata.CopyFrom(struct_from_json(content.metadata))
    return message


def draft_from_pb(message: pb.RecordLearningEventRequest) -> LearningEventDraft:
    """A learning event to record."""
    event = message.learning_event
    same_id("learning_event", event.learning_event_id, message.learning_event_id)
    content = LearningEventContent(
        event_type=event.event_type,
        task=event.task,
        outcome=OUTCOME.from_pb(event.outcome),
        text=event.text,
        reward=event.reward if event.HasField("reward") else None,
        target=target_from_pb(event.target),
        agent_role=event.agent_role,
        tags=tuple(event.tags),
        labels=dict(event.labels),
        metadata=struct_from_pb(event.metadata, "learning_event.metadata"),
        event_time=time_from_pb(event, "event_time", "learning_event"),
    )
    return LearningEventDraft(content, message.learning_event_id, message.request_id)


def filter_from_pb(message: pb.LearningEventFilter) -> LearningEventFilter:
    """A filter."""
    return LearningEventFilter(
        event_types=tuple(message.event_types),
        outcomes=OUTCOME.all_from_pb(message.outcomes),
        min_reward=message.min_reward if message.HasField("min_reward") else None,
        max_reward=message.max_reward if message.HasField("max_reward") else None,
        agent_roles=tuple(message.agent_roles),
        tags_any=tuple(message.tags_any),
        labels=dict(message.labels),
        target=target_from_pb(message.target),
        created_after=time_from_pb(message, "created_after", "filter"),
        created_before=time_from_pb(message, "created_before", "filter"),
    )


def feedback_from_pb(message: pb.SubmitFeedbackRequest) -> FeedbackTextDraft:
    """A judgement."""
    return FeedbackTextDraft(
        text=message.text,
        reward=message.reward if message.HasField("reward") else None,
        target=target_from_pb(message.target),
        task=message.task,
        request_id=message.request_id,
    )


def submitted_to_pb(submitted: Submitted) -> pb.SubmitFeedbackResponse:
    """What was learned from a judgement."""
    message = pb.SubmitFeedbackResponse(
        reward=submitted.reward,
        judged=submitted.judged,
        learning_event=learning_event_to_pb(submitted.event),
        conclusive=submitted.conclusive,
    )
    if submitted.preference is not None:
        message.preference.CopyFrom(preference_to_pb(submitted.preference))
    return message
