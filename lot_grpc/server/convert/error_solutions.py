"""ErrorSolution, its filter and drafts."""

from __future__ import annotations

from collections.abc import Iterable

from google.protobuf.field_mask_pb2 import FieldMask

from lot_grpc.domain.error_solution import (
    ErrorSolution,
    ErrorSolutionContent,
    ErrorSolutionFilter,
)
from lot_grpc.domain.languages import language_name
from lot_grpc.pb.lot.v1 import error_solution_pb2 as pb
from lot_grpc.pb.lot.v1 import outcome_pb2
from lot_grpc.server.convert.outcomes import (
    OUTCOME,
    outcomes_to_pb,
    score_parts_to_pb,
    unread_notices,
)
from lot_grpc.server.convert.patterns import same_id
from lot_grpc.server.convert.values import (
    check_list_size,
    edited_fields,
    micros_from_pb,
    seconds_from_pb,
    struct_from_json,
    struct_from_pb,
    time_from_pb,
    time_to_pb,
)
from lot_grpc.services.memories.error_drafts import ErrorSolutionDraft, ErrorSolutionEdit
from lot_grpc.services.memories.error_finder import ErrorAnswer, ErrorFound, ErrorQuery
from lot_grpc.services.memories.error_outcomes import ErrorOutcomeDraft

_DEFAULT_LIMIT = 3
_OUTPUT_ONLY = frozenset(
    {
        "error_solution_id",
        "signature",
        "outcomes",
        "namespace",
        "create_time",
        "update_time",
        "etag",
    }
)


def error_solution_to_pb(solution: ErrorSolution) -> pb.ErrorSolution:
    """A stored error solution."""
    content = solution.content
    message = pb.ErrorSolution(
        error_solution_id=solution.error_solution_id,
        error_type=content.error_type,
        error_message=content.error_message,
        signature=solution.signature,
        context=content.context,
        language=content.language,
        resolution=content.resolution,
        steps=content.steps,
        categories=content.categories,
        worked=content.worked,
        outcomes=outcomes_to_pb(solution.outcomes),
        tags=content.tags,
        labels=content.labels,
        source_episode_ids=content.source_episode_ids,
        pinned=content.pinned,
        namespace=solution.namespace,
        create_time=time_to_pb(solution.create_time),
        update_time=time_to_pb(solution.update_time),
        etag=solution.etag,
    )
    if content.metadata:
        message.metadata.CopyFrom(struct_from_json(content.metadata))
    if content.expire_time is not None:
        message.expire_time.CopyFrom(time_to_pb(content.expire_time))
    return message


def content_from_pb(given: pb.ErrorSolution) -> ErrorSolutionContent:
    """What a caller gave of an error solution; output-only fields and ``ttl`` are not read."""
    check_list_size(given.steps, "error_solution.steps")
    return ErrorSolutionContent(
        error_message=given.error_message,
        error_type=given.error_type,
        context=given.context,
        language=language_name(given.language),
        resolution=given.resolution,
        steps=tuple(given.steps),
        categories=tuple(given.categories),
        worked=given.worked if given.HasField("worked") else True,
        tags=tuple(given.tags),
        labels=dict(given.labels),
        metadata=struct_from_pb(given.metadata, "error_solution.metadata"),
        source_episode_ids=tuple(given.source_episode_ids),
        pinned=given.pinned,
        expire_time=time_from_pb(given, "expire_time", "error_solution"),
    )


def edit_from_pb(message: pb.ErrorSolution, mask: FieldMask) -> ErrorSolutionEdit:
    """An edit: the paths that the mask names, or those that the error solution has populated."""
    fields, ttl = edited_fields(message, mask, _OUTPUT_ONLY, "error_solution")
    return ErrorSolutionEdit(content_from_pb(message), fields, ttl)


def draft_from_pb(message: pb.SaveErrorSolutionRequest) -> ErrorSolutionDraft:
    """An error solution to save."""
    given = message.error_solution
    same_id("error_solution", given.error_solution_id, message.error_solution_id)
    has_rate = message.HasField("initial_success_rate")
    return ErrorSolutionDraft(
        content_from_pb(given),
        message.error_solution_id,
        message.initial_success_rate if has_rate else None,
        message.request_id,
        micros_from_pb(given, "ttl", "error_solution"),
    )


def filter_from_pb(message: pb.ErrorSolutionFilter) -> ErrorSolutionFilter:
    """A filter."""
    return ErrorSolutionFilter(
        error_types=tuple(message.error_types),
        languages=tuple(message.languages),
        categories=tuple(message.categories),
        signatures=tuple(message.signatures),
        worked=message.worked if message.HasField("worked") else None,
        tags_any=tuple(message.tags_any),
        labels=dict(message.labels),
        min_success_rate=message.min_success_rate,
        min_usage_count=message.min_usage_count,
        created_after=time_from_pb(message, "created_after", "filter"),
        created_before=time_from_pb(message, "created_before", "filter"),
        pinned=message.pinned if message.HasField("pinned") else None,
    )


def request_from_pb(message: pb.FindErrorSolutionsRequest) -> ErrorQuery:
    """An error to find solutions for."""
    return ErrorQuery(
        error_type=message.error_type,
        error_message=message.error_message,
        language=message.language,
        categories=tuple(message.categories),
        limit=message.limit or _DEFAULT_LIMIT,
        min_similarity=message.min_similarity,
        include_unsolved=message.include_unsolved,
        explain=message.explain,
    )


def answer_to_pb(answer: ErrorAnswer) -> pb.FindErrorSolutionsResponse:
    """What was found."""
    return pb.FindErrorSolutionsResponse(
        hits=[error_hit_to_pb(hit) for hit in answer.hits],
        retrieval_id=answer.retrieval_id,
        notices=unread_notices(
            "error_message", truncated=answer.truncated, wordless=answer.wordless
        ),
        signature=answer.signature,
        unsolved=[error_hit_to_pb(hit) for hit in answer.unsolved],
    )


def error_hit_to_pb(hit: ErrorFound) -> pb.ErrorSolutionHit:
    """A solution that was found."""
    return pb.ErrorSolutionHit(
        error_solution=error_solution_to_pb(hit.error_solution),
        match=pb.ERROR_MATCH_EXACT_SIGNATURE if hit.exact else pb.ERROR_MATCH_SIMILAR,
        score=hit.score,
        similarity=hit.similarity,
        score_parts=score_parts_to_pb(hit.parts),
        differences=[
            pb.ErrorDifference(part=one.part, given=one.given, stored=one.stored)
            for one in hit.differences
        ],
    )


def outcome_from_pb(message: pb.RecordErrorSolutionOutcomeRequest) -> ErrorOutcomeDraft:
    """An outcome to record."""
    return ErrorOutcomeDraft(
        error_solution_id=message.error_solution_id,
        outcome=OUTCOME.all_from_pb([message.outcome])[0],
        retrieval_id=message.retrieval_id,
        error_message=message.error_message,
        reward=message.reward if message.HasField("reward") else None,
        duration=seconds_from_pb(message, "duration"),
        note=message.note,
        request_id=message.request_id,
    )


def unchanged_notices(unchanged_fields: Iterable[str]) -> list[outcome_pb2.Notice]:
    """Tells which fields a repeat gave otherwise, in vain."""
    return [
        outcome_pb2.Notice(
            code=outcome_pb2.NOTICE_CODE_FIELDS_UNCHANGED,
            field=f"error_solution.{name}",
            message="this solution of this error is already stored and retains its own; set "
            "error_solution_id to store another one",
        )
        for name in unchanged_fields
    ]
