"""Messages of LearningService: actions, decisions, learning events, trends."""

from __future__ import annotations

from typing import Any

from lot_grpc.domain.action_values import ActionValue, LearningState
from lot_grpc.domain.adoption import (
    Adoption,
    DayAdoption,
    HoldoutArm,
    HoldoutComparison,
    KindAdoption,
)
from lot_grpc.domain.decision import Decision, DecisionContent, DecisionFilter
from lot_grpc.domain.errors import invalid
from lot_grpc.domain.learning_event import (
    FeedbackTarget,
    LearningEvent,
    LearningEventContent,
    LearningEventFilter,
    TargetKind,
)
from lot_grpc.domain.performance import PerformanceReport
from lot_grpc.domain.performance_page import page_of
from lot_grpc.domain.recommendation import Recommendations, TaskProfile
from lot_grpc.domain.text_form import normal_form
from lot_grpc.domain.trends import CategoryTrend, TrendOptions
from lot_grpc.pb.lot.v1 import (
    decision_pb2,
    episode_service_pb2,
    learning_event_pb2,
    learning_pb2,
    performance_pb2,
    recommendation_pb2,
)
from lot_grpc.server.codec.episodes import episode_to_pb
from lot_grpc.server.codec.generic import Decoder, Encoder, Whole
from lot_grpc.server.codec.notices import unread_notices
from lot_grpc.server.codec.pairs import fields_beside
from lot_grpc.server.codec.patterns import same_id
from lot_grpc.server.codec.sessions import preference_to_pb
from lot_grpc.server.codec.values import (
    micros_of_time,
    resource_kind_to_pb,
    struct_from_pb,
    time_to_pb,
)
from lot_grpc.services.learning.decisions import DecisionDraft, DecisionOutcomeDraft
from lot_grpc.services.learning.feedback_handler import FeedbackTextDraft, Submitted
from lot_grpc.services.learning.learning_events import LearningEventDraft
from lot_grpc.services.learning.recommendations import Recommended, SimilarEpisode
from lot_grpc.services.learning.selections import SelectionDraft
from lot_grpc.services.learning.step_recorder import StepsDraft
from lot_grpc.services.records.actions import Selection

# --- actions --------------------------------------------------------------------------------------

state_from_pb = Decoder(learning_pb2.LearningState, LearningState, path="state")
action_value_to_pb = Encoder(ActionValue, learning_pb2.ActionValue)
steps_from_pb = Decoder(learning_pb2.RecordStepsRequest, StepsDraft, omit={"namespace"})

_selection_draft = Decoder(
    learning_pb2.SelectActionRequest, SelectionDraft, omit={"namespace", "state", "actions"}
)


def selection_draft_from_pb(message: learning_pb2.SelectActionRequest) -> SelectionDraft:
    """The actions to select from, and how."""
    if len({normal_form(action.name) for action in message.actions}) < len(message.actions):
        raise invalid(
            "actions",
            "select_action.actions.unique",
            "action names must be distinct, and not just differ in their Unicode form",
        )
    actions = {
        action.name: struct_from_pb(action.parameters, f"actions[{number}].parameters")
        for number, action in enumerate(message.actions)
    }
    return _selection_draft(message, state=state_from_pb(message.state), actions=actions)


def selection_to_pb(
    selection: Selection, request: learning_pb2.SelectActionRequest
) -> learning_pb2.SelectActionResponse:
    """A selection, with the action as the request gave it."""
    chosen = normal_form(selection.action)
    [action] = [action for action in request.actions if normal_form(action.name) == chosen]
    return learning_pb2.SelectActionResponse(
        action=action,
        selection_id=selection.selection_id,
        explored=selection.explored,
        action_values=map(action_value_to_pb, selection.values),
    )


# --- decisions ------------------------------------------------------------------------------------


def _decision_time(decision: Decision) -> Any:
    given = decision.content.decision_time
    return time_to_pb(decision.create_time if given is None else given)


