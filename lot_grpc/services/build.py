"""The services over one store, one embedder and one reranker."""

from __future__ import annotations

from dataclasses import dataclass, field

from lot_grpc.domain.episode import Episode
from lot_grpc.domain.memory import Memory
from lot_grpc.domain.pattern import Pattern
from lot_grpc.domain.ranking import RankingWeights
from lot_grpc.ports import Clock, Embedder, Reranker, VectorStore
from lot_grpc.services import memories as memories_module
from lot_grpc.services import patterns as patterns_module
from lot_grpc.services.admin import Admin
from lot_grpc.services.claims import Claims
from lot_grpc.services.counting import Counting
from lot_grpc.services.distill_schedule import DistillSchedule
from lot_grpc.services.distilling import DistillDefaults, Distilling
from lot_grpc.services.episodes import Episodes
from lot_grpc.services.event_log import EventLog
from lot_grpc.services.fencing import Fence
from lot_grpc.services.housekeeping import Housekeeping
from lot_grpc.services.indexing import Indexing
from lot_grpc.services.ledger import Ledger
from lot_grpc.services.lineage import Lineage
from lot_grpc.services.memories import Memories
from lot_grpc.services.moments import Moments
from lot_grpc.services.nearest import DEFAULT_SIMILARITY, Nearest
from lot_grpc.services.outcomes import RecordingOutcomes
from lot_grpc.services.patterns import Patterns
from lot_grpc.services.questions import episode_noun, memory_noun, pattern_noun
from lot_grpc.services.recall import Noun, Recall, T
from lot_grpc.services.recording import Recording
from lot_grpc.services.reranks import RerankBounds, Reranks
from lot_grpc.services.retrievals import Retrievals
from lot_grpc.services.saving import Saving
from lot_grpc.services.tombstones import Tombstones
from lot_grpc.services.writers import Writers


@dataclass(frozen=True, slots=True)
class PatternLearning:
    """How patterns are merged and distilled (settings). ``interval``: seconds, 0 is never."""

    merge_similarity: float = DEFAULT_SIMILARITY
    distill: DistillDefaults = field(default_factory=DistillDefaults)
    interval: float = 0.0


@dataclass(frozen=True, slots=True)
class Services:
    """Every use case."""

    saving: Saving
    distilling: Distilling
    distill_schedule: DistillSchedule
    lineage: Lineage
    patterns: Patterns
    pattern_recall: Recall[Pattern]
    outcomes: RecordingOutcomes
    episodes: Episodes
    recording: Recording
    episode_recall: Recall[Episode]
    memories: Memories
    memory_recall: Recall[Memory]
    admin: Admin
    housekeeping: Housekeeping
    retrievals: Retrievals


def build_services(
    store: VectorStore,
    embedder: Embedder,
    reranker: Reranker,
    clock: Clock,
    weights: RankingWeights,
    rerank_bounds: RerankBounds,
    learning: PatternLearning | None = None,
) -> Services:
    """Wire them. The store is open (``store_contract.open_store``)."""
    moments = Moments(clock)
    ledger = Ledger(store, moments)
    tombstones = Tombstones(store, moments)
    counting = Counting(store, moments)
    retrievals = Retrievals(store, moments)
    claims = Claims(store, moments)
    indexing = Indexing(embedder)
    reranks = Reranks(store, reranker, rerank_bounds)
    learning = learning or PatternLearning()
    nearest, lineage = Nearest(store, learning.merge_similarity), Lineage(store, moments)
    patterns = Patterns(store, indexing, moments, claims, tombstones, lineage)
    distilling = Distilling(store, indexing, moments, learning.distill)
    schedule = DistillSchedule(store, moments, distilling, learning.interval)
    saving = Saving(
        store, indexing, moments, ledger, counting, claims, tombstones, nearest, lineage
    )
    memories = Memories(store, indexing, moments, ledger, tombstones)
    log, writers = EventLog(store), Writers()
    fence = Fence(store, log)
    episodes = Episodes(store, indexing, moments, ledger, log, writers, fence)

    def recall(noun: Noun[T]) -> Recall[T]:
        return Recall(store, embedder, retrievals, reranks, weights, noun)

    return Services(
        saving=saving,
        distilling=distilling,
        distill_schedule=schedule,
        lineage=lineage,
        patterns=patterns,
        pattern_recall=recall(pattern_noun(patterns)),
        outcomes=RecordingOutcomes(moments, ledger, counting, patterns, retrievals),
        episodes=episodes,
        recording=Recording(moments, ledger, log, writers, fence),
        episode_recall=recall(episode_noun(episodes)),
        memories=memories,
        memory_recall=recall(memory_noun(memories)),
        admin=Admin(store, embedder),
        housekeeping=Housekeeping(
            store,
            moments,
            counting,
            tombstones,
            log,
            retrievals,
            {
                patterns_module.NOUN: patterns.finish_delete,
                memories_module.NOUN: memories.finish_delete,
            },
            patterns.finish_expiry,
            finishers=(lineage.roll_forward,),
            sweeps=(schedule.sweep,),
        ),
        retrievals=retrievals,
    )
