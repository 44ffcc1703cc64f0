"""AdminService on the wire: policies of namespaces."""

from __future__ import annotations

from lot_grpc.domain.ids import namespace_or_default
from lot_grpc.pb.lot.v1 import admin_service_pb2_grpc as pb_grpc
from lot_grpc.pb.lot.v1 import namespace_policy_pb2 as pb
from lot_grpc.server.call import Context
from lot_grpc.server.convert.policies import edit_from_pb, policy_to_pb
from lot_grpc.services.retention.policies import Policies
from lot_grpc.services.retention.sweep import RetentionSweep


class PolicyServicer(pb_grpc.AdminServiceServicer):
    """Converts, calls a service, converts back."""

    def __init__(self, policies: Policies, keeping: RetentionSweep) -> None:
        self._policies = policies
        self._retention = keeping

    async def GetNamespacePolicy(
        self, request: pb.GetNamespacePolicyRequest, context: Context
    ) -> pb.GetNamespacePolicyResponse:
        stored = await self._policies.get(namespace_or_default(request.namespace))
        return pb.GetNamespacePolicyResponse(policy=policy_to_pb(stored))

    async def UpdateNamespacePolicy(
        self, request: pb.UpdateNamespacePolicyRequest, context: Context
    ) -> pb.UpdateNamespacePolicyResponse:
        namespace = namespace_or_default(request.namespace)
        edit = edit_from_pb(request)
        stored = await self._policies.update(namespace, edit, request.etag, dry_run=request.dry_run)
        return pb.UpdateNamespacePolicyResponse(
            policy=policy_to_pb(stored),
            pending_deletes=await self._retention.pending(namespace, stored.policy),
        )
