"""The log of outcomes: its entries, and which of them are in effect."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.ids import ResourceRef, point_id
from lot_grpc.domain.outcomes import Correction, Outcome
from lot_grpc.domain.retrieval import RetrievalOutcome


@dataclass(frozen=True, slots=True)
class RecordedOutcome:
    """One entry of the log: an outcome of one resource, or a correction of one.

    The resource is the retrieval itself if nothing of it was used; nothing is then counted.
    ``duration`` in seconds, ``create_time`` in microseconds.
    """

    namespace: str
    outcome_id: str
    resource: ResourceRef
    outcome: Outcome | None
    """None for a correction that replaces what it undoes with nothing."""
    create_time: int
    reward: float | None = None
    duration: float | None = None
    query: str = ""
    """What it was used on: a task, a question, or an error message."""
    retrieval_id: str = ""
    note: str = ""
    from_repeated_save: bool = False
    """From a repeated save, not from a use."""
    corrects_outcome_id: str = ""
    """The ``outcome_id`` of the entry that this one undoes."""
    root: str = ""
    """For a correction: the first entry in the chain of corrections."""
    correction: Correction | None = None

    @property
    def point(self) -> str:
        """Its point id. An entry is corrected once; what corrects it can be corrected."""
        if self.corrects_outcome_id:
            return correction_point(self.namespace, self.corrects_outcome_id, self.resource)
        return outcome_point(self.namespace, self.outcome_id, self.resource)

    @property
    def resource_point(self) -> str:
        """The point of the resource."""
        return self.resource.point(self.namespace)

    @property
    def in_context(self) -> bool:
        """Whether the stats of its resource on its query change too."""
        return bool(self.query) and learns_by_query(self.resource.kind)

    @property
    def value(self) -> float:
        """Its value in rates."""
        return self.outcome.value_in_rates if self.outcome else 0.0


_NOT_BY_QUERY: Final = (ResourceKind.ERROR_SOLUTION, ResourceKind.RETRIEVAL)
"""Error solutions are ranked by all of their outcomes, whatever the message."""


def learns_by_query(kind: str) -> bool:
    """Whether the ranking of a kind learns from outcomes on similar queries."""
    return kind not in _NOT_BY_QUERY


def correction_point(namespace: str, outcome_id: str, resource: ResourceRef) -> str:
    """The point id of the entry that corrects another one, if there is one."""
    return point_id(namespace, "correction", outcome_id, resource.kind, resource.id)


def outcome_point(namespace: str, outcome_id: str, resource: ResourceRef) -> str:
    """The point id of an entry that is not a correction."""
    return point_id(namespace, "outcome", outcome_id, resource.kind, resource.id)


def outcomes_in_effect(entries: Iterable[RecordedOutcome]) -> tuple[RetrievalOutcome, ...]:
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