decision_to_pb = Encoder(
    Decision,
    decision_pb2.Decision,
    flatten=("content", "result"),
    rename={"outcome_note": "result.note"},
    values={"decision_time": Whole(_decision_time)},
    omit={"feedback_reward", "revision"},
)
_decision = Decoder(
    decision_pb2.Decision,
    DecisionContent,
    path="decision",
    omit=fields_beside(decision_pb2.Decision, DecisionContent),
)


def decision_draft_from_pb(message: decision_pb2.RecordDecisionRequest) -> DecisionDraft:
    """A decision to record."""
    same_id("decision", message.decision.decision_id, message.decision_id)
    return DecisionDraft(_decision(message.decision), message.decision_id, message.request_id)


decision_outcome_from_pb = Decoder(
    decision_pb2.RecordDecisionOutcomeRequest, DecisionOutcomeDraft, omit={"namespace"}
)
decision_filter_from_pb = Decoder(decision_pb2.DecisionFilter, DecisionFilter, path="filter")

# --- learning events and feedback -----------------------------------------------------------------


def target_from_pb(message: learning_event_pb2.FeedbackTarget) -> FeedbackTarget | None:
    """A target; None if it names nothing."""
    name = message.WhichOneof("target")
    if name is None:
        return None
    return FeedbackTarget(TargetKind(name.removesuffix("_id")), getattr(message, name))


def target_to_pb(target: FeedbackTarget) -> learning_event_pb2.FeedbackTarget:
    """A target; the name of its field is its kind."""
    return learning_event_pb2.FeedbackTarget(**{f"{target.kind.value}_id": target.id})


def _event_time(event: LearningEvent) -> Any:
    given = event.content.event_time
    return time_to_pb(event.create_time if given is None else given)


learning_event_to_pb = Encoder(
    LearningEvent,
    learning_event_pb2.LearningEvent,
    flatten=("content",),
    values={
        "target": target_to_pb,
        "event_time": Whole(_event_time),
    },
)
_event = Decoder(
    learning_event_pb2.LearningEvent,
    LearningEventContent,
    path="learning_event",
    values={"target": target_from_pb},
    omit=fields_beside(learning_event_pb2.LearningEvent, LearningEventContent),
)


def learning_event_draft_from_pb(
    message: learning_event_pb2.RecordLearningEventRequest,
) -> LearningEventDraft:
    """A learning event to record."""
    event = message.learning_event
    same_id("learning_event", event.learning_event_id, message.learning_event_id)
    return LearningEventDraft(_event(event), message.learning_event_id, message.request_id)


learning_event_filter_from_pb = Decoder(
    learning_event_pb2.LearningEventFilter,
    LearningEventFilter,
    path="filter",
    values={"target": target_from_pb},
)
feedback_from_pb = Decoder(
    learning_event_pb2.SubmitFeedbackRequest,
    FeedbackTextDraft,
    values={"target": target_from_pb},
    omit={"namespace"},
)
submitted_to_pb = Encoder(
    Submitted,
    learning_event_pb2.SubmitFeedbackResponse,
    rename={"learning_event": "event"},
    values={"learning_event": learning_event_to_pb, "preference": preference_to_pb},
    omit={"notices"},
)

# --- recommendations ------------------------------------------------------------------------------

