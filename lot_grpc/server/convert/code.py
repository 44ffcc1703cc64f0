"""Code to take patterns out of, and what is told beside them."""

from __future__ import annotations

from typing import Any

from lot_grpc.domain.errors import invalid
from lot_grpc.pb.lot.v1 import outcome_pb2
from lot_grpc.pb.lot.v1 import pattern_service_pb2 as pb
from lot_grpc.server.convert.outcomes import text_notices
from lot_grpc.server.convert.values import struct_from_pb
from lot_grpc.services.extraction.code_extraction import CodeDraft, Extracted

_MAX_METRICS_BYTES = 64 * 1024
_MAX_DEPTH = 15
"""One less than metadata may nest, which they are carried in."""


def draft_from_pb(message: pb.ExtractPatternsFromCodeRequest) -> CodeDraft:
    """The code, and what each pattern gets."""
    if (size := message.success_metrics.ByteSize()) > _MAX_METRICS_BYTES:
        raise invalid(
            "success_metrics",
            "struct.max_bytes",
            f"must be at most {_MAX_METRICS_BYTES:,} bytes, is {size:,}",
        )
    metrics = struct_from_pb(message.success_metrics, "success_metrics")
    if _depth(metrics) > _MAX_DEPTH:
        raise invalid(
            "success_metrics", "struct.depth", f"must not nest more than {_MAX_DEPTH} levels deep"
        )
    return CodeDraft(
        code=message.code,
        language=message.language,
        context=message.context,
        success_metrics=metrics,
        dry_run=message.dry_run,
    )


def notices_to_pb(extracted: Extracted) -> list[outcome_pb2.Notice]:
    """What was not read, and what stayed as it was."""
    return [
        *text_notices("patterns.task", truncated=extracted.text_truncated),
        *text_notices("patterns.code", truncated=extracted.code_truncated),
        *(
            outcome_pb2.Notice(
                code=outcome_pb2.NOTICE_CODE_FIELDS_UNCHANGED,
                field=f"patterns.{name}",
                message="existing patterns retain their own; use UpdatePattern to change it",
            )
            for name in extracted.unchanged_fields
        ),
    ]


def _depth(value: Any) -> int:
    """How deep Structs and lists nest; 1 without any inside. They are 16 deep at most."""
    inner = list(value.values()) if isinstance(value, dict) else value
    if not isinstance(inner, list):
        return 0
    return 1 + max((_depth(one) for one in inner), default=0)
