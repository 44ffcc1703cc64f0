"""EpisodeService on the wire: replaying."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing

from lot_grpc.domain.ids import namespace_or_default
from lot_grpc.pb.lot.v1 import episode_service_pb2 as pb
from lot_grpc.pb.lot.v1 import episode_service_pb2_grpc as pb_grpc
from lot_grpc.server.call import Context
from lot_grpc.server.convert import replay as convert
from lot_grpc.services.episodes.replayer import EpisodeReplayer


class ReplayServicer(pb_grpc.EpisodeServiceServicer):
    """Converts, calls a service, converts back."""

    def __init__(self, replaying: EpisodeReplayer) -> None:
        self._replaying = replaying

    async def ReplayEpisode(
        self, request: pb.ReplayEpisodeRequest, context: Context
    ) -> AsyncIterator[pb.ReplayEpisodeResponse]:
        namespace = namespace_or_default(request.namespace)
        requested = convert.replay_from_pb(request)
        async with aclosing(
            self._replaying.replay(namespace, request.episode_id, requested)
        ) as batches:
            async for batch in batches:
                yield convert.batch_to_pb(batch)
