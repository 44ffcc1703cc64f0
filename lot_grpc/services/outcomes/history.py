"""What was counted after an outcome: what a correction has to lead the moving rate on by."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from lot_grpc.domain.outcomes import REACH
from lot_grpc.ports import Equals, VectorStore
from lot_grpc.services.records.cells import same_query
from lot_grpc.services.records.collections import OUTCOMES
from lot_grpc.services.records.outcomes import SETTLED, OutcomeFact, outcome_from_record
from lot_grpc.services.scanning import scan


@dataclass(frozen=True, slots=True)
class Behind:
    """Values counted after an outcome, oldest first, None when there are more than ``REACH``.

    ``in_cell`` is how many of them came into the same cell.
    """

    values: list[float] | None
    in_cell: int


class History:
    """Reads the log of a pattern backwards."""

    def __init__(self, store: VectorStore) -> None:
        self._store = store

    async def behind(self, correction: OutcomeFact, unsettled: Collection[str]) -> Behind:
        """What was counted after the entry at the root of a correction, each as corrected since.

        ``unsettled`` names the facts that the pattern has counted and that are not settled yet. The
        order is that of the log, which parallel outcomes may have been counted out of.
        """
        values: list[float] = []
        in_cell = 0
        corrected: dict[str, OutcomeFact] = {}
        theirs = [Equals("pattern_id", correction.pattern_id)]
        async for row in scan(self._store, OUTCOMES, correction.namespace, theirs, descending=True):
            fact = outcome_from_record(row)
            if fact.outcome_id == correction.root and not fact.corrects:
                return Behind(values[::-1], in_cell)
            if fact.point == correction.point:
                continue
            if not (row.payload[SETTLED] or fact.point in unsettled):
                continue
            if fact.corrects:
                corrected.setdefault(fact.root, fact)
                continue
            standing = corrected.get(fact.outcome_id, fact)
            if standing.outcome is None:
                continue
            values.append(standing.value)
            in_cell += same_query(fact.query, correction.query)
            if len(values) > REACH:
                break
        return Behind(None, in_cell)
