"""The context of a task, and what is asked of it."""

from __future__ import annotations

from lot_grpc.domain.context.failing import TaskWarning
from lot_grpc.pb.lot.v1 import task_context_pb2 as pb
from lot_grpc.server.convert.error_solutions import error_hit_to_pb
from lot_grpc.server.convert.hits import episode_hit_to_pb, pattern_hit_to_pb
from lot_grpc.server.convert.memories import memory_hit_to_pb
from lot_grpc.server.convert.outcomes import COMPLEXITY, left_out_notices, unread_notices
from lot_grpc.server.convert.preferences import preference_to_pb
from lot_grpc.server.convert.recommendations import recommendations_to_pb
from lot_grpc.services.context.request import ContextRequest
from lot_grpc.services.context.task_context import TaskContext

_DEFAULT_LIMIT = 3


def request_from_pb(message: pb.GetTaskContextRequest) -> ContextRequest:
    """The task that is ahead."""
    return ContextRequest(
        task=message.task,
        task_id=message.task_id,
        category=message.category,
        task_type=message.task_type,
        language=message.language,
        complexity=COMPLEXITY.from_pb(message.complexity),
        limit=message.limit or _DEFAULT_LIMIT,
        max_tokens=message.max_tokens,
        min_similarity=message.min_similarity if message.HasField("min_similarity") else None,
        preference_categories=tuple(message.preference_categories),
    )


def context_to_pb(context: TaskContext, requested: ContextRequest) -> pb.GetTaskContextResponse:
    """What is known for it."""
    return pb.GetTaskContextResponse(
        episodes=[episode_hit_to_pb(hit) for hit in context.episodes],
        patterns=[pattern_hit_to_pb(hit) for hit in context.patterns.hits],
        matched_pattern_ids=context.patterns.matched,
        memories=[
            memory_hit_to_pb(hit, passage)
            for hit, passage in zip(context.memories, context.passages, strict=True)
        ],
        error_solutions=[error_hit_to_pb(hit) for hit in context.errors],
        warnings=[_warning_to_pb(warning) for warning in context.warnings],
        preferences=[preference_to_pb(one) for one in context.preferences],
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
            *left_out_notices(context.left_out),
        ],
    )


def _warning_to_pb(warning: TaskWarning) -> pb.TaskWarning:
    return pb.TaskWarning(
        message=warning.message,
        episode_ids=warning.episode_ids,
        error_type=warning.error_type,
        count=warning.count,
    )
