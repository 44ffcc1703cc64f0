"""EpisodeService on the wire: deleting."""

from __future__ import annotations

from lot_grpc.domain.errors import EpisodeNotFoundError
from lot_grpc.domain.ids import namespace_or_default
from lot_grpc.pb.lot.v1 import episode_service_pb2 as pb
from lot_grpc.pb.lot.v1 import episode_service_pb2_grpc as pb_grpc
from lot_grpc.server.call import Context
from lot_grpc.services.episodes.episode_deleter import EpisodeDeleter


class EpisodeDeletingServicer(pb_grpc.EpisodeServiceServicer):
    """Converts, calls a service, converts back."""

    def __init__(self, deleting: EpisodeDeleter) -> None:
        self._deleting = deleting

    async def DeleteEpisode(
        self, request: pb.DeleteEpisodeRequest, context: Context
    ) -> pb.DeleteEpisodeResponse:
        try:
            events = await self._deleting.delete(
                namespace_or_default(request.namespace), request.episode_id
            )
        except EpisodeNotFoundError:
            if not request.allow_missing:
                raise
            return pb.DeleteEpisodeResponse(deleted=False)
        return pb.DeleteEpisodeResponse(deleted=True, deleted_event_count=events)