profile_from_pb = Decoder(
    recommendation_pb2.GetRecommendationsRequest,
    TaskProfile,
    omit={"namespace", "limit", "min_score"},
)
recommendations_to_pb = Encoder(Recommendations, recommendation_pb2.Recommendations)
_similar_to_pb = Encoder(
    SimilarEpisode,
    episode_service_pb2.EpisodeHit,
    rename={"score_parts": "parts", "match_probability": "match"},
    values={"episode": episode_to_pb},
    omit={"outcome_evidence"},
)
_TASK_TRUNCATED = (
    "longer than the 8 windows the model reads: the rest does not affect text similarity; put what "
    "matters first, or use fewer words"
)
_TASK_WORDLESS = (
    "has no word, number or symbol to compare, so text similarity counts as 0; describe the task "
    "in words"
)
recommended_to_pb = Encoder(
    Recommended,
    recommendation_pb2.GetRecommendationsResponse,
    rename={"similar_episodes": "similar"},
    values={
        "recommendations": recommendations_to_pb,
        "similar_episodes": _similar_to_pb,
        "notices": Whole(
            lambda one: unread_notices(
                "task",
                truncated=one.truncated,
                wordless=one.wordless,
                messages=(_TASK_TRUNCATED, _TASK_WORDLESS),
            )
        ),
    },
    omit={"truncated", "wordless"},
)

# --- trends and reports ---------------------------------------------------------------------------

trend_wish_from_pb = Decoder(
    performance_pb2.GetTrendsRequest, TrendOptions, omit={"namespace", "filter"}
)
trend_to_pb = Encoder(
    CategoryTrend,
    performance_pb2.CategoryTrend,
    rename={
        "direction": "change.direction",
        "total_count": "total",
        "earlier_success_rate": "change.earlier_rate",
        "later_success_rate": "change.later_rate",
        "success_rate_lower": "interval",
        "success_rate_upper": "interval",
        "change_p_value": "change.p_value",
        "change_significant": "change.significant",
    },
    values={
        "success_rate_lower": lambda interval: interval[0],
        "success_rate_upper": lambda interval: interval[1],
    },
    omit={"sample_successes"},
)
_kind_adoption_to_pb = Encoder(
    KindAdoption,
    performance_pb2.KindAdoption,
    rename={"shown_count": "shown", "used_count": "used", "helped_count": "helped"},
    values={"resource_kind": resource_kind_to_pb},
)
_day_adoption_to_pb = Encoder(
    DayAdoption,
    performance_pb2.DayAdoption,
    rename={"retrieval_count": "retrievals"},
    values={"kinds": _kind_adoption_to_pb},
)
_adoption_to_pb = Encoder(
    Adoption,
    performance_pb2.Adoption,
    rename={
        "start_time": "period.start",
        "end_time": "period.end",
        "retrieval_count": "retrievals",
        "outcome_retrieval_count": "with_outcome",
    },
    values={"kinds": _kind_adoption_to_pb, "days": _day_adoption_to_pb},
)
_arm_to_pb = Encoder(
    HoldoutArm,
    performance_pb2.HoldoutArm,
    rename={
        "retrieval_count": "retrievals",
        "outcome_retrieval_count": "values.count",
        "mean_value": "values.mean",
    },
)
_holdout_to_pb = Encoder(
    HoldoutComparison,
    performance_pb2.HoldoutComparison,
    rename={"gain_lower": "gain", "gain_upper": "gain"},
    values={
        "learned": _arm_to_pb,
        "holdout": _arm_to_pb,
        "gain": lambda gain: gain.estimate,
        "gain_lower": lambda gain: gain.lower,
        "gain_upper": lambda gain: gain.upper,
    },
)


def report_period_from_pb(
    request: performance_pb2.GetPerformanceReportRequest,
) -> tuple[int | None, int | None]:
    """The start and the end of the time range; None if they are not given."""
    start, end = (
        micros_of_time(getattr(request, name), name) if request.HasField(name) else None
        for name in ("start_time", "end_time")
    )
    return start, end


report_to_pb = Encoder(
    PerformanceReport,
    performance_pb2.PerformanceReport,
    rename={"total_count": "total", "success_count": "successes", "by_category": "trends"},
    values={
        "by_category": lambda trends: {trend.category: trend.total for trend in trends},
        "trends": trend_to_pb,
        "adoption": _adoption_to_pb,
        "holdout": _holdout_to_pb,
        "markdown": Whole(page_of),
    },
    omit={"namespace"},
)
