"""Reads whether what is recalled is used and helps, from retrievals and their outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from typing import Final

from lot_grpc.domain.adoption import Adoption, AdoptionTally, HoldoutComparison, Period
from lot_grpc.ports import Range, Record
from lot_grpc.services.records.collections import RETRIEVALS, SORT_KEY
from lot_grpc.services.records.retrievals import SUMMARY, retrieval_summary
from lot_grpc.services.retrievals.used import receipts_of
from lot_grpc.services.runtime import Runtime
from lot_grpc.services.scanning import scan
from lot_grpc.services.time_slice import TimeSlice

MOST_READ: Final = 20_000
"""The number of retrievals, the latest, that a report reads."""
_BATCH: Final = 200


class AdoptionReader:
    """Adoption and holdout of all namespaces."""

    def __init__(self, runtime: Runtime) -> None:
        self._store = runtime.store
        self._retrievals = runtime.retrievals

    async def read(
        self, namespace: str, period: Period
    ) -> tuple[Adoption, HoldoutComparison | None]:
        """What was recalled in a period; at most the latest ``MOST_READ`` retrievals are read."""
        await self._retrievals.flush()
        tally, count, truncated = AdoptionTally(), 0, False
        where = [Range(SORT_KEY, gte=period.start, lt=period.end)]
        batch: list[Record] = []
        rows = scan(
            self._store,
            RETRIEVALS,
            namespace,
            where,
            payload=SUMMARY,
            descending=True,
            batch=_BATCH,
        )
        async with aclosing(rows):
            async for row in rows:
                if count == MOST_READ:
                    truncated = True
                    break
                count += 1
                batch.append(row)
                if len(batch) == _BATCH:
                    await self._add(tally, namespace, batch)
                    batch = []
        await self._add(tally, namespace, batch)
        return tally.adoption(period, truncated=truncated), tally.comparison()

    async def _add(self, tally: AdoptionTally, namespace: str, rows: Sequence[Record]) -> None:
        time_slice = TimeSlice()
        summaries = [retrieval_summary(row) for row in rows]
        for receipt in await receipts_of(self._store, namespace, summaries):
            tally.add(receipt)
            await time_slice.give_way()
