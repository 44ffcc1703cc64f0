"""Joins retrievals with the outcomes that name them, read from the log of outcomes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from lot_grpc.domain.recorded_outcome import RecordedOutcome, outcomes_in_effect
from lot_grpc.domain.retrieval import Receipt, Retrieval
from lot_grpc.ports import AnyOf, VectorStore
from lot_grpc.services.records.collections import OUTCOMES
from lot_grpc.services.records.outcomes import outcome_from_record
from lot_grpc.services.scanning import scan


async def receipts_of(
    store: VectorStore, namespace: str, retrievals: Sequence[Retrieval]
) -> list[Receipt]:
    """Each retrieval with the outcomes that name it."""
    logged: defaultdict[str, list[RecordedOutcome]] = defaultdict(list)
    if retrievals:
        ids = tuple(one.retrieval_id for one in retrievals)
        async for record in scan(store, OUTCOMES, namespace, [AnyOf("retrieval_id", ids)]):
            recorded = outcome_from_record(record)
            logged[recorded.retrieval_id].append(recorded)
    return [Receipt(one, outcomes_in_effect(logged[one.retrieval_id])) for one in retrievals]
