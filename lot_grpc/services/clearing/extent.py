"""What a clear deletes: of which collections, and on what condition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.errors import RequestInvalidError, Violation
from lot_grpc.ports import Condition, Equals, Missing, Not
from lot_grpc.services.patterns.lineage import NOTE_KIND
from lot_grpc.services.records.collections import (
    OUTCOMES,
    REQUESTS,
    SELECTIONS,
    TOMBSTONES,
    TRAJECTORIES,
)
from lot_grpc.services.records.resource_kinds import BESIDE, COLLECTIONS

_OF_PATTERNS = Not(Missing("pattern_id"))

_LOGS: Mapping[ResourceKind, str] = {
    ResourceKind.OUTCOME: "PATTERN or ERROR_SOLUTION",
    ResourceKind.EPISODE_EVENT: "EPISODE",
}
"""Kinds that are logs of others, which count on them."""


@dataclass(frozen=True, slots=True)
class Part:
    """Records of a collection. ``where`` empty: all of the namespace."""

    collection: str
    where: tuple[Condition, ...] = ()


_SHARED: Mapping[ResourceKind, Sequence[Part]] = {
    ResourceKind.PATTERN: [
        Part(OUTCOMES, (_OF_PATTERNS,)),
        Part(REQUESTS, (_OF_PATTERNS,)),
        Part(REQUESTS, (Equals("kind", NOTE_KIND),)),
    ],
    ResourceKind.ERROR_SOLUTION: [Part(OUTCOMES, (Missing("pattern_id"),))],
    ResourceKind.ACTION_VALUE: [Part(TRAJECTORIES), Part(SELECTIONS)],
}
"""What goes with a kind of collections that are not its own: the outcomes that are its, the claims
on contents and notes of lineage, and what would bring an action value back."""

_DONE_REQUESTS = Part(REQUESTS, (Equals("done", True),))


def check_clearable(resource_kinds: Sequence[ResourceKind]) -> None:
    """Refuse logs by themselves. Raises RequestInvalidError."""
    wrong = [
        Violation(
            f"resource_kinds[{place}]",
            "resource_kind.clearable",
            f"{resource_kind.name} cannot be cleared alone; clear {_LOGS[resource_kind]} instead, "
            "which includes it",
        )
        for place, resource_kind in enumerate(resource_kinds)
        if resource_kind in _LOGS
    ]
    if wrong:
        raise RequestInvalidError(wrong)


def parts_of(resource_kinds: Sequence[ResourceKind]) -> list[Part]:
    """All that goes with the kinds; none given: everything that the namespace holds.

    With some of the kinds the requests that were carried out are forgotten, since a repeat of one
    would be answered with things that are gone. Tombstones stay: they hold what happened.
    """
    if not resource_kinds:
        everything = {name for names in COLLECTIONS.values() for name in names}
        return [*map(Part, sorted(everything)), *(Part(name) for name in BESIDE)]
    parts: dict[Part, None] = {}
    for resource_kind in resource_kinds:
        shared = _SHARED.get(resource_kind, ())
        apart = {part.collection for part in shared}
        for name in COLLECTIONS[resource_kind]:
            if name not in apart:
                parts[Part(name)] = None
        parts |= dict.fromkeys(shared)
    return [*parts, _DONE_REQUESTS]


def counted(resource_kinds: Sequence[ResourceKind]) -> dict[ResourceKind, Part]:
    """Of each kind that is deleted, the records that are its things."""
    parts = parts_of(resource_kinds)
    found: dict[ResourceKind, Part] = {}
    for resource_kind, names in COLLECTIONS.items():
        for part in parts:
            if names and part.collection == names[0]:
                same = resource_kind in found and found[resource_kind].where != part.where
                found[resource_kind] = Part(part.collection) if same else part
    return found


def keeps(part: Part) -> bool:
    """Whether the mark of the clear itself may lie among these records."""
    return part.collection == TOMBSTONES
