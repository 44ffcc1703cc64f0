"""The services over one store, one embedder and one reranker."""

from __future__ import annotations

from dataclasses import dataclass

from lot_grpc.domain.episode import Episode
from lot_grpc.domain.errors import ErrorSolutionNotFoundError
from lot_grpc.domain.memory import Memory
from lot_grpc.domain.pattern import Pattern
from lot_grpc.domain.ranking import RankingWeights
from lot_grpc.domain.recommendation import DEFAULT_WEIGHTS, StructuralWeights
from lot_grpc.ports import Clock, Embedder, Reranker, VectorStore
from lot_grpc.services import episode_deleting as episode_deleting_module
from lot_grpc.services import memories as memories_module
from lot_grpc.services import patterns as patterns_module
from lot_grpc.services.action_values import ActionValues
from lot_grpc.services.admin import Admin
from lot_grpc.services.asked import AskedVectors
from lot_grpc.services.cells import Cells
from lot_grpc.services.claims import Claims
from lot_grpc.services.counting import Counting
from lot_grpc.services.decisions import Decisions
from lot_grpc.services.episode_deleting import EpisodeDeleting
from lot_grpc.services.episodes import Episodes
from lot_grpc.services.event_log import EventLog
from lot_grpc.services.evidence import PatternEvidence
from lot_grpc.services.facts import Facts
from lot_grpc.services.feedback import Feedback
from lot_grpc.services.feedback_candidates import FeedbackCandidates
from lot_grpc.services.fencing import Fence
from lot_grpc.services.history import History
from lot_grpc.services.housekeeping import Housekeeping
from lot_grpc.services.indexing import Indexing
from lot_grpc.services.keeping import Keeping
from lot_grpc.services.kept import kept_nouns
from lot_grpc.services.learning_events import LearningEvents
from lot_grpc.services.ledger import Ledger
from lot_grpc.services.memories import Memories
from lot_grpc.services.moments import Moments
from lot_grpc.services.once import Once
from lot_grpc.services.outcome_log import OutcomeLog
from lot_grpc.services.outcomes import RecordingOutcomes
from lot_grpc.services.patterns import Patterns
from lot_grpc.services.performance import Performance
from lot_grpc.services.policies import Policies
from lot_grpc.services.preferences import Preferences
from lot_grpc.services.pruning import Pruning
from lot_grpc.services.questions import episode_noun, memory_noun, pattern_noun
from lot_grpc.services.recall import Noun, Recall, T
from lot_grpc.services.recommendations import Recommending
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
    outcome_log: OutcomeLog
    feedback: Feedback
    feedback_candidates: FeedbackCandidates
    pruning: Pruning
    episodes: Episodes
    recording: Recording
    episode_recall: Recall[Episode]
    episode_deleting: EpisodeDeleting
    memories: Memories
    memory_recall: Recall[Memory]
    recommending: Recommending
    performance: Performance
    admin: Admin
    policies: Policies
    keeping: Keeping
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
    structural_weights: StructuralWeights = DEFAULT_WEIGHTS,
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
    feedback = Feedback(store, moments, ledger, patterns, tombstones)
    memories = Memories(store, indexing, moments, ledger, tombstones)
    log, writers = EventLog(store), Writers()
    fence = Fence(store, log)
    episode_deleting = EpisodeDeleting(store, log, writers, tombstones)
    episodes = Episodes(store, indexing, moments, ledger, log, writers, fence, episode_deleting)
    policies = Policies(store, moments)
    nouns = kept_nouns(patterns, memories, episode_deleting)
    keeping = Keeping(store, moments, policies, nouns)

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
            patterns.get,
            episodes,
            _no_error_solution,
            decisions,
            selections,
            memories,
            retrievals,
        ),
        moves_of(feedback, decisions, selections, action_values),
    )

    def recall(noun: Noun[T]) -> Recall[T]:
        return Recall(store, embedder, retrievals, reranks, weights, noun)

    return Services(
        saving=Saving(store, indexing, moments, ledger, counting, claims, tombstones),
        patterns=patterns,
        pattern_recall=recall(pattern_noun(patterns, PatternEvidence(store, moments, weights))),
        outcomes=RecordingOutcomes(moments, ledger, counting, patterns, retrievals, asked),
        outcome_log=OutcomeLog(store, moments, ledger, counting, patterns),
        feedback=feedback,
        feedback_candidates=FeedbackCandidates(store, patterns),
        pruning=Pruning(store, patterns),
        episodes=episodes,
        recording=Recording(moments, ledger, log, writers, fence),
        episode_recall=recall(episode_noun(episodes)),
        episode_deleting=episode_deleting,
        memories=memories,
        memory_recall=recall(memory_noun(memories)),
        recommending=Recommending(store, embedder, structural_weights, policies.thresholds),
        performance=Performance(store, moments),
        admin=Admin(store, embedder),
        policies=policies,
        keeping=keeping,
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
                episode_deleting_module.NOUN: episode_deleting.finish_delete,
            },
            patterns.finish_expiry,
            finishers=[
                cells.finish_merges,
                feedback.roll_forward,
                action_values.roll_forward,
                submitting_feedback.roll_forward,
            ],
            sweeps=[keeping.sweep],
        ),
        retrievals=retrievals,
        learning_events=LearningEvents(store, moments, once),
        submitting_feedback=submitting_feedback,
        decisions=decisions,
        selections=selections,
        recording_steps=RecordingSteps(moments, ledger, action_values, selections),
        action_values=action_values,
    )


async def _no_error_solution(namespace: str, error_solution_id: str) -> None:
    """This version has none."""
    raise ErrorSolutionNotFoundError(namespace, error_solution_id)
