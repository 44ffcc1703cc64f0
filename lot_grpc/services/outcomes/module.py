"""Outcomes: their log, and the aggregates that count them."""

from __future__ import annotations

from lot_grpc.services.maintenance import Maintenance
from lot_grpc.services.outcomes.context_stats import ContextStatsStore
from lot_grpc.services.outcomes.counting import OutcomeCounter
from lot_grpc.services.outcomes.history import History
from lot_grpc.services.outcomes.pending_outcomes import PendingOutcomes
from lot_grpc.services.outcomes.query_vectors import QueryVectors
from lot_grpc.services.outcomes.stats_merging import StatsMerger
from lot_grpc.services.runtime import Runtime


class OutcomesModule:
    """Counts outcomes, for patterns and error solutions."""

    def __init__(self, runtime: Runtime) -> None:
        store = runtime.store
        pending, history = PendingOutcomes(store, runtime.time), History(store)
        self.query_vectors = QueryVectors(runtime.retrievals, runtime.model)
        merger = StatsMerger(store, runtime.settings.weights.fading)
        context_stats = ContextStatsStore(runtime, pending, history, self.query_vectors, merger)
        self.counter = OutcomeCounter(store, pending, context_stats, history)
        self.maintenance = Maintenance(
            recoveries={
                "outcomes": self.counter.roll_forward,
                "merges": merger.finish_merges,
            }
        )
