"""AdminService on the wire: another embedding model."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing

from lot_grpc.pb.lot.v1 import admin_service_pb2 as pb
from lot_grpc.pb.lot.v1 import admin_service_pb2_grpc as pb_grpc
from lot_grpc.server.call import Context
from lot_grpc.server.convert.reindexing import reindex_step_to_pb
from lot_grpc.services.reindex.reindexer import Reindexer


class ReindexServicer(pb_grpc.AdminServiceServicer):
    """Converts, calls a service, converts back."""

    def __init__(self, reindexing: Reindexer) -> None:
        self._reindexing = reindexing

    async def Reindex(
        self, request: pb.ReindexRequest, context: Context
    ) -> AsyncIterator[pb.ReindexResponse]:
        run = self._reindexing.run(request.model, dry_run=request.dry_run)
        async with aclosing(run) as steps:
            async for step in steps:
                yield reindex_step_to_pb(step)
