"""The servicers of all services, by descriptor, and what of the contract they carry out."""

from __future__ import annotations

from collections.abc import Mapping

from google.protobuf.descriptor import ServiceDescriptor

from lot_grpc.pb.lot.v1 import (
    admin_service_pb2,
    episode_service_pb2,
    learning_service_pb2,
    learning_service_pb2_grpc,
    memory_service_pb2,
    pattern_service_pb2,
)
from lot_grpc.ports import Clock
from lot_grpc.server.admin_servicer import AdminServicer, ServerFacts
from lot_grpc.server.episode_servicer import EpisodeServicer
from lot_grpc.server.limits import Limits
from lot_grpc.server.memory_servicer import MemoryServicer
from lot_grpc.server.pattern_servicer import PatternServicer
from lot_grpc.services.build import Services


class LearningServicer(learning_service_pb2_grpc.LearningServiceServicer):
    """LearningService on the wire: nothing of it is carried out yet."""


def build_servicers(
    services: Services,
    clock: Clock,
    *,
    version: str,
    limits: Limits,
    max_batch_items: int,
    needed_bytes: int,
) -> Mapping[ServiceDescriptor, object]:
    """Every service of ``lot.v1``."""

    def service(module: object, name: str) -> ServiceDescriptor:
        descriptor: ServiceDescriptor = module.DESCRIPTOR.services_by_name[name]  # type: ignore[attr-defined]
        return descriptor

    # Abstract only to the type checker: what is missing answers NOT_IMPLEMENTED (server.build).
    servicers: dict[ServiceDescriptor, object] = {
        service(memory_service_pb2, "MemoryService"): MemoryServicer(  # type: ignore[abstract]
            services.memories, services.memory_recall
        ),
        service(pattern_service_pb2, "PatternService"): PatternServicer(  # type: ignore[abstract]
            services.saving,
            services.patterns,
            services.pattern_recall,
            services.outcomes,
            max_batch_items,
        ),
        service(episode_service_pb2, "EpisodeService"): EpisodeServicer(  # type: ignore[abstract]
            services.episodes, services.recording, services.episode_recall
        ),
        service(learning_service_pb2, "LearningService"): LearningServicer(),  # type: ignore[abstract]
    }
    admin = service(admin_service_pb2, "AdminService")
    kinds = {descriptor: type(servicer) for descriptor, servicer in servicers.items()}
    facts = ServerFacts(
        version=version,
        capabilities=_carried_out({**kinds, admin: AdminServicer}),
        limits=limits,
        max_batch_items=max_batch_items,
        needed_bytes=needed_bytes,
        start_time=clock.now(),
    )
    servicers[admin] = AdminServicer(services.admin, clock, facts)  # type: ignore[abstract]
    return servicers


def _carried_out(kinds: Mapping[ServiceDescriptor, type]) -> tuple[str, ...]:
    """The RPCs that are not just the generated base's, as ``PatternService.SavePattern``."""
    return tuple(
        sorted(
            f"{descriptor.name}.{method.name}"
            for descriptor, kind in kinds.items()
            for method in descriptor.methods
            if not getattr(kind, method.name).__module__.endswith("_pb2_grpc")
        )
    )
