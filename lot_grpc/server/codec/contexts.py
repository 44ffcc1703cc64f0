"""The context of a task."""

from __future__ import annotations

from lot_grpc.domain.context.failing import TaskWarning
from lot_grpc.pb.lot.v1 import task_context_pb2 as pb
from lot_grpc.server.codec.episodes import episode_hit_to_pb
from lot_grpc.server.codec.error_solutions import error_hit_to_pb
from lot_grpc.server.codec.generic import Decoder, Encoder
from lot_grpc.server.codec.learning import recommendations_to_pb
from lot_grpc.server.codec.memories import memory_hit_to_pb
from lot_grpc.server.codec.notices import left_out_notices, nothing_fits_notices, unread_notices
from lot_grpc.server.codec.patterns import pattern_hit_to_pb
from lot_grpc.server.codec.sessions import preference_to_pb
from lot_grpc.services.context.request import ContextRequest
from lot_grpc.services.context.task_context import TaskContext

request_from_pb = Decoder(pb.GetTaskContextRequest, ContextRequest, omit={"namespace"})

_warning_to_pb = Encoder(TaskWarning, pb.TaskWarning, omit={"error", "last_time"})


def context_to_pb(context: TaskContext, requested: ContextRequest) -> pb.GetTaskContextResponse:
    """The response with everything known for a task."""
    return pb.GetTaskContextResponse(
        episodes=map(episode_hit_to_pb, context.episodes),
        patterns=map(pattern_hit_to_pb, context.patterns.hits),
        matched_pattern_ids=context.patterns.matched,
        memories=(
            memory_hit_to_pb(hit, passage, match=requested.judges)
            for hit, passage in zip(context.memories, context.passages, strict=True)
        ),
        error_solutions=map(error_hit_to_pb, context.errors),
        warnings=map(_warning_to_pb, context.warnings),
        preferences=map(preference_to_pb, context.preferences),
        recommendations=recommendations_to_pb(context.recommended.recommendations),
        prompt_text=context.prompt.text,
        prompt_token_count=context.prompt.tokens,
        truncated=context.prompt.truncated,
        retrieval_id=context.retrieval_id,
        notices=[
            *unread_notices(
                "task_id" if requested.task_id else "task",
                truncated=context.truncated,
                wordless=context.wordless,
            ),
            *left_out_notices(context.near.left_out),
            *nothing_fits_notices(context.near.below_min_match, found=context.near.found),
        ],
    )
