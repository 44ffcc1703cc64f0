"""What namespaces hold."""

from __future__ import annotations

from collections.abc import Mapping

from lot_grpc.domain.change import ResourceKind
from lot_grpc.pb.lot.v1 import admin_service_pb2 as pb
from lot_grpc.services.clearing.namespaces import NamespaceUsage


def counts_to_pb(counts: Mapping[ResourceKind, int]) -> dict[str, int]:
    """Counts by the name of the kind in ``lot.v1.ResourceKind``, without its prefix."""
    return {resource_kind.name: count for resource_kind, count in counts.items()}


def usage_to_pb(usage: NamespaceUsage) -> pb.NamespaceUsage:
    """A namespace and what it holds."""
    return pb.NamespaceUsage(
        namespace=usage.namespace, counts=counts_to_pb(usage.counts), clearing=usage.clearing
    )
