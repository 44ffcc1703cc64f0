"""The context of a task, of MemoryService, on the wire."""

from __future__ import annotations

from lot_grpc.domain.ids import namespace_or_default
from lot_grpc.pb.lot.v1 import memory_service_pb2_grpc
from lot_grpc.pb.lot.v1 import task_context_pb2 as pb
from lot_grpc.server.call import Context
from lot_grpc.server.convert import contexts as convert
from lot_grpc.services.context.task_context import TaskContextBuilder


class ContextServicer(memory_service_pb2_grpc.MemoryServiceServicer):
    """Converts, calls a service, converts back."""

    def __init__(self, contexts: TaskContextBuilder) -> None:
        self._contexts = contexts

    async def GetTaskContext(
        self, request: pb.GetTaskContextRequest, context: Context
    ) -> pb.GetTaskContextResponse:
        requested = convert.request_from_pb(request)
        found = await self._contexts.gather(namespace_or_default(request.namespace), requested)
        return convert.context_to_pb(found, requested)
