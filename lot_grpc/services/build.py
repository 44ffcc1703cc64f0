"""The services over one store, one embedder and one reranker."""

from __future__ import annotations

from dataclasses import dataclass

from lot_grpc.domain.episode import Episode
from lot_grpc.domain.memory import Memory
from lot_grpc.domain.pattern import Pattern
from lot_grpc.domain.ranking import RankingWeights
from lot_grpc.ports import Clock, Embedder, Reranker, VectorStore
from lot_grpc.services import memories as memories_module
from lot_grpc.services import patterns as patterns_module
from lot_grpc.services.admin import Admin
from lot_grpc.services.asked import AskedVectors
from lot_grpc.services.cells import Cells
from lot_grpc.services.claims import Claims
from lot_grpc.services.counting import Counting
from lot_grpc.services.episodes import Episodes
from lot_grpc.services.event_log import EventLog
from lot_grpc.services.evidence import PatternEvidence
from lot_grpc.services.facts import Facts
from lot_grpc.services.fencing import Fence
from lot_grpc.services.history import History
from lot_grpc.services.housekeeping import Housekeeping
from lot_grpc.services.indexing import Indexing
from lot_grpc.services.ledger import Ledger
from lot_grpc.services.memories import Memories
from lot_grpc.services.moments import Moments
from lot_grpc.services.outcome_log import OutcomeLog
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
class Services:
    """Every use case."""

    saving: Saving
    patterns: Patterns
    pattern_recall: Recall[Pattern]
    outcomes: RecordingOutcomes
    outcome_log: OutcomeLog
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
) -> Services:
    """Wire them. The store is open (``store_contract.open_store``)."""
    moments = Moments(clock)
    ledger = Ledger(store, moments)
    tombstones = Tombstones(store, moments)
    retrievals = Retrievals(store, moments)
    facts, history = Facts(store, moments), History(store)
    asked = AskedVectors(retrievals, embedder)
    cells = Cells(store, moments, facts, history, asked, weights.fading)
    counting = Counting(store, facts, cells, history)
    claims = Claims(store, moments)
    indexing = Indexing(embedder)
    reranks = Reranks(store, reranker, rerank_bounds)
    patterns = Patterns(store, indexing, moments, claims, tombstones)
    memories = Memories(store, indexing, moments, ledger, tombstones)
    log, writers = EventLog(store), Writers()
    fence = Fence(store, log)
    episodes = Episodes(store, indexing, moments, ledger, log, writers, fence)

    def recall(noun: Noun[T]) -> Recall[T]:
        return Recall(store, embedder, retrievals, reranks, weights, noun)

    return Services(
        saving=Saving(store, indexing, moments, ledger, counting, claims, tombstones),
        patterns=patterns,
        pattern_recall=recall(pattern_noun(patterns, PatternEvidence(store, moments, weights))),
        outcomes=RecordingOutcomes(moments, ledger, counting, patterns, retrievals, asked),
        outcome_log=OutcomeLog(store, moments, ledger, counting, patterns),
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
            finishers=[cells.finish_merges],
        ),
        retrievals=retrievals,
    )
