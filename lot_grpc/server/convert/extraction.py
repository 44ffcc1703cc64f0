"""What to extract."""

from __future__ import annotations

from lot_grpc.domain.pattern import PatternType
from lot_grpc.pb.lot.v1 import pattern_service_pb2 as pb
from lot_grpc.server.convert.patterns import PATTERN_TYPE
from lot_grpc.services.extraction.pattern_extraction import MIN_SAMPLES, ExtractionDraft


def extraction_draft_from_pb(message: pb.ExtractPatternsRequest) -> ExtractionDraft:
    """A request to extract."""
    return ExtractionDraft(
        regex=message.task_type_pattern,
        pattern_type=PATTERN_TYPE.from_pb(message.pattern_type) or PatternType.SUCCESS,
        min_samples=message.min_samples or MIN_SAMPLES,
        namespaces=tuple(message.namespaces),
        dry_run=message.dry_run,
    )
