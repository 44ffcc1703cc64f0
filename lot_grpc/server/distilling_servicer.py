"""PatternService on the wire: distillation, and reading a pattern with where it comes from."""

from __future__ import annotations

from lot_grpc.domain.ids import namespace_or_default
from lot_grpc.pb.lot.v1 import pattern_service_pb2 as pb
from lot_grpc.pb.lot.v1 import pattern_service_pb2_grpc as pb_grpc
from lot_grpc.server.call import Context
from lot_grpc.server.convert.distilling import (
    distill_request_from_pb,
    distilled_to_pb,
    lineage_to_pb,
)
from lot_grpc.server.convert.feedback import entry_to_pb
from lot_grpc.server.convert.patterns import pattern_to_pb
from lot_grpc.services.distillation.distiller import Distiller
from lot_grpc.services.patterns.feedback import Feedback
from lot_grpc.services.patterns.lineage import Lineage
from lot_grpc.services.patterns.patterns import Patterns


class DistillingServicer(pb_grpc.PatternServiceServicer):
    """Converts, calls a service, converts back."""

    def __init__(
        self, distilling: Distiller, patterns: Patterns, lineage: Lineage, feedback: Feedback
    ) -> None:
        self._distilling = distilling
        self._patterns = patterns
        self._lineage = lineage
        self._feedback = feedback

    async def GetPattern(
        self, request: pb.GetPatternRequest, context: Context
    ) -> pb.GetPatternResponse:
        namespace = namespace_or_default(request.namespace)
        pattern = await self._patterns.get(namespace, request.pattern_id)
        lineage = await self._lineage.read(namespace, pattern) if request.include_lineage else []
        history = []
        if request.include_feedback:
            history = await self._feedback.history(namespace, pattern.pattern_id)
        return pb.GetPatternResponse(
            pattern=pattern_to_pb(pattern),
            lineage=lineage_to_pb(lineage),
            feedback=[entry_to_pb(entry) for entry in history],
        )

    async def DistillPatterns(
        self, request: pb.DistillPatternsRequest, context: Context
    ) -> pb.DistillPatternsResponse:
        distilled = await self._distilling.distil(
            namespace_or_default(request.namespace), distill_request_from_pb(request)
        )
        return distilled_to_pb(distilled)
