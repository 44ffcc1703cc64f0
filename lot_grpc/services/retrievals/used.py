"""Joins retrievals with the outcomes that name them, read from the log of outcomes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.retrieval import Receipt, Retrieval, RetrievalOutcome
from lot_grpc.ports import AnyOf, VectorStore
from lot_grpc.services.records.collections import OUTCOMES
from lot_grpc.services.records.outcomes import RecordedOutcome, outcome_from_record
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
    return [Receipt(one, in_effect(logged[one.retrieval_id])) for one in retrievals]


def in_effect(entries: Iterable[RecordedOutcome]) -> tuple[RetrievalOutcome, ...]:
    """The outcomes of log entries, which are in the order of their times, corrections applied.

    An entry that was corrected is left out, and so is a correction that only undoes one. Any other
    takes the place of what it corrects: it says how that use went, and is no later use.
    """
    entries = list(entries)
    places: dict[str, int] = {}
    for place, one in enumerate(entries):
        places.setdefault(one.outcome_id, places.get(one.root, place))
    undone = {(one.corrects_outcome_id, one.resource) for one in entries}
    found: dict[str, list[RecordedOutcome]] = {}
    for one in entries:
        if one.outcome is not None and (one.outcome_id, one.resource) not in undone:
            found.setdefault(one.outcome_id, []).append(one)
    ordered = sorted(found, key=places.__getitem__)
    return tuple(_outcome(found[outcome_id]) for outcome_id in ordered)


def _outcome(entries: Sequence[RecordedOutcome]) -> RetrievalOutcome:
    first = entries[0]
    assert first.outcome is not None
    resources = [one.resource for one in entries]
    return RetrievalOutcome(
        outcome_id=first.outcome_id,
        outcome=first.outcome,
        used=tuple(one for one in resources if one.kind != ResourceKind.RETRIEVAL),
        create_time=first.create_time,
        reward=first.reward,
        duration=first.duration,
        note=first.note,
    )
