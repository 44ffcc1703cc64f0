"""The log of outcomes, and which of them are still to be applied (``kernel.apply_once``).

The targets of an outcome are the counters of the resource (``counting``), and its stats on the
query (``context_stats``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lot_grpc.domain.recorded_outcome import RecordedOutcome
from lot_grpc.kernel.intents import Journal, Mark
from lot_grpc.ports import IdIn, Record, VectorStore
from lot_grpc.services.records.collections import OUTCOMES, SORT_KEY
from lot_grpc.services.records.outcomes import APPLIED, outcome_record
from lot_grpc.services.time_source import TimeSource


class PendingOutcomes(Journal):
    """The outcomes of all namespaces."""

    def __init__(self, store: VectorStore, time_source: TimeSource) -> None:
        super().__init__(store, OUTCOMES, Mark(APPLIED))
        self._time = time_source

    async def insert(
        self, outcomes: Mapping[str, RecordedOutcome], targets: Iterable[Record]
    ) -> set[str]:
        """Write the outcomes, given by point, that do not exist; return the points written.

        Their sort keys come after those of the ``targets`` that were read.
        """
        after = max((target.payload[SORT_KEY] for target in targets), default=0)
        rows = [
            outcome_record(one, self._time.sort_key(after), point)
            for point, one in outcomes.items()
        ]
        return await self.write(rows)

    async def applied(self, outcomes: Mapping[str, RecordedOutcome]) -> None:
        """Mark outcomes, given by point, as applied: all of their targets have them."""
        await self.finish_all([(one.namespace, point) for point, one in outcomes.items()])

    async def withdraw(self, recorded: RecordedOutcome) -> None:
        """Delete an entry that can no longer be counted for anything."""
        await self._store.delete(OUTCOMES, recorded.namespace, [IdIn((recorded.point,))])
