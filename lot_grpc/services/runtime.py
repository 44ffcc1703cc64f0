"""The runtime that every module is built on, and the settings of the services."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from lot_grpc.domain.episode import DEFAULT_ABANDON_HOURS
from lot_grpc.domain.knowledge import KnowledgePack
from lot_grpc.domain.pattern import DEFAULT_MERGE_SIMILARITY
from lot_grpc.domain.quota import Quota
from lot_grpc.domain.ranking import RankingWeights
from lot_grpc.domain.recommendation import DEFAULT_WEIGHTS, StructuralWeights
from lot_grpc.kernel.create import CreateOnce
from lot_grpc.kernel.idempotency import IdempotencyStore
from lot_grpc.kernel.tombstones import Tombstones
from lot_grpc.ports import Clock, Embedder, Reranker, VectorStore
from lot_grpc.services.changes.settings import ChangeFeed
from lot_grpc.services.clearing.clear_registry import LOOK_SECONDS
from lot_grpc.services.distillation.distiller import DistillDefaults
from lot_grpc.services.indexer import Indexer
from lot_grpc.services.recall.reranks import RerankBounds
from lot_grpc.services.registry import Registry
from lot_grpc.services.reindex.current_model import CurrentModel
from lot_grpc.services.reindex.gate import ModelGate
from lot_grpc.services.retention.policies import Policies
from lot_grpc.services.retrievals.retrievals import Retrievals
from lot_grpc.services.store_stack import NO_QUOTA, StoreStack
from lot_grpc.services.time_source import TimeSource


@dataclass(frozen=True, slots=True)
class PatternLearning:
    """Settings of merging and distilling patterns. ``interval`` in seconds; 0: never."""

    merge_similarity: float = DEFAULT_MERGE_SIMILARITY
    distill: DistillDefaults = field(default_factory=DistillDefaults)
    interval: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    """Settings of the services.

    Attributes:
        weights: How far learning may move a hit.
        rerank: How much is reranked, and for how long.
        similarity: What makes an episode similar to a task.
        learning: How patterns are merged and distilled.
        changes: Settings of the change feed.
        packs: The knowledge packs to seed; None: those of the server.
        abandon_after_hours: Hours of inactivity after which an episode is abandoned; 0: never.
        look_seconds: How often a shared store is checked for clears by other processes.
        quota: The quota of namespaces whose policy sets none.
    """

    weights: RankingWeights = field(default_factory=RankingWeights)
    rerank: RerankBounds = field(default_factory=RerankBounds)
    similarity: StructuralWeights = DEFAULT_WEIGHTS
    learning: PatternLearning = field(default_factory=PatternLearning)
    changes: ChangeFeed = field(default_factory=ChangeFeed)
    packs: Sequence[KnowledgePack] | None = None
    abandon_after_hours: float = DEFAULT_ABANDON_HOURS
    look_seconds: float = LOOK_SECONDS
    quota: Quota = NO_QUOTA


@dataclass(frozen=True, slots=True)
class Runtime:
    """What a module builds its services from.

    Attributes:
        stack: The layers around the store.
        registry: The kinds of record.
        time: The clock, and sort keys.
        model: The current embedder.
        reranker: The cross-encoder.
        settings: Settings of the services.
        gate: Held by everything that works with vectors.
        indexer: Makes the vectors of texts.
        idempotency: Records of request ids.
        tombstones: Records of deletes.
        create: Creates a record once.
        policies: The policies of namespaces.
        retrievals: What recalls were asked and what they showed.
    """

    stack: StoreStack
    registry: Registry
    time: TimeSource
    model: CurrentModel
    reranker: Reranker
    settings: ServiceSettings
    gate: ModelGate
    indexer: Indexer
    idempotency: IdempotencyStore
    tombstones: Tombstones
    create: CreateOnce
    policies: Policies
    retrievals: Retrievals

    @property
    def store(self) -> VectorStore:
        """The store as services see it: the outermost layer."""
        return self.stack.clear_guard


def open_runtime(
    store: VectorStore,
    registry: Registry,
    embedder: Embedder,
    reranker: Reranker,
    clock: Clock,
    settings: ServiceSettings | None = None,
    *,
    epoch: int = 0,
) -> Runtime:
    """The runtime over an open store (``store_metadata.open_store``) with vectors of ``epoch``."""
    settings = settings or ServiceSettings()
    time_source, model = TimeSource(clock), CurrentModel(embedder, epoch)
    stack = StoreStack(store, registry, model, time_source, settings.look_seconds, settings.quota)
    idempotency = IdempotencyStore(stack.clear_guard, time_source)
    tombstones = Tombstones(stack.clear_guard, time_source)
    policies = Policies(stack.clear_guard, time_source)
    return Runtime(
        stack,
        registry,
        time_source,
        model,
        reranker,
        settings,
        ModelGate(),
        Indexer(model),
        idempotency,
        tombstones,
        CreateOnce(stack.clear_guard, idempotency, tombstones),
        policies,
        Retrievals(stack.clear_guard, time_source, model, policies),
    )
