"""What became of retrievals: the outcomes that name them, read from the log of outcomes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.retrieval import RetrievalOutcome
from lot_grpc.ports import AnyOf, VectorStore
from lot_grpc.services.records.collections import OUTCOMES
from lot_grpc.services.records.outcomes import RecordedOutcome, outcome_from_record
from lot_grpc.services.scanning import scan


async def outcomes_of_retrievals(
    store: VectorStore, namespace: str, retrieval_ids: Sequence[str]
) -> Mapping[str, tuple[RetrievalOutcome, ...]]:
    """The outcomes that stand, by retrieval_id, oldest first."""
    logged: defaultdict[str, list[RecordedOutcome]] = defaultdict(list)
    if retrieval_ids:
        where = [AnyOf("retrieval_id", tuple(retrieval_ids))]
        async for record in scan(store, OUTCOMES, namespace, where):
            recorded = outcome_from_record(record)
            logged[recorded.retrieval_id].append(recorded)
    return {retrieval_id: standing(entries) for retrieval_id, entries in logged.items()}


def standing(entries: Iterable[RecordedOutcome]) -> tuple[RetrievalOutcome, ...]:
    """The outcomes of log entries, which are in the order of their times.

    What a correction undid is left out, and so is a correction that puts nothing in its place. Any
    other takes the place of what it corrects: it says how that use went, and is no later use.
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
