"""Learning apart from patterns: events, decisions, actions, recommendations, receipts, texts."""

from __future__ import annotations

from lot_grpc.services.episodes.episodes import Episodes
from lot_grpc.services.errors.error_solutions import ErrorSolutions
from lot_grpc.services.learning.action_values import ActionValues
from lot_grpc.services.learning.adoption import AdoptionReader
from lot_grpc.services.learning.decisions import Decisions
from lot_grpc.services.learning.feedback_handler import FeedbackHandler
from lot_grpc.services.learning.learning_events import LearningEvents
from lot_grpc.services.learning.performance import Performance
from lot_grpc.services.learning.recommendations import Recommender
from lot_grpc.services.learning.selections import Selections
from lot_grpc.services.learning.step_recorder import StepRecorder
from lot_grpc.services.learning.targets import checks_of, moves_of
from lot_grpc.services.maintenance import Maintenance
from lot_grpc.services.memories.memories import Memories
from lot_grpc.services.patterns.module import PatternsModule
from lot_grpc.services.preferences.preferences import Preferences
from lot_grpc.services.retrievals.receipts import Receipts
from lot_grpc.services.runtime import Runtime


class LearningModule:
    """Everything learned besides patterns, and feedback in words on anything stored."""

    def __init__(
        self,
        runtime: Runtime,
        patterns: PatternsModule,
        episodes: Episodes,
        error_solutions: ErrorSolutions,
        memories: Memories,
        preferences: Preferences,
    ) -> None:
        store, time = runtime.store, runtime.time
        policies = runtime.policies
        self.action_values = values = ActionValues(store, time, policies)
        self.selections = selections = Selections(runtime, values)
        self.step_recorder = StepRecorder(runtime, values, selections)
        self.decisions = decisions = Decisions(runtime)
        self.learning_events = LearningEvents(runtime)
        similarity = runtime.settings.similarity
        self.recommender = Recommender(store, runtime.model, similarity, policies.thresholds)
        self.receipts = Receipts(runtime)
        self.performance = Performance(store, time, AdoptionReader(runtime))
        checks = checks_of(
            patterns.patterns.get,
            episodes,
            error_solutions.get,
            decisions,
            selections,
            memories,
            runtime.retrievals,
        )
        moves = moves_of(patterns.feedback, decisions, selections, values)
        self.feedback_handler = FeedbackHandler(runtime, preferences, checks, moves)
        self.maintenance = Maintenance(
            recoveries={
                "action_values": values.roll_forward,
                "feedback_texts": self.feedback_handler.roll_forward,
            }
        )
