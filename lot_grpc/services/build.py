"""The services over one store, one embedder and one reranker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from lot_grpc.domain.episode import Episode
from lot_grpc.domain.knowledge import KnowledgePack
from lot_grpc.domain.memory import Memory
from lot_grpc.domain.pattern import Pattern
from lot_grpc.domain.ranking import IMPORTANCE, RankingWeights
from lot_grpc.domain.recommendation import DEFAULT_WEIGHTS, StructuralWeights
from lot_grpc.knowledge import built_in_packs
from lot_grpc.ports import Clock, Embedder, Reranker, VectorStore
from lot_grpc.services.admin import Admin
from lot_grpc.services.changes.build import ChangeFeed, Changing
from lot_grpc.services.changes.readers import readers_of
from lot_grpc.services.changes.stamps import Stamps
from lot_grpc.services.changes.watching import Watching
from lot_grpc.services.claims import Claims
from lot_grpc.services.clearing.clearing import Clearing
from lot_grpc.services.clearing.clears import LOOK_SECONDS, Clears
from lot_grpc.services.clearing.guarded_store import GuardedStore
from lot_grpc.services.clearing.namespaces import Namespaces
from lot_grpc.services.context.task_context import TaskContexts
from lot_grpc.services.distilling.distill_schedule import DistillSchedule
from lot_grpc.services.distilling.distilling import DistillDefaults, Distilling
from lot_grpc.services.episodes import episode_deleting as episode_deleting_module
from lot_grpc.services.episodes.abandoning import DEFAULT_HOURS, Abandoning
from lot_grpc.services.episodes.arrivals import Arrivals
from lot_grpc.services.episodes.episode_deleting import EpisodeDeleting
from lot_grpc.services.episodes.episodes import Episodes
from lot_grpc.services.episodes.event_log import EventLog
from lot_grpc.services.episodes.failures import Failures
from lot_grpc.services.episodes.fencing import Fence
from lot_grpc.services.episodes.leases import RENEW_SECONDS, Leases
from lot_grpc.services.episodes.recording import Recording
from lot_grpc.services.episodes.replaying import Replaying
from lot_grpc.services.episodes.reuse import Reuse
from lot_grpc.services.episodes.writers import Writers
from lot_grpc.services.extraction.code_extraction import CodeExtraction
from lot_grpc.services.extraction.digesting import Digesting
from lot_grpc.services.extraction.extraction import Extraction
from lot_grpc.services.extraction.gathering import Gathering
from lot_grpc.services.extraction.learned_patterns import LearnedPatterns
from lot_grpc.services.extraction.lessons import Lessons
from lot_grpc.services.housekeeping import Housekeeping
from lot_grpc.services.indexing import Indexing
from lot_grpc.services.keeping.keeping import Keeping
from lot_grpc.services.keeping.kept import kept_nouns
from lot_grpc.services.keeping.policies import Policies
from lot_grpc.services.learning import decisions as decisions_module
from lot_grpc.services.learning import learning_events as learning_events_module
from lot_grpc.services.learning.action_values import ActionValues
from lot_grpc.services.learning.decisions import Decisions
from lot_grpc.services.learning.learning_events import LearningEvents
from lot_grpc.services.learning.performance import Performance
from lot_grpc.services.learning.recommendations import Recommending
from lot_grpc.services.learning.recording_steps import RecordingSteps
from lot_grpc.services.learning.selections import Selections
from lot_grpc.services.learning.submitting_feedback import SubmittingFeedback
from lot_grpc.services.learning.targets import checks_of, moves_of
from lot_grpc.services.ledger import Ledger
from lot_grpc.services.memories import drafts as memory_drafts
from lot_grpc.services.memories import error_solutions as error_solutions_module
from lot_grpc.services.memories import preference_records as preferences_module
from lot_grpc.services.memories.deleting import DeletingMemories
from lot_grpc.services.memories.error_finding import ErrorFinding
from lot_grpc.services.memories.error_outcomes import RecordingErrorOutcomes
from lot_grpc.services.memories.error_solutions import ErrorSolutions
from lot_grpc.services.memories.memories import Memories
from lot_grpc.services.memories.passages import MatchingPassages
from lot_grpc.services.memories.preferences import Preferences
from lot_grpc.services.memories.seeding import Seeding
from lot_grpc.services.moments import Moments
from lot_grpc.services.normal_form_store import NormalFormStore
from lot_grpc.services.once import Once
from lot_grpc.services.outcomes.asked import AskedVectors
from lot_grpc.services.outcomes.cells import Cells
from lot_grpc.services.outcomes.counting import Counting
from lot_grpc.services.outcomes.evidence import PatternEvidence
from lot_grpc.services.outcomes.facts import Facts
from lot_grpc.services.outcomes.history import History
from lot_grpc.services.outcomes.outcome_log import OutcomeLog
from lot_grpc.services.outcomes.outcomes import RecordingOutcomes
from lot_grpc.services.patterns import patterns as patterns_module
from lot_grpc.services.patterns.feedback import Feedback
from lot_grpc.services.patterns.feedback_candidates import FeedbackCandidates
from lot_grpc.services.patterns.lineage import Lineage
from lot_grpc.services.patterns.nearest import DEFAULT_SIMILARITY, Nearest
from lot_grpc.services.patterns.patterns import Patterns
from lot_grpc.services.patterns.pruning import Pruning
from lot_grpc.services.patterns.repeat_counter import RepeatCounter
from lot_grpc.services.patterns.saving import Saving
from lot_grpc.services.recall.learned_tasks import LearnedTasks
from lot_grpc.services.recall.questions import episode_noun, memory_noun, pattern_noun
from lot_grpc.services.recall.recall import Noun, Recall, T
from lot_grpc.services.recall.reranks import RerankBounds, Reranks
from lot_grpc.services.recall.retrievals import Retrievals
from lot_grpc.services.records.collections import ERROR_SOLUTIONS, PATTERNS
from lot_grpc.services.reindexing.current_model import CurrentModel
from lot_grpc.services.reindexing.gate import ModelGate
from lot_grpc.services.reindexing.model_store import ModelStore
from lot_grpc.services.reindexing.reindexing import OpenModel, Reindexing, no_other_model
from lot_grpc.services.sessions import rows as session_rows_module
from lot_grpc.services.sessions.rows import SessionRows
from lot_grpc.services.sessions.session_messages import SessionMessages
from lot_grpc.services.sessions.session_values import SessionValues
from lot_grpc.services.sessions.sessions import Sessions
from lot_grpc.services.tombstones import Tombstones
from lot_grpc.services.transfer.exporting import Exporting
from lot_grpc.services.transfer.importing import Importing
from lot_grpc.services.transfer.replacing import Replacing


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
    outcome_log: OutcomeLog
    feedback: Feedback
    feedback_candidates: FeedbackCandidates
    pruning: Pruning
    episodes: Episodes
    leases: Leases
    abandoning: Abandoning
    recording: Recording
    replaying: Replaying
    episode_recall: Recall[Episode]
    episode_deleting: EpisodeDeleting
    failures: Failures
    memories: Memories
    memory_recall: Recall[Memory]
    memory_passages: MatchingPassages
    deleting_memories: DeletingMemories
    recommending: Recommending
    performance: Performance
    error_solutions: ErrorSolutions
    error_finding: ErrorFinding
    error_outcomes: RecordingErrorOutcomes
    preferences: Preferences
    sessions: Sessions
    session_values: SessionValues
    session_messages: SessionMessages
    seeding: Seeding
    admin: Admin
    exporting: Exporting
    importing: Importing
    policies: Policies
    keeping: Keeping
    namespaces: Namespaces
    clearing: Clearing
    housekeeping: Housekeeping
    retrievals: Retrievals
    stamps: Stamps
    watching: Watching
    learning_events: LearningEvents
    submitting_feedback: SubmittingFeedback
    decisions: Decisions
    selections: Selections
    recording_steps: RecordingSteps
    action_values: ActionValues
    extraction: Extraction
    lessons: Lessons
    learned_tasks: LearnedTasks
    code_extraction: CodeExtraction
    model: CurrentModel
    model_store: ModelStore
    gate: ModelGate
    reindexing: Reindexing
    task_contexts: TaskContexts


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
    abandon_after_hours: float = DEFAULT_HOURS,
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
    moments = Moments(clock)
    embedder = model = CurrentModel(embedder, epoch)
    model_store, gate = ModelStore(NormalFormStore(store), model), ModelGate()
    changing = Changing(model_store, moments, changes or ChangeFeed())
    stamps = changing.stamps
    clears = Clears(model_store, moments, look_seconds, stamps.pass_by)
    store = GuardedStore(changing.store, clears)
    ledger = Ledger(store, moments)
    tombstones = Tombstones(store, moments)
    retrievals = Retrievals(store, moments, model)
    facts, history = Facts(store, moments), History(store)
    asked = AskedVectors(retrievals, model)
    cells = Cells(store, moments, facts, history, asked, weights.fading)
    counting = Counting(store, facts, cells, history)
    claims = Claims(store, moments)
    indexing = Indexing(embedder)
    reranks = Reranks(store, reranker, rerank_bounds)
    learning = learning or PatternLearning()
    nearest, lineage = Nearest(store, learning.merge_similarity), Lineage(store, moments)
    patterns = Patterns(store, indexing, moments, claims, tombstones, lineage)
    distilling = Distilling(store, indexing, moments, learning.distill)
    schedule = DistillSchedule(store, moments, distilling, learning.interval)
    repeats = RepeatCounter(store, indexing, moments, ledger, counting, claims, nearest)
    saving = Saving(store, indexing, moments, ledger, claims, tombstones, lineage, repeats)
    feedback = Feedback(store, moments, ledger, patterns)
    memories = Memories(store, indexing, moments, ledger, tombstones)
    passages = MatchingPassages(store)
    error_solutions = ErrorSolutions(store, indexing, moments, ledger, tombstones)
    log, writers, arrivals = EventLog(store), Writers(), Arrivals(store)
    fence = Fence(store, log, moments)
    leases = Leases(fence, writers)
    reuse = Reuse(store)
    episode_deleting = EpisodeDeleting(store, log, writers, tombstones, reuse, arrivals)
    episodes = Episodes(
        store,
        indexing,
        moments,
        ledger,
        log,
        writers,
        fence,
        episode_deleting,
        reuse,
        arrivals,
    )
    abandoning = Abandoning(store, moments, log, writers, arrivals, abandon_after_hours)
    policies = Policies(store, moments)
    nouns = kept_nouns(patterns, memories, episode_deleting, error_solutions)
    keeping = Keeping(store, moments, policies, nouns)

    clearing = Clearing(changing.store, moments, clears, stamps, writers, arrivals, retrievals)
    once = Once(store, ledger, tombstones)
    action_values = ActionValues(store, moments, policies)
    selections = Selections(store, moments, once, action_values)
    decisions = Decisions(store, moments, ledger, once, tombstones)
    learning_events = LearningEvents(store, moments, once, tombstones)
    preferences = Preferences(store, moments, ledger, tombstones)
    submitting_feedback = SubmittingFeedback(
        store,
        moments,
        ledger,
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

    session_rows = SessionRows(store, moments)
    session_messages = SessionMessages(store, moments, ledger, tombstones, session_rows)
    sessions = Sessions(store, moments, tombstones, session_rows, session_messages)

    digesting = Digesting(log)
    gathering = Gathering(store, digesting)
    learned = LearnedPatterns(store, indexing, moments)
    extraction = Extraction(gathering, learned)
    lessons = Lessons(
        store,
        saving,
        patterns,
        digesting,
        gathering,
        extraction,
        learned,
        tombstones,
        error_solutions,
    )

    learned_tasks = LearnedTasks(store)
    evidence = PatternEvidence(store, moments, weights)

    watching = changing.watching(readers_of(episodes))

    def recall(noun: Noun[T], ranked: RankingWeights = weights) -> Recall[T]:
        return Recall(store, embedder, retrievals, reranks, ranked, noun)

    pattern_recall = recall(pattern_noun(patterns, evidence, learned_tasks, watching))
    episode_recall = recall(episode_noun(episodes))
    memory_recall = recall(memory_noun(memories, passages), replace(weights, learned=IMPORTANCE))
    error_finding = ErrorFinding(store, embedder, retrievals)
    recommending = Recommending(store, embedder, structural_weights, policies.thresholds)

    return Services(
        saving=saving,
        distilling=distilling,
        distill_schedule=schedule,
        lineage=lineage,
        patterns=patterns,
        pattern_recall=pattern_recall,
        outcomes=RecordingOutcomes(moments, ledger, counting, patterns, retrievals, asked),
        outcome_log=OutcomeLog(store, moments, ledger, counting, patterns),
        feedback=feedback,
        feedback_candidates=FeedbackCandidates(store, patterns),
        pruning=Pruning(store, patterns),
        episodes=episodes,
        leases=leases,
        abandoning=abandoning,
        recording=Recording(moments, ledger, log, writers, fence, arrivals, episode_deleting),
        replaying=Replaying(store, log, arrivals),
        episode_recall=episode_recall,
        episode_deleting=episode_deleting,
        failures=Failures(store, embedder),
        memories=memories,
        memory_recall=memory_recall,
        memory_passages=passages,
        deleting_memories=DeletingMemories(store, memories),
        recommending=recommending,
        performance=Performance(store, moments),
        error_solutions=error_solutions,
        error_finding=error_finding,
        error_outcomes=RecordingErrorOutcomes(
            moments, ledger, counting, error_solutions, retrievals
        ),
        preferences=preferences,
        sessions=sessions,
        session_values=SessionValues(store, moments, session_rows),
        session_messages=session_messages,
        seeding=Seeding(
            store, indexing, moments, tombstones, built_in_packs() if packs is None else packs
        ),
        admin=Admin(store, embedder),
        exporting=Exporting(store),
        importing=Importing(
            store,
            embedder,
            indexing,
            moments,
            claims,
            Replacing(store, moments, log, writers),
        ),
        policies=policies,
        keeping=keeping,
        namespaces=Namespaces(store, clears),
        clearing=clearing,
        housekeeping=Housekeeping(
            store,
            moments,
            counting,
            tombstones,
            log,
            retrievals,
            {
                patterns_module.NOUN: patterns.finish_delete,
                memory_drafts.NOUN: memories.finish_delete,
                episode_deleting_module.NOUN: episode_deleting.finish_delete,
                error_solutions_module.NOUN: error_solutions.finish_delete,
                preferences_module.NOUN: preferences.finish_delete,
                session_rows_module.NOUN: sessions.finish_delete,
                decisions_module.NOUN: decisions.finish_delete,
                learning_events_module.NOUN: learning_events.finish_delete,
            },
            {PATTERNS: patterns.finish_expiry, ERROR_SOLUTIONS: error_solutions.finish_expiry},
            clearing.finish,
            finishers=[
                cells.finish_merges,
                feedback.roll_forward,
                action_values.roll_forward,
                submitting_feedback.roll_forward,
                lessons.finish,
                lineage.roll_forward,
                reuse.roll_forward,
            ],
            sweeps=[
                abandoning.sweep,
                keeping.sweep,
                schedule.sweep,
                watching.sweep,
                sessions.sweep,
            ],
            beats=[(changing.interval, stamps.publish), (RENEW_SECONDS, leases.renew)],
            gate=gate,
        ),
        retrievals=retrievals,
        stamps=stamps,
        watching=watching,
        learning_events=learning_events,
        submitting_feedback=submitting_feedback,
        decisions=decisions,
        selections=selections,
        recording_steps=RecordingSteps(moments, ledger, action_values, selections),
        action_values=action_values,
        extraction=extraction,
        lessons=lessons,
        learned_tasks=learned_tasks,
        code_extraction=CodeExtraction(saving, patterns, moments),
        model=model,
        model_store=model_store,
        gate=gate,
        reindexing=Reindexing(model_store, model, gate, open_model),
        task_contexts=TaskContexts(
            store,
            embedder,
            pattern_recall,
            episode_recall,
            memory_recall,
            error_finding,
            recommending,
            learned_tasks,
            retrievals,
            watching,
            passages,
        ),
    )
