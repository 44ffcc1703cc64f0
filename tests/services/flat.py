"""The services of a process by one name each, wherever they are in its modules."""

from __future__ import annotations

from dataclasses import dataclass

from lot_grpc.domain.episode import Episode
from lot_grpc.domain.memory import Memory
from lot_grpc.domain.pattern import Pattern
from lot_grpc.services.admin import Admin
from lot_grpc.services.build import Services as Modules
from lot_grpc.services.changes.sequencer import ChangeSequencer
from lot_grpc.services.changes.watcher import ChangeWatcher
from lot_grpc.services.clearing.clearer import NamespaceClearer
from lot_grpc.services.clearing.namespaces import Namespaces
from lot_grpc.services.context.task_context import TaskContextBuilder
from lot_grpc.services.distillation.distiller import Distiller
from lot_grpc.services.distillation.schedule import DistillSchedule
from lot_grpc.services.episodes.abandoner import EpisodeAbandoner
from lot_grpc.services.episodes.episode_deleter import EpisodeDeleter
from lot_grpc.services.episodes.episodes import Episodes
from lot_grpc.services.episodes.event_recorder import EventRecorder
from lot_grpc.services.episodes.failure_analyzer import FailureAnalyzer
from lot_grpc.services.episodes.leases import Leases
from lot_grpc.services.episodes.replayer import EpisodeReplayer
from lot_grpc.services.errors.error_finder import ErrorSolutionFinder
from lot_grpc.services.errors.error_outcomes import ErrorOutcomeRecorder
from lot_grpc.services.errors.error_solutions import ErrorSolutions
from lot_grpc.services.extraction.code_extraction import CodeExtraction
from lot_grpc.services.extraction.episode_extraction import EpisodeExtraction
from lot_grpc.services.extraction.pattern_extraction import PatternExtraction
from lot_grpc.services.housekeeping import Housekeeping
from lot_grpc.services.learning.action_values import ActionValues
from lot_grpc.services.learning.decisions import Decisions
from lot_grpc.services.learning.feedback_handler import FeedbackHandler
from lot_grpc.services.learning.learning_events import LearningEvents
from lot_grpc.services.learning.performance import Performance
from lot_grpc.services.learning.recommendations import Recommender
from lot_grpc.services.learning.selections import Selections
from lot_grpc.services.learning.step_recorder import StepRecorder
from lot_grpc.services.memories.bulk_deleter import MemoryBulkDeleter
from lot_grpc.services.memories.memories import Memories
from lot_grpc.services.memories.passages import PassageMatcher
from lot_grpc.services.operations import ResourceOperations
from lot_grpc.services.outcomes.outcome_log import OutcomeLog
from lot_grpc.services.outcomes.outcomes import OutcomeRecorder
from lot_grpc.services.patterns.feedback import Feedback
from lot_grpc.services.patterns.feedback_candidates import FeedbackCandidates
from lot_grpc.services.patterns.lineage import Lineage
from lot_grpc.services.patterns.pattern_writer import PatternWriter
from lot_grpc.services.patterns.patterns import Patterns
from lot_grpc.services.patterns.pruner import PatternPruner
from lot_grpc.services.preferences.preferences import Preferences
from lot_grpc.services.recall.learned_tasks import LearnedTasks
from lot_grpc.services.recall.recall import Recall
from lot_grpc.services.recall.retrievals import Retrievals
from lot_grpc.services.reindex.current_model import CurrentModel
from lot_grpc.services.reindex.gate import ModelGate
from lot_grpc.services.reindex.model_store import ModelStore
from lot_grpc.services.reindex.reindexer import Reindexer
from lot_grpc.services.retention.policies import Policies
from lot_grpc.services.retention.sweep import RetentionSweep
from lot_grpc.services.runtime import Runtime
from lot_grpc.services.seeder import KnowledgeSeeder
from lot_grpc.services.sessions.session_messages import SessionMessages
from lot_grpc.services.sessions.session_values import SessionValues
from lot_grpc.services.sessions.sessions import Sessions
from lot_grpc.services.transfer.exporter import Exporter
from lot_grpc.services.transfer.importer import Importer


