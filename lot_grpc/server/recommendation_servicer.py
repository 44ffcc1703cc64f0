"""Recommendations of LearningService on the wire."""

from __future__ import annotations

from lot_grpc.domain.ids import namespace_or_default
from lot_grpc.pb.lot.v1 import learning_service_pb2_grpc as pb_grpc
from lot_grpc.pb.lot.v1 import recommendation_pb2 as pb
from lot_grpc.server.call import Context
from lot_grpc.server.convert import recommendations as convert
from lot_grpc.services.learning.recommendations import Recommender

_DEFAULT_LIMIT = 3


class RecommendationServicer(pb_grpc.LearningServiceServicer):
    """Converts, calls a service, converts back."""

    def __init__(self, recommender: Recommender) -> None:
        self._recommending = recommender

    async def GetRecommendations(
        self, request: pb.GetRecommendationsRequest, context: Context
    ) -> pb.GetRecommendationsResponse:
        recommended = await self._recommending.recommend(
            namespace_or_default(request.namespace),
            convert.profile_from_pb(request),
            request.limit or _DEFAULT_LIMIT,
            request.min_score if request.HasField("min_score") else None,
        )
        return convert.recommended_to_pb(recommended)
