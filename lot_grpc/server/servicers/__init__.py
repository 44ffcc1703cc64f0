"""The servicers, one for each service of ``lot.v1``."""

from __future__ import annotations

from collections.abc import Mapping

from google.protobuf.descriptor import ServiceDescriptor

from lot_grpc.pb.lot.v1 import (
    admin_service_pb2,
    episode_service_pb2,
    learning_service_pb2,
    memory_service_pb2,
    pattern_service_pb2,
)
from lot_grpc.ports import Clock
from lot_grpc.server.limits import Limits
from lot_grpc.server.servicers.admin import AdminServicer
from lot_grpc.server.servicers.base import ServerDescription
from lot_grpc.server.servicers.episodes import EpisodeServicer
from lot_grpc.server.servicers.learning import LearningServicer
from lot_grpc.server.servicers.memories import MemoryServicer
from lot_grpc.server.servicers.patterns import PatternServicer
from lot_grpc.services.build import Services

_SERVICES: tuple[ServiceDescriptor, ...] = tuple(
    service
    for module in (
        admin_service_pb2,
        episode_service_pb2,
        learning_service_pb2,
        memory_service_pb2,
        pattern_service_pb2,
    )
    for service in module.DESCRIPTOR.services_by_name.values()
)


def build_servicers(
    services: Services,
    clock: Clock,
    *,
    version: str,
    limits: Limits,
    max_batch_items: int,
    min_free_bytes: int,
) -> Mapping[ServiceDescriptor, object]:
    """Every service of ``lot.v1`` with its servicer."""
    description = ServerDescription(
        version=version,
        # The servicers have no abstract method left, so every RPC is implemented.
        capabilities=tuple(
            sorted(f"{one.name}.{method.name}" for one in _SERVICES for method in one.methods)
        ),
        limits=limits,
        max_batch_items=max_batch_items,
        min_free_bytes=min_free_bytes,
        start_time=clock.now(),
    )
    servicers = {
        "AdminService": AdminServicer(services, clock, description),
        "EpisodeService": EpisodeServicer(services, limits.stream_idle_seconds),
        "LearningService": LearningServicer(services),
        "MemoryService": MemoryServicer(services, clock, max_batch_items, limits.max_call_seconds),
        "PatternService": PatternServicer(services, max_batch_items),
    }
    return {service: servicers[service.name] for service in _SERVICES}
