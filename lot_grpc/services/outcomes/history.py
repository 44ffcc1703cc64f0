"""What was counted after an outcome, from which a correction recomputes the moving rate."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from lot_grpc.domain.outcomes import REACH
from lot_grpc.domain.recorded_outcome import RecordedOutcome, outcome_point
from lot_grpc.ports import Equals, Record, VectorStore
from lot_grpc.services.records.collections import OUTCOMES, SORT_KEY
from lot_grpc.services.records.context_stats import same_query
from lot_grpc.services.records.outcomes import APPLIED, outcome_from_record
from lot_grpc.services.records.resource_refs import RESOURCE
from lot_grpc.services.scanning import scan


@dataclass(frozen=True, slots=True)
class Behind:
    """Values counted after an outcome, oldest first, None when there are more than ``REACH``.

    ``in_context`` is how many of them count for the same context stats.
    """

    values: list[float] | None
    in_context: int


class History:
    """Reads the log of a resource, newest first."""

    def __init__(self, store: VectorStore) -> None:
        self._store = store

    async def entries(
        self, outcomes: Mapping[str, RecordedOutcome], points: Sequence[str]
    ) -> dict[str, RecordedOutcome]:
        """As they are in the log, those of the outcomes, by point, that are there."""
        found: dict[str, RecordedOutcome] = {}
        for namespace in {outcomes[point].namespace for point in points}:
            theirs = [point for point in points if outcomes[point].namespace == namespace]
            rows = await self._store.get(OUTCOMES, namespace, theirs)
            found |= {point: outcome_from_record(row) for point, row in rows.items()}
        return found

    async def is_of(self, recorded: RecordedOutcome, record: Record) -> bool:
        """Whether what a correction undoes was counted for this record.

        It was not where the record was deleted meanwhile, and this one has taken its id.
        """
        if recorded.correction is None:
            return True
        namespace = recorded.namespace
        root = outcome_point(namespace, recorded.root, recorded.resource)
        found = (await self._store.get(OUTCOMES, namespace, [root])).get(root)
        return found is not None and found.payload[SORT_KEY] > record.payload[SORT_KEY]

    async def behind(self, correction: RecordedOutcome, pending: Collection[str]) -> Behind:
        """What was counted after the entry at the root of a correction, each as corrected since.

        ``pending`` names the outcomes that the resource has counted and that are not applied yet.
        The order is that of the log, which parallel outcomes may have been counted out of.
        """
        values: list[float] = []
        in_context = 0
        corrected: dict[str, RecordedOutcome] = {}
        theirs = [Equals(RESOURCE, correction.resource_point)]
        async for row in scan(self._store, OUTCOMES, correction.namespace, theirs, descending=True):
            recorded = outcome_from_record(row)
            if recorded.outcome_id == correction.root and not recorded.corrects_outcome_id:
                return Behind(values[::-1], in_context)
            if recorded.point == correction.point:
                continue
            if not (row.payload[APPLIED] or recorded.point in pending):
                continue
            if recorded.corrects_outcome_id:
                corrected.setdefault(recorded.root, recorded)
                continue
            standing = corrected.get(recorded.outcome_id, recorded)
            if standing.outcome is None:
                continue
            values.append(standing.value)
            in_context += same_query(recorded.query, correction.query)
            if len(values) > REACH:
                break
        return Behind(None, in_context)
