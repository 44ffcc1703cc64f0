"""The RPCs of PatternService that learn from episodes."""

from __future__ import annotations

from lot_grpc.domain.ids import namespace_or_default
from lot_grpc.pb.lot.v1 import pattern_service_pb2 as pb
from lot_grpc.pb.lot.v1 import pattern_service_pb2_grpc as pb_grpc
from lot_grpc.server.call import Context
from lot_grpc.server.convert.extraction import extraction_draft_from_pb
from lot_grpc.server.convert.patterns import pattern_to_pb
from lot_grpc.services.extraction.pattern_extraction import PatternExtraction


class ExtractionServicer(pb_grpc.PatternServiceServicer):
    """Converts, calls the service, converts back."""

    def __init__(self, extraction: PatternExtraction) -> None:
        self._extraction = extraction

    async def ExtractPatterns(
        self, request: pb.ExtractPatternsRequest, context: Context
    ) -> pb.ExtractPatternsResponse:
        extracted = await self._extraction.extract(
            namespace_or_default(request.namespace), extraction_draft_from_pb(request)
        )
        return pb.ExtractPatternsResponse(
            patterns=[pattern_to_pb(pattern) for pattern in extracted.patterns],
            episode_count=extracted.episode_count,
        )
