"""AdminService on the wire: namespaces as a whole."""

from __future__ import annotations

from lot_grpc.domain.ids import namespace_or_default
from lot_grpc.pb.lot.v1 import admin_service_pb2 as pb
from lot_grpc.pb.lot.v1 import admin_service_pb2_grpc as pb_grpc
from lot_grpc.server.call import Context
from lot_grpc.server.convert.changes import RESOURCE_KIND
from lot_grpc.server.convert.namespaces import counts_to_pb, usage_to_pb
from lot_grpc.server.page_token import name_from_token, name_to_token
from lot_grpc.services.clearing.clearer import NamespaceClearer
from lot_grpc.services.clearing.namespaces import Namespaces

_DEFAULT_PAGE = 10


class NamespaceServicer(pb_grpc.AdminServiceServicer):
    """Converts, calls a service, converts back."""

    def __init__(self, namespaces: Namespaces, clearing: NamespaceClearer) -> None:
        self._namespaces = namespaces
        self._clearing = clearing

    async def ListNamespaces(
        self, request: pb.ListNamespacesRequest, context: Context
    ) -> pb.ListNamespacesResponse:
        page = await self._namespaces.page(
            request.page_size or _DEFAULT_PAGE, name_from_token(request, request.page_token)
        )
        return pb.ListNamespacesResponse(
            namespaces=map(usage_to_pb, page.namespaces),
            next_page_token=name_to_token(request, page.next),
        )

    async def ClearNamespace(
        self, request: pb.ClearNamespaceRequest, context: Context
    ) -> pb.ClearNamespaceResponse:
        namespace = namespace_or_default(request.namespace)
        resource_kinds = RESOURCE_KIND.all_from_pb(request.resource_kinds)
        if request.dry_run:
            counts = await self._clearing.count(namespace, resource_kinds)
        else:
            counts = await self._clearing.clear(namespace, resource_kinds)
        return pb.ClearNamespaceResponse(
            deleted_counts=counts_to_pb(counts), deleted_count=sum(counts.values())
        )
