"""The services over one store, one embedder and one reranker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from lot_grpc.domain.episode import DEFAULT_ABANDON_HOURS, Episode
from lot_grpc.domain.knowledge import KnowledgePack
from lot_grpc.domain.memory import Memory
from lot_grpc.domain.pattern import DEFAULT_MERGE_SIMILARITY, Pattern
from lot_grpc.domain.ranking import IMPORTANCE, RankingWeights
from lot_grpc.domain.recommendation import DEFAULT_WEIGHTS, StructuralWeights
from lot_grpc.kernel.create import CreateOnce
from lot_grpc.kernel.idempotency import IdempotencyStore
from lot_grpc.kernel.tombstones import Tombstones
from lot_grpc.knowledge import built_in_packs
from lot_grpc.ports import Clock, Embedder, Reranker, VectorStore
from lot_grpc.services.admin import Admin
from lot_grpc.services.changes.build import ChangeFeed, ChangeTracking
from lot_grpc.services.changes.readers import readers_of
from lot_grpc.services.changes.sequencer import ChangeSequencer
from lot_grpc.services.changes.watcher import ChangeWatcher
from lot_grpc.services.claims import Claims
from lot_grpc.services.clearing.clear_guard_store import ClearGuardStore
from lot_grpc.services.clearing.clear_registry import LOOK_SECONDS, ClearRegistry
from lot_grpc.services.clearing.clearer import NamespaceClearer
from lot_grpc.services.clearing.namespaces import Namespaces
from lot_grpc.services.context.task_context import TaskContextBuilder
from lot_grpc.services.distillation.distiller import DistillDefaults, Distiller
from lot_grpc.services.distillation.schedule import DistillSchedule
from lot_grpc.services.episodes import episode_deleter as episode_deleter_module
from lot_grpc.services.episodes.abandoner import EpisodeAbandoner
from lot_grpc.services.episodes.active_streams import ActiveStreams
from lot_grpc.services.episodes.episode_deleter import EpisodeDeleter
from lot_grpc.services.episodes.episodes import Episodes
from lot_grpc.services.episodes.event_log import EventLog
from lot_grpc.services.episodes.event_recorder import EventRecorder
from lot_grpc.services.episodes.failure_analyzer import FailureAnalyzer
from lot_grpc.services.episodes.fence import Fence
from lot_grpc.services.episodes.leases import RENEW_SECONDS, Leases
from lot_grpc.services.episodes.notifier import EpisodeNotifier
from lot_grpc.services.episodes.replayer import EpisodeReplayer
from lot_grpc.services.episodes.reuse import ReuseCounter
from lot_grpc.services.extraction.code_extraction import CodeExtraction
from lot_grpc.services.extraction.digest_reader import DigestReader
from lot_grpc.services.extraction.episode_extraction import EpisodeExtraction
from lot_grpc.services.extraction.evidence_collector import EvidenceCollector
from lot_grpc.services.extraction.learned_patterns import LearnedPatterns
from lot_grpc.services.extraction.pattern_extraction import PatternExtraction
from lot_grpc.services.housekeeping import Housekeeping
from lot_grpc.services.indexer import Indexer
from lot_grpc.services.learning import decisions as decisions_module
from lot_grpc.services.learning import learning_events as learning_events_module
from lot_grpc.services.learning.action_values import ActionValues
from lot_grpc.services.learning.decisions import Decisions
from lot_grpc.services.learning.feedback_handler import FeedbackHandler
from lot_grpc.services.learning.learning_events import LearningEvents
from lot_grpc.services.learning.performance import Performance
from lot_grpc.services.learning.recommendations import Recommender
from lot_grpc.services.learning.selections import Selections
from lot_grpc.services.learning.step_recorder import StepRecorder
from lot_grpc.services.learning.targets import checks_of, moves_of
from lot_grpc.services.memories import drafts as memory_drafts
from lot_grpc.services.memories import error_solutions as error_solutions_module
from lot_grpc.services.memories import preference_records as preferences_module
from lot_grpc.services.memories.bulk_deleter import MemoryBulkDeleter
from lot_grpc.services.memories.error_finder import ErrorSolutionFinder
from lot_grpc.services.memories.error_outcomes import ErrorOutcomeRecorder
from lot_grpc.services.memories.error_solutions import ErrorSolutions
from lot_grpc.services.memories.memories import Memories
from lot_grpc.services.memories.passages import PassageMatcher
from lot_grpc.services.memories.preferences import Preferences
from lot_grpc.services.memories.seeder import KnowledgeSeeder
from lot_grpc.services.normal_form_store import NormalFormStore
from lot_grpc.services.outcomes.cells import Cells
from lot_grpc.services.outcomes.counting import OutcomeCounter
from lot_grpc.services.outcomes.evidence import PatternEvidence
from lot_grpc.services.outcomes.history import History
from lot_grpc.services.outcomes.outcome_log import OutcomeLog
from lot_grpc.services.outcomes.outcomes import OutcomeRecorder
from lot_grpc.services.outcomes.pending_outcomes import PendingOutcomes
from lot_grpc.services.outcomes.query_vectors import QueryVectors
from lot_grpc.services.patterns import patterns as patterns_module
from lot_grpc.services.patterns.feedback import Feedback
from lot_grpc.services.patterns.feedback_candidates import FeedbackCandidates
from lot_grpc.services.patterns.lineage import Lineage
from lot_grpc.services.patterns.nearest import Nearest
from lot_grpc.services.patterns.pattern_writer import PatternWriter
from lot_grpc.services.patterns.patterns import Patterns
from lot_grpc.services.patterns.pruner import PatternPruner
from lot_grpc.services.patterns.repeat_counter import RepeatCounter
from lot_grpc.services.recall.learned_tasks import LearnedTasks
from lot_grpc.services.recall.recall import Recall, SearchTarget, T
from lot_grpc.services.recall.reranks import RerankBounds, Reranks
from lot_grpc.services.recall.retrievals import Retrievals
from lot_grpc.services.recall.targets import episode_target, memory_target, pattern_target
from lot_grpc.services.records.collections import ERROR_SOLUTIONS, PATTERNS
from lot_grpc.services.reindex.current_model import CurrentModel
from lot_grpc.services.reindex.gate import ModelGate
from lot_grpc.services.reindex.model_store import ModelStore
from lot_grpc.services.reindex.reindexer import OpenModel, Reindexer, no_other_model
from lot_grpc.services.retention.policies import Policies
from lot_grpc.services.retention.retained_kinds import retained_kinds
from lot_grpc.services.retention.sweep import RetentionSweep
from lot_grpc.services.sessions import rows as session_rows_module
from lot_grpc.services.sessions.rows import SessionRows
from lot_grpc.services.sessions.session_messages import SessionMessages
from lot_grpc.services.sessions.session_values import SessionValues
from lot_grpc.services.sessions.sessions import Sessions
from lot_grpc.services.time_source import TimeSource
from lot_grpc.services.transfer.exporter import Exporter
from lot_grpc.services.transfer.importer import Importer
from lot_grpc.services.transfer.replacer import RecordReplacer


@dataclass(frozen=True, slots=True)
class PatternLearning:
    """How patterns are merged and distilled (settings). ``interval``: seconds, 0 is never."""

    merge_similarity: float = DEFAULT_MERGE_SIMILARITY
    distill: DistillDefaults = field(default_factory=DistillDefaults)
    interval: float = 0.0


@dataclass(frozen=True, slots=True)
class Services:
    """Every use case."""

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


def build_services(
    store: VectorStore,
    embedder: Embedder,
    reranker: Reranker,
    clock: Clock,
    weights: RankingWeights,
    rerank_bounds: RerankBounds,
    structural_weights: StructuralWeights = DEFAULT_WEIGHTS,
    packs: Sequence[KnowledgePack] | None = None,
    learning: PatternLearning | None = None,
    changes: ChangeFeed | None = None,
    *,
    abandon_after_hours: float = DEFAULT_ABANDON_HOURS,
    epoch: int = 0,
    open_model: OpenModel = no_other_model,
    look_seconds: float = LOOK_SECONDS,
) -> Services:
    """Wire them. The store is open (``store_contract.open_store``), with vectors of ``epoch``.

    ``packs`` is the knowledge to seed with; None: what comes with the server. After
    ``abandon_after_hours`` without activity an episode is abandoned, 0: never. ``open_model`` opens
    the models to reindex to. ``look_seconds``: how often a shared store is asked whether another
    process clears a namespace.
    """
    time_source = TimeSource(clock)
    embedder = model = CurrentModel(embedder, epoch)
    model_store, gate = ModelStore(NormalFormStore(store), model), ModelGate()
    tracking = ChangeTracking(model_store, time_source, changes or ChangeFeed())
    sequencer = tracking.sequencer
    clear_registry = ClearRegistry(model_store, time_source, look_seconds, sequencer.pass_by)
    store = ClearGuardStore(tracking.store, clear_registry)
    idempotency = IdempotencyStore(store, time_source)
    tombstones = Tombstones(store, time_source)
    create = CreateOnce(store, idempotency, tombstones)
    retrievals = Retrievals(store, time_source, model)
    pending, history = PendingOutcomes(store, time_source), History(store)
    query_vectors = QueryVectors(retrievals, model)
    cells = Cells(store, time_source, pending, history, query_vectors, weights.fading)
    counting = OutcomeCounter(store, pending, cells, history)
    claims = Claims(store, time_source)
    indexer = Indexer(embedder)
    reranks = Reranks(store, reranker, rerank_bounds)
    learning = learning or PatternLearning()
    nearest, lineage = Nearest(store, learning.merge_similarity), Lineage(store, time_source)
    patterns = Patterns(store, indexer, time_source, claims, tombstones, lineage)
    distilling = Distiller(store, indexer, time_source, learning.distill)
    schedule = DistillSchedule(store, time_source, distilling, learning.interval)
    repeats = RepeatCounter(store, indexer, time_source, idempotency, counting, claims, nearest)
    pattern_writer = PatternWriter(
        store, indexer, time_source, create, claims, tombstones, lineage, repeats
    )
    feedback = Feedback(store, time_source, idempotency, patterns)
    memories = Memories(store, indexer, time_source, create, tombstones)
    passages = PassageMatcher(store)
    error_solutions = ErrorSolutions(store, indexer, time_source, create, tombstones)
    log, active_streams, notifier = EventLog(store), ActiveStreams(), EpisodeNotifier(store)
    fence = Fence(store, log, time_source)
    leases = Leases(fence, active_streams)
    reuse = ReuseCounter(store)
    episode_deleter = EpisodeDeleter(store, log, active_streams, tombstones, reuse, notifier)
    episodes = Episodes(
        store,
        indexer,
        time_source,
        idempotency,
        log,
        active_streams,
        fence,
        episode_deleter,
        reuse,
        notifier,
    )
    abandoning = EpisodeAbandoner(
        store, time_source, log, active_streams, notifier, abandon_after_hours
    )
    policies = Policies(store, time_source)
    retained = retained_kinds(patterns, memories, episode_deleter, error_solutions)
    keeping = RetentionSweep(store, time_source, policies, retained)

    clearing = NamespaceClearer(
        tracking.store, time_source, clear_registry, sequencer, active_streams, notifier, retrievals
    )
    action_values = ActionValues(store, time_source, policies)
    selections = Selections(store, time_source, create, action_values)
    decisions = Decisions(store, time_source, idempotency, create, tombstones)
    learning_events = LearningEvents(store, time_source, create, tombstones)
    preferences = Preferences(store, time_source, idempotency, tombstones)
    feedback_handler = FeedbackHandler(
        store,
        time_source,
        idempotency,
        preferences,
        checks_of(
            patterns.get,
            episodes,
            error_solutions.get,
            decisions,
            selections,
            memories,
            retrievals,
        ),
        moves_of(feedback, decisions, selections, action_values),
        tombstones,
    )

    session_rows = SessionRows(store, time_source)
    session_messages = SessionMessages(store, time_source, idempotency, tombstones, session_rows)
    sessions = Sessions(store, time_source, tombstones, session_rows, session_messages)

    digest_reader = DigestReader(log)
    evidence_collector = EvidenceCollector(store, digest_reader)
    learned = LearnedPatterns(store, indexer, time_source)
    extraction = PatternExtraction(evidence_collector, learned)
    episode_extraction = EpisodeExtraction(
        store,
        pattern_writer,
        patterns,
        digest_reader,
        evidence_collector,
        extraction,
        learned,
        tombstones,
        error_solutions,
    )

    learned_tasks = LearnedTasks(store)
    evidence = PatternEvidence(store, time_source, weights)

    change_watcher = tracking.change_watcher(readers_of(episodes))

    def recall(target: SearchTarget[T], ranked: RankingWeights = weights) -> Recall[T]:
        return Recall(store, embedder, retrievals, reranks, ranked, target)

    pattern_recall = recall(pattern_target(patterns, evidence, learned_tasks, change_watcher))
    episode_recall = recall(episode_target(episodes))
    memory_recall = recall(memory_target(memories, passages), replace(weights, learned=IMPORTANCE))
    error_finder = ErrorSolutionFinder(store, embedder, retrievals)
    recommender = Recommender(store, embedder, structural_weights, policies.thresholds)

    return Services(
        pattern_writer=pattern_writer,
        distilling=distilling,
        distill_schedule=schedule,
        lineage=lineage,
        patterns=patterns,
        pattern_recall=pattern_recall,
        outcomes=OutcomeRecorder(
            time_source, idempotency, counting, patterns, retrievals, query_vectors
        ),
        outcome_log=OutcomeLog(store, time_source, idempotency, counting, patterns),
        feedback=feedback,
        feedback_candidates=FeedbackCandidates(store, patterns),
        pruning=PatternPruner(store, patterns),
        episodes=episodes,
        leases=leases,
        abandoning=abandoning,
        recorder=EventRecorder(
            time_source, idempotency, log, active_streams, fence, notifier, episode_deleter
        ),
        replaying=EpisodeReplayer(store, log, notifier),
        episode_recall=episode_recall,
        episode_deleter=episode_deleter,
        failures=FailureAnalyzer(store, embedder),
        memories=memories,
        memory_recall=memory_recall,
        memory_passages=passages,
        memory_bulk_deleter=MemoryBulkDeleter(store, memories),
        recommender=recommender,
        performance=Performance(store, time_source),
        error_solutions=error_solutions,
        error_finder=error_finder,
        error_outcomes=ErrorOutcomeRecorder(
            time_source, idempotency, counting, error_solutions, retrievals
        ),
        preferences=preferences,
        sessions=sessions,
        session_values=SessionValues(store, time_source, session_rows),
        session_messages=session_messages,
        seeding=KnowledgeSeeder(
            store, indexer, time_source, tombstones, built_in_packs() if packs is None else packs
        ),
        admin=Admin(store, embedder),
        exporter=Exporter(store),
        importer=Importer(
            store,
            embedder,
            indexer,
            time_source,
            claims,
            RecordReplacer(store, time_source, log, active_streams),
        ),
        policies=policies,
        keeping=keeping,
        namespaces=Namespaces(store, clear_registry),
        clearing=clearing,
        housekeeping=Housekeeping(
            store,
            time_source,
            counting,
            tombstones,
            log,
            retrievals,
            {
                patterns_module.RESOURCE_KIND: patterns.finish_delete,
                memory_drafts.RESOURCE_KIND: memories.finish_delete,
                episode_deleter_module.RESOURCE_KIND: episode_deleter.finish_delete,
                error_solutions_module.RESOURCE_KIND: error_solutions.finish_delete,
                preferences_module.RESOURCE_KIND: preferences.finish_delete,
                session_rows_module.RESOURCE_KIND: sessions.finish_delete,
                decisions_module.RESOURCE_KIND: decisions.finish_delete,
                learning_events_module.RESOURCE_KIND: learning_events.finish_delete,
            },
            {PATTERNS: patterns.finish_expiry, ERROR_SOLUTIONS: error_solutions.finish_expiry},
            clearing.finish,
            recoveries=[
                cells.finish_merges,
                feedback.roll_forward,
                action_values.roll_forward,
                feedback_handler.roll_forward,
                episode_extraction.finish,
                lineage.roll_forward,
                reuse.roll_forward,
            ],
            sweeps=[
                abandoning.sweep,
                keeping.sweep,
                schedule.sweep,
                change_watcher.sweep,
                sessions.sweep,
            ],
            periodic_tasks=[(tracking.interval, sequencer.publish), (RENEW_SECONDS, leases.renew)],
            gate=gate,
        ),
        retrievals=retrievals,
        sequencer=sequencer,
        change_watcher=change_watcher,
        learning_events=learning_events,
        feedback_handler=feedback_handler,
        decisions=decisions,
        selections=selections,
        step_recorder=StepRecorder(time_source, idempotency, action_values, selections),
        action_values=action_values,
        extraction=extraction,
        episode_extraction=episode_extraction,
        learned_tasks=learned_tasks,
        code_extraction=CodeExtraction(pattern_writer, patterns, time_source),
        model=model,
        model_store=model_store,
        gate=gate,
        reindexing=Reindexer(model_store, model, gate, open_model),
        task_contexts=TaskContextBuilder(
            store,
            embedder,
            pattern_recall,
            episode_recall,
            memory_recall,
            error_finder,
            recommender,
            learned_tasks,
            retrievals,
            change_watcher,
            passages,
        ),
    )
