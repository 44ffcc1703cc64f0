"""The servicers of all services, by descriptor, and what of the contract they carry out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from google.protobuf.descriptor import ServiceDescriptor

from lot_grpc.pb.lot.v1 import (
    admin_service_pb2,
    episode_service_pb2,
    learning_service_pb2,
    memory_service_pb2,
    pattern_service_pb2,
)
from lot_grpc.ports import Clock
from lot_grpc.server.action_servicer import ActionServicer
from lot_grpc.server.admin_servicer import AdminServicer, ServerDescription
from lot_grpc.server.build import carries_out
from lot_grpc.server.changes_servicer import ChangesServicer
from lot_grpc.server.code_servicer import CodeServicer
from lot_grpc.server.context_servicer import ContextServicer
from lot_grpc.server.decision_servicer import DecisionServicer
from lot_grpc.server.distilling_servicer import DistillingServicer
from lot_grpc.server.episode_deleting_servicer import EpisodeDeletingServicer
from lot_grpc.server.episode_servicer import EpisodeServicer
from lot_grpc.server.error_solution_servicer import ErrorSolutionServicer
from lot_grpc.server.extraction_servicer import ExtractionServicer
from lot_grpc.server.failures_servicer import FailuresServicer
from lot_grpc.server.feedback_servicer import FeedbackServicer
from lot_grpc.server.learning_event_servicer import LearningEventServicer
from lot_grpc.server.limits import Limits
from lot_grpc.server.memory_servicer import MemoryServicer
from lot_grpc.server.namespace_servicer import NamespaceServicer
from lot_grpc.server.outcome_servicer import OutcomeServicer
from lot_grpc.server.pattern_servicer import PatternServicer
from lot_grpc.server.performance_servicer import PerformanceServicer
from lot_grpc.server.policy_servicer import PolicyServicer
from lot_grpc.server.preference_servicer import PreferenceServicer
from lot_grpc.server.pruning_servicer import PruningServicer
from lot_grpc.server.recommendation_servicer import RecommendationServicer
from lot_grpc.server.reindex_servicer import ReindexServicer
from lot_grpc.server.replay_servicer import ReplayServicer
from lot_grpc.server.seed_servicer import SeedServicer
from lot_grpc.server.session_servicer import SessionServicer
from lot_grpc.server.transfer_servicer import TransferServicer
from lot_grpc.services.build import Services


def build_servicers(
    services: Services,
    clock: Clock,
    *,
    version: str,
    limits: Limits,
    max_batch_items: int,
    needed_bytes: int,
) -> Mapping[ServiceDescriptor, Sequence[object]]:
    """Every service of ``lot.v1``, each by the servicers that share its RPCs."""
    # Abstract only to the type checker: what is missing answers NOT_IMPLEMENTED (server.build).
    servicers: dict[ServiceDescriptor, list[object]] = {
        _service(memory_service_pb2, "MemoryService"): [
            MemoryServicer(  # type: ignore[abstract]
                services.memories,
                services.memory_recall,
                services.memory_passages,
                services.memory_bulk_deleter,
                max_batch_items,
            ),
            ErrorSolutionServicer(  # type: ignore[abstract]
                services.error_solutions, services.error_finder, services.error_outcomes
            ),
            PreferenceServicer(services.preferences),  # type: ignore[abstract]
            ContextServicer(services.task_contexts),  # type: ignore[abstract]
            SessionServicer(  # type: ignore[abstract]
                services.sessions, services.session_values, services.session_messages
            ),
            ChangesServicer(services.change_watcher, clock),  # type: ignore[abstract]
        ],
        _service(pattern_service_pb2, "PatternService"): [
            PatternServicer(  # type: ignore[abstract]
                services.pattern_writer,
                services.patterns,
                services.pattern_recall,
                services.outcomes,
                services.feedback,
                max_batch_items,
            ),
            OutcomeServicer(services.outcome_log),  # type: ignore[abstract]
            FeedbackServicer(  # type: ignore[abstract]
                services.feedback, services.feedback_candidates
            ),
            PruningServicer(services.pruning),  # type: ignore[abstract]
            ExtractionServicer(services.extraction),  # type: ignore[abstract]
            CodeServicer(services.code_extraction),  # type: ignore[abstract]
            DistillingServicer(  # type: ignore[abstract]
                services.distilling, services.patterns, services.lineage, services.feedback
            ),
        ],
        _service(episode_service_pb2, "EpisodeService"): [
            EpisodeServicer(  # type: ignore[abstract]
                services.episodes,
                services.recorder,
                services.episode_recall,
                services.episode_extraction,
                limits.stream_idle_seconds,
            ),
            EpisodeDeletingServicer(services.episode_deleter),  # type: ignore[abstract]
            ReplayServicer(services.replaying),  # type: ignore[abstract]
            FailuresServicer(services.failures),  # type: ignore[abstract]
        ],
        _service(learning_service_pb2, "LearningService"): [
            RecommendationServicer(services.recommender),  # type: ignore[abstract]
            PerformanceServicer(services.performance),  # type: ignore[abstract]
            LearningEventServicer(  # type: ignore[abstract]
                services.learning_events, services.feedback_handler
            ),
            DecisionServicer(services.decisions),  # type: ignore[abstract]
            ActionServicer(  # type: ignore[abstract]
                services.selections, services.step_recorder, services.action_values
            ),
        ],
        _service(admin_service_pb2, "AdminService"): [
            PolicyServicer(services.policies, services.keeping),  # type: ignore[abstract]
            SeedServicer(services.seeding),  # type: ignore[abstract]
            ReindexServicer(services.reindexing),  # type: ignore[abstract]
            NamespaceServicer(services.namespaces, services.clearing),  # type: ignore[abstract]
            TransferServicer(  # type: ignore[abstract]
                services.exporter,
                services.importer,
                services.admin,
                clock,
                version,
                limits.stream_idle_seconds,
                services.model,
                services.gate,
            ),
        ],
    }
    admin = servicers[_service(admin_service_pb2, "AdminService")]
    kinds = {service: [type(one) for one in sharing] for service, sharing in servicers.items()}
    kinds[_service(admin_service_pb2, "AdminService")].append(AdminServicer)
    facts = ServerDescription(
        version=version,
        capabilities=_carried_out(kinds),
        limits=limits,
        max_batch_items=max_batch_items,
        needed_bytes=needed_bytes,
        start_time=clock.now(),
    )
    admin.append(AdminServicer(services.admin, clock, facts))  # type: ignore[abstract]
    return servicers


def _service(module: object, name: str) -> ServiceDescriptor:
    descriptor: ServiceDescriptor = module.DESCRIPTOR.services_by_name[name]  # type: ignore[attr-defined]
    return descriptor


def _carried_out(kinds: Mapping[ServiceDescriptor, Sequence[type]]) -> tuple[str, ...]:
    """The RPCs that one of the servicers carries out, as ``PatternService.SavePattern``."""
    return tuple(
        sorted(
            f"{service.name}.{method.name}"
            for service, sharing in kinds.items()
            for method in service.methods
            if any(carries_out(kind, method.name) for kind in sharing)
        )
    )