@dataclass(frozen=True, slots=True)
class Services:
    """Every use case."""

    modules: Modules
    runtime: Runtime
    pattern_writer: PatternWriter
    distilling: Distiller
    distill_schedule: DistillSchedule
    lineage: Lineage
    patterns: Patterns
    pattern_recall: Recall[Pattern]
    outcomes: OutcomeRecorder
    outcome_log: OutcomeLog
    feedback: Feedback
    feedback_candidates: FeedbackCandidates
    pruning: PatternPruner
    episodes: Episodes
    leases: Leases
    abandoning: EpisodeAbandoner
    recorder: EventRecorder
    replaying: EpisodeReplayer
    episode_recall: Recall[Episode]
    episode_deleter: EpisodeDeleter
    failures: FailureAnalyzer
    memories: Memories
    memory_recall: Recall[Memory]
    memory_passages: PassageMatcher
    memory_bulk_deleter: MemoryBulkDeleter
    recommender: Recommender
    performance: Performance
    error_solutions: ErrorSolutions
    error_finder: ErrorSolutionFinder
    error_outcomes: ErrorOutcomeRecorder
    preferences: Preferences
    sessions: Sessions
    session_values: SessionValues
    session_messages: SessionMessages
    seeding: KnowledgeSeeder
    admin: Admin
    operations: ResourceOperations
    exporter: Exporter
    importer: Importer
    policies: Policies
    keeping: RetentionSweep
    namespaces: Namespaces
    clearing: NamespaceClearer
    housekeeping: Housekeeping
    retrievals: Retrievals
    sequencer: ChangeSequencer
    change_watcher: ChangeWatcher
    learning_events: LearningEvents
    feedback_handler: FeedbackHandler
    decisions: Decisions
    selections: Selections
    step_recorder: StepRecorder
    action_values: ActionValues
    extraction: PatternExtraction
    episode_extraction: EpisodeExtraction
    learned_tasks: LearnedTasks
    code_extraction: CodeExtraction
    model: CurrentModel
    model_store: ModelStore
    gate: ModelGate
    reindexing: Reindexer
    task_contexts: TaskContextBuilder


def flat(modules: Modules) -> Services:
    """The services of modules."""
    return Services(
        modules=modules,
        runtime=modules.runtime,
        pattern_writer=modules.patterns.writer,
        distilling=modules.distillation.distiller,
        distill_schedule=modules.distillation.schedule,
        lineage=modules.patterns.lineage,
        patterns=modules.patterns.patterns,
        pattern_recall=modules.recall.patterns,
        outcomes=modules.patterns.outcomes,
        outcome_log=modules.patterns.outcome_log,
        feedback=modules.patterns.feedback,
        feedback_candidates=modules.patterns.feedback_candidates,
        pruning=modules.patterns.pruner,
        episodes=modules.episodes.episodes,
        leases=modules.episodes.leases,
        abandoning=modules.episodes.abandoner,
        recorder=modules.episodes.recorder,
        replaying=modules.episodes.replayer,
        episode_recall=modules.recall.episodes,
        episode_deleter=modules.episodes.deleter,
        failures=modules.episodes.failures,
        memories=modules.memories.memories,
        memory_recall=modules.recall.memories,
        memory_passages=modules.memories.passages,
        memory_bulk_deleter=modules.memories.bulk_deleter,
        recommender=modules.learning.recommender,
        performance=modules.learning.performance,
        error_solutions=modules.errors.solutions,
        error_finder=modules.errors.finder,
        error_outcomes=modules.errors.outcomes,
        preferences=modules.preferences.preferences,
        sessions=modules.sessions.sessions,
        session_values=modules.sessions.values,
        session_messages=modules.sessions.messages,
        seeding=modules.seeder,
        admin=modules.admin,
        operations=modules.operations,
        exporter=modules.transfer.exporter,
        importer=modules.transfer.importer,
        policies=modules.retention.policies,
        keeping=modules.retention.sweep,
        namespaces=modules.clearing.namespaces,
        clearing=modules.clearing.clearer,
        housekeeping=modules.housekeeping,
        retrievals=modules.runtime.retrievals,
        sequencer=modules.runtime.stack.sequencer,
        change_watcher=modules.changes.watcher,
        learning_events=modules.learning.learning_events,
        feedback_handler=modules.learning.feedback_handler,
        decisions=modules.learning.decisions,
        selections=modules.learning.selections,
        step_recorder=modules.learning.step_recorder,
        action_values=modules.learning.action_values,
        extraction=modules.extraction.patterns,
        episode_extraction=modules.extraction.episodes,
        learned_tasks=modules.recall.learned_tasks,
        code_extraction=modules.extraction.code,
        model=modules.runtime.model,
        model_store=modules.runtime.stack.model,
        gate=modules.runtime.gate,
        reindexing=modules.reindexer,
        task_contexts=modules.task_contexts,
    )
