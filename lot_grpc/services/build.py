"""The services over one store, one embedder and one reranker."""

from __future__ import annotations

from dataclasses import dataclass

from lot_grpc.domain.episode import Episode
from lot_grpc.domain.errors import ErrorSolutionNotFoundError, UnimplementedError
from lot_grpc.domain.memory import Memory
from lot_grpc.domain.pattern import Pattern
from lot_grpc.domain.ranking import RankingWeights
from lot_grpc.ports import Clock, Embedder, Reranker, VectorStore
from lot_grpc.services import memories as memories_module
from lot_grpc.services import patterns as patterns_module
from lot_grpc.services.action_values import ActionValues
from lot_grpc.services.admin import Admin
from lot_grpc.services.claims import Claims
from lot_grpc.services.counting import Counting
from lot_grpc.services.decisions import Decisions
from lot_grpc.services.episodes import Episodes
from lot_grpc.services.event_log import EventLog
from lot_grpc.services.fencing import Fence
from lot_grpc.services.housekeeping import Housekeeping
from lot_grpc.services.indexing import Indexing
from lot_grpc.services.learning_events import LearningEvents
from lot_grpc.services.ledger import Ledger
from lot_grpc.services.memories import Memories
from lot_grpc.services.moments import Moments
from lot_grpc.services.once import Once
from lot_grpc.services.outcomes import RecordingOutcomes
from lot_grpc.services.patterns import Patterns
from lot_grpc.services.preferences import Preferences
from lot_grpc.services.questions import episode_noun, memory_noun, pattern_noun
from lot_grpc.services.recall import Noun, Recall, T
from lot_grpc.services.recording import Recording
from lot_grpc.services.recording_steps import RecordingSteps
from lot_grpc.services.reranks import RerankBounds, Reranks
from lot_grpc.services.retrievals import Retrievals
from lot_grpc.services.saving import Saving
from lot_grpc.services.selections import Selections
from lot_grpc.services.submitting_feedback import SubmittingFeedback
from lot_grpc.services.targets import checks_of, moves_of
from lot_grpc.services.tombstones import Tombstones
from lot_grpc.services.writers import Writers


@dataclass(frozen=True, slots=True)
class Services:
    """Every use case."""

    saving: Saving
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
    learning_events: LearningEvents
    submitting_feedback: SubmittingFeedback
    decisions: Decisions
    selections: Selections
    recording_steps: RecordingSteps
    action_values: ActionValues


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
    counting = Counting(store, moments)
    retrievals = Retrievals(store, moments)
    claims = Claims(store, moments)
    indexing = Indexing(embedder)
    reranks = Reranks(store, reranker, rerank_bounds)
    patterns = Patterns(store, indexing, moments, claims, tombstones)
    memories = Memories(store, indexing, moments, ledger, tombstones)
    log, writers = EventLog(store), Writers()
    fence = Fence(store, log)
    episodes = Episodes(store, indexing, moments, ledger, log, writers, fence)

    once = Once(store, ledger)
    action_values = ActionValues(store, moments)
    selections = Selections(store, moments, once, action_values)
    decisions = Decisions(store, moments, ledger, once)
    submitting_feedback = SubmittingFeedback(
        store,
        moments,
        ledger,
        Preferences(store, moments),
        checks_of(
            _patterns_not_yet,
            episodes,
            _no_error_solution,
            decisions,
            selections,
            memories,
            retrievals,
        ),
        moves_of(_patterns_not_yet, decisions, selections, action_values),
    )

    def recall(noun: Noun[T]) -> Recall[T]:
        return Recall(store, embedder, retrievals, reranks, weights, noun)

    return Services(
        saving=Saving(store, indexing, moments, ledger, counting, claims, tombstones),
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
            finishers=(action_values.roll_forward, submitting_feedback.roll_forward),
        ),
        retrievals=retrievals,
        learning_events=LearningEvents(store, moments, once),
        submitting_feedback=submitting_feedback,
        decisions=decisions,
        selections=selections,
        recording_steps=RecordingSteps(moments, ledger, action_values, selections),
        action_values=action_values,
    )


async def _patterns_not_yet(*target: object) -> None:
    raise UnimplementedError(
        "feedback in words on a pattern is not carried out by this version; name another target",
        what="SubmitFeedback.target pattern_id",
    )


async def _no_error_solution(namespace: str, error_solution_id: str) -> None:
    """This version has none."""
    raise ErrorSolutionNotFoundError(namespace, error_solution_id)
