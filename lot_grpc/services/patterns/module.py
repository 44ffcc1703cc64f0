"""Patterns: saved, read, edited, used, rated, pruned."""

from __future__ import annotations

from lot_grpc.services.maintenance import Maintenance
from lot_grpc.services.outcomes.module import CountingModule
from lot_grpc.services.patterns.feedback import Feedback
from lot_grpc.services.patterns.feedback_candidates import FeedbackCandidates
from lot_grpc.services.patterns.lineage import Lineage
from lot_grpc.services.patterns.nearest import Nearest
from lot_grpc.services.patterns.pattern_writer import PatternWriter
from lot_grpc.services.patterns.patterns import Patterns
from lot_grpc.services.patterns.pruner import PatternPruner
from lot_grpc.services.patterns.repeat_counter import RepeatCounter
from lot_grpc.services.runtime import Runtime
from lot_grpc.services.unique_content import UniqueContentIndex


class PatternsModule:
    """Everything about patterns except recall."""

    def __init__(self, runtime: Runtime, counting: CountingModule) -> None:
        store, time = runtime.store, runtime.time
        content_index, counter = UniqueContentIndex(store, time), counting.counter
        self.lineage = lineage = Lineage(store, time)
        self.patterns = patterns = Patterns(runtime, content_index, lineage)
        nearest = Nearest(store, runtime.settings.learning.merge_similarity)
        repeats = RepeatCounter(runtime, counter, content_index, nearest)
        self.writer = PatternWriter(runtime, content_index, lineage, repeats)
        self.feedback = Feedback(runtime, patterns)
        self.feedback_candidates = FeedbackCandidates(store, patterns)
        self.pruner = PatternPruner(store, patterns)
        self.maintenance = Maintenance(
            recoveries={"feedback": self.feedback.roll_forward, "lineage": lineage.roll_forward}
        )
