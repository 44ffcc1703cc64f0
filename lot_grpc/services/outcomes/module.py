"""Outcomes: their log, and what counts them."""

from __future__ import annotations

from lot_grpc.services.errors.error_outcomes import ErrorOutcomeRecorder
from lot_grpc.services.maintenance import Maintenance
from lot_grpc.services.operations import ResourcesByKind
from lot_grpc.services.outcomes.context_stats import ContextStatsStore
from lot_grpc.services.outcomes.counting import OutcomeCounter
from lot_grpc.services.outcomes.history import History
from lot_grpc.services.outcomes.outcome_log import OutcomeLog
from lot_grpc.services.outcomes.outcomes import CountedResources, OutcomeRecorder
from lot_grpc.services.outcomes.pending_outcomes import PendingOutcomes
from lot_grpc.services.outcomes.query_vectors import QueryVectors
from lot_grpc.services.outcomes.stats_merging import StatsMerger
from lot_grpc.services.runtime import Runtime


class CountingModule:
    """Counts outcomes, of whatever kind."""

    def __init__(self, runtime: Runtime) -> None:
        store = runtime.store
        pending, history = PendingOutcomes(store, runtime.time), History(store)
        self.query_vectors = QueryVectors(runtime.retrievals, runtime.model)
        merger = StatsMerger(store, runtime.settings.weights.fading)
        context_stats = ContextStatsStore(runtime, pending, history, self.query_vectors, merger)
        counted = runtime.registry.counted
        self.counter = OutcomeCounter(store, pending, context_stats, history, counted)
        self.maintenance = Maintenance(
            recoveries={
                "outcomes": self.counter.roll_forward,
                "merges": merger.finish_merges,
            }
        )


class OutcomesModule:
    """Outcomes as callers report, read and correct them."""

    def __init__(
        self, runtime: Runtime, counting: CountingModule, resources: ResourcesByKind
    ) -> None:
        counter, counted = counting.counter, CountedResources(resources)
        self.recorder = OutcomeRecorder(runtime, counter, counted, counting.query_vectors)
        self.of_errors = ErrorOutcomeRecorder(self.recorder)
        self.log = OutcomeLog(runtime, counter, counted)
