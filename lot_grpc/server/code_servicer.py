"""PatternService on the wire: patterns out of source code."""

from __future__ import annotations

import asyncio

from lot_grpc.domain.ids import namespace_or_default
from lot_grpc.pb.lot.v1 import pattern_pb2
from lot_grpc.pb.lot.v1 import pattern_service_pb2 as pb
from lot_grpc.pb.lot.v1 import pattern_service_pb2_grpc as pb_grpc
from lot_grpc.server.call import Context
from lot_grpc.server.convert import code as convert
from lot_grpc.server.convert.patterns import pattern_to_pb
from lot_grpc.services.extraction.code_extraction import CodeExtraction


class CodeServicer(pb_grpc.PatternServiceServicer):
    """Converts, calls a service, converts back."""

    def __init__(self, extraction: CodeExtraction) -> None:
        self._extraction = extraction

    async def ExtractPatternsFromCode(
        self, request: pb.ExtractPatternsFromCodeRequest, context: Context
    ) -> pb.ExtractPatternsFromCodeResponse:
        draft = convert.draft_from_pb(request)
        extracted = await self._extraction.extract(namespace_or_default(request.namespace), draft)
        patterns: list[pattern_pb2.Pattern] = []
        for pattern in extracted.patterns:
            patterns.append(pattern_to_pb(pattern))
            await asyncio.sleep(0)  # thousands of them must not hold all other calls
        return pb.ExtractPatternsFromCodeResponse(
            patterns=patterns,
            unparsed=extracted.unparsed,
            created_count=extracted.created_count,
            notices=convert.notices_to_pb(extracted),
        )
