"""Groups of failures."""

from __future__ import annotations

from lot_grpc.domain.failures.group import FailureAnalysis, FailureGroup
from lot_grpc.pb.lot.v1 import episode_pb2
from lot_grpc.pb.lot.v1 import episode_service_pb2 as pb
from lot_grpc.server.convert.values import time_to_pb


def analysis_to_pb(analysis: FailureAnalysis) -> pb.AnalyzeFailuresResponse:
    """All that was found."""
    return pb.AnalyzeFailuresResponse(
        groups=[group_to_pb(group) for group in analysis.groups],
        failed_count=analysis.failed_count,
        analyzed_count=analysis.analyzed_count,
        group_count=analysis.group_count,
        signature_count=analysis.signature_count,
        compared_signature_count=analysis.compared_signature_count,
    )


def group_to_pb(group: FailureGroup) -> pb.FailureGroup:
    """A group. One that tells no error has no example of it."""
    message = pb.FailureGroup(
        signature=group.signature,
        count=group.count,
        share=group.share,
        trend=group.trend.slope,
        trend_significant=group.trend.significant,
        example_episode_ids=group.example_episode_ids,
        signatures=group.signatures,
        signature_count=group.signature_count,
        tools=group.tools,
        failed_after_event_type=group.failed_after_event_type,
        failed_after_tool=group.failed_after_tool,
        failed_after_share=group.failed_after_share,
        first_time=time_to_pb(group.first_time),
        last_time=time_to_pb(group.last_time),
    )
    if group.signature:
        error = group.example_error
        message.example_error.CopyFrom(
            episode_pb2.EpisodeError(type=error.type, message=error.message)
        )
    if group.last_good is not None:
        message.last_good_episode_id = group.last_good.episode_id
        message.last_good_approach = group.last_good.approach
        message.last_good_similarity = group.last_good.similarity
    return message
