"""Recommendations, and the task they are for."""

from __future__ import annotations

from collections.abc import Iterable

from lot_grpc.domain.recommendation import Recommendations, TaskProfile
from lot_grpc.domain.trends import NamedCount
from lot_grpc.pb.lot.v1 import episode_service_pb2, outcome_pb2
from lot_grpc.pb.lot.v1 import recommendation_pb2 as pb
from lot_grpc.server.convert.episodes import episode_to_pb
from lot_grpc.server.convert.outcomes import COMPLEXITY, score_parts_to_pb
from lot_grpc.services.learning.recommendations import Recommended


def profile_from_pb(message: pb.GetRecommendationsRequest) -> TaskProfile:
    """The task that is ahead."""
    return TaskProfile(
        task=message.task,
        category=message.category,
        task_type=message.task_type,
        complexity=COMPLEXITY.from_pb(message.complexity),
        dependencies=tuple(message.dependencies),
        effort=message.effort,
    )


def recommended_to_pb(recommended: Recommended) -> pb.GetRecommendationsResponse:
    """The answer."""
    return pb.GetRecommendationsResponse(
        recommendations=recommendations_to_pb(recommended.recommendations),
        similar_episodes=[
            episode_service_pb2.EpisodeHit(
                episode=episode_to_pb(one.episode),
                score=one.score,
                similarity=one.similarity,
                score_parts=score_parts_to_pb(one.parts),
                match_probability=one.match,
            )
            for one in recommended.similar
        ],
        notices=_notices(recommended),
    )


def recommendations_to_pb(one: Recommendations) -> pb.Recommendations:
    """What to do."""
    return pb.Recommendations(
        approach=one.approach,
        confidence=one.confidence,
        similar_count=one.similar_count,
        approaches=counts_to_pb(one.approaches),
        success_factors=counts_to_pb(one.success_factors),
        tools=counts_to_pb(one.tools),
        sentences=one.sentences,
        complexity=COMPLEXITY.to_pb(one.complexity),
        compared_count=one.compared_count,
        succeeded_count=one.succeeded_count,
    )


def counts_to_pb(counts: Iterable[NamedCount]) -> list[pb.NamedCount]:
    """How often things came."""
    return [pb.NamedCount(name=one.name, count=one.count) for one in counts]


def _notices(recommended: Recommended) -> list[outcome_pb2.Notice]:
    notices = []
    if recommended.truncated:
        notices.append(
            outcome_pb2.Notice(
                code=outcome_pb2.NOTICE_CODE_QUERY_TRUNCATED,
                field="task",
                message="longer than the 8 windows the model reads: the rest does not affect text "
                "similarity; put what matters first, or use fewer words",
            )
        )
    if recommended.wordless:
        notices.append(
            outcome_pb2.Notice(
                code=outcome_pb2.NOTICE_CODE_QUERY_NOT_SEARCHABLE,
                field="task",
                message="has no word, number or symbol to compare, so text similarity counts as 0; "
                "describe the task in words",
            )
        )
    return notices
