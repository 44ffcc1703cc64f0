"""Error solutions: contents, drafts, filters and hits."""

from __future__ import annotations

from google.protobuf.field_mask_pb2 import FieldMask

from lot_grpc.domain.error_found import ErrorFound
from lot_grpc.domain.error_solution import (
    ErrorSolution,
    ErrorSolutionContent,
    ErrorSolutionFilter,
)
from lot_grpc.domain.languages import language_name
from lot_grpc.pb.lot.v1 import error_solution_pb2 as pb
from lot_grpc.server.codec.generic import Decoder, Encoder, Whole
from lot_grpc.server.codec.notices import (
    held_back_notices,
    nothing_fits_notices,
    text_notices,
    unchanged_notices,
    unread_notices,
)
from lot_grpc.server.codec.origin import check_origin, editor_of
from lot_grpc.server.codec.outcomes import outcomes_to_pb
from lot_grpc.server.codec.pairs import fields_beside
from lot_grpc.server.codec.patterns import same_id
from lot_grpc.server.codec.values import check_list_size, edited_fields, ttl_of
from lot_grpc.services.errors.drafts import (
    ErrorSolutionDraft,
    ErrorSolutionEdit,
    SavedErrorSolution,
)
from lot_grpc.services.errors.error_finder import ErrorAnswer, ErrorQuery
from lot_grpc.services.errors.error_outcomes import ErrorOutcomeDraft

_OUTPUT_ONLY = fields_beside(pb.ErrorSolution, ErrorSolutionContent) - {"ttl"}

error_solution_to_pb = Encoder(
    ErrorSolution,
    pb.ErrorSolution,
    flatten=("content",),
    values={"outcomes": outcomes_to_pb},
    omit={"ttl", "revision", "signed_by"},
)

_content = Decoder(
    pb.ErrorSolution,
    ErrorSolutionContent,
    path="error_solution",
    values={"language": language_name},
    omit={*_OUTPUT_ONLY, "ttl"},
)
_draft = Decoder(
    pb.SaveErrorSolutionRequest,
    ErrorSolutionDraft,
    omit={"namespace", "error_solution", "content", "ttl"},
)


def content_from_pb(given: pb.ErrorSolution) -> ErrorSolutionContent:
    """The content that a caller gave; output-only fields and ``ttl`` are ignored."""
    check_list_size(given.steps, "error_solution.steps")
    return _content(given)


def edit_from_pb(message: pb.ErrorSolution, mask: FieldMask) -> ErrorSolutionEdit:
    """An edit: the paths in the mask, or else those populated in the error solution."""
    fields, ttl = edited_fields(message, mask, _OUTPUT_ONLY, "error_solution")
    editor, others = editor_of(message, mask, fields)
    return ErrorSolutionEdit(content_from_pb(message), frozenset(others), ttl, editor)


def draft_from_pb(message: pb.SaveErrorSolutionRequest) -> ErrorSolutionDraft:
    """An error solution to save."""
    given = message.error_solution
    same_id("error_solution", given.error_solution_id, message.error_solution_id)
    check_origin(given, "error_solution")
    content, ttl = content_from_pb(given), ttl_of(given, "error_solution")
    return _draft(message, content=content, ttl=ttl)


def saved_to_pb(saved: SavedErrorSolution) -> pb.SaveErrorSolutionResponse:
    """The result of a save."""
    why = (
        "this solution of this error is already stored and retains its own; set error_solution_id "
        "to store another one"
    )
    return pb.SaveErrorSolutionResponse(
        error_solution=error_solution_to_pb(saved.error_solution),
        created=saved.created,
        notices=[
            *text_notices("error_solution.error_message", truncated=saved.truncated),
            *held_back_notices(
                "error_solution", saved.error_solution.review, created=saved.created
            ),
            *unchanged_notices("error_solution", saved.unchanged_fields, why),
        ],
    )


filter_from_pb = Decoder(pb.ErrorSolutionFilter, ErrorSolutionFilter, path="filter")
request_from_pb = Decoder(
    pb.FindErrorSolutionsRequest,
    ErrorQuery,
    omit={"namespace", "read_mask", "shared_limit", "where", "embedding", "quiet", "legs"},
)
outcome_from_pb = Decoder(
    pb.RecordErrorSolutionOutcomeRequest, ErrorOutcomeDraft, omit={"namespace"}
)

error_hit_to_pb = Encoder(
    ErrorFound,
    pb.ErrorSolutionHit,
    rename={"match": "exact", "score_parts": "parts", "match_probability": "match"},
    values={
        "error_solution": error_solution_to_pb,
        "match": lambda exact: pb.ERROR_MATCH_EXACT_SIGNATURE if exact else pb.ERROR_MATCH_SIMILAR,
    },
)
answer_to_pb = Encoder(
    ErrorAnswer,
    pb.FindErrorSolutionsResponse,
    values={
        "hits": error_hit_to_pb,
        "unsolved": error_hit_to_pb,
        "notices": Whole(
            lambda answer: [
                *unread_notices(
                    "error_message", truncated=answer.truncated, wordless=answer.wordless
                ),
                *nothing_fits_notices(answer.left_out, found=bool(answer.hits or answer.unsolved)),
            ]
        ),
    },
    omit={"truncated", "wordless", "left_out"},
)
