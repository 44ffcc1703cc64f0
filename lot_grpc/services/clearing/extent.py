"""What a clear deletes: of which collections, and on what condition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lot_grpc.domain.change import Noun
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
from lot_grpc.services.records.nouns import BESIDE, COLLECTIONS

_OF_PATTERNS = Not(Missing("pattern_id"))

_LOGS: Mapping[Noun, str] = {
    Noun.OUTCOME: "PATTERN or ERROR_SOLUTION",
    Noun.EPISODE_EVENT: "EPISODE",
}
"""Nouns that are logs of others, which count on them."""


@dataclass(frozen=True, slots=True)
class Part:
    """Records of a collection. ``where`` empty: all of the namespace."""

    collection: str
    where: tuple[Condition, ...] = ()


_SHARED: Mapping[Noun, Sequence[Part]] = {
    Noun.PATTERN: [
        Part(OUTCOMES, (_OF_PATTERNS,)),
        Part(REQUESTS, (_OF_PATTERNS,)),
        Part(REQUESTS, (Equals("kind", NOTE_KIND),)),
    ],
    Noun.ERROR_SOLUTION: [Part(OUTCOMES, (Missing("pattern_id"),))],
    Noun.ACTION_VALUE: [Part(TRAJECTORIES), Part(SELECTIONS)],
}
"""What goes with a noun of collections that are not its own: the outcomes that are its, the claims
on contents and notes of lineage, and what would bring an action value back."""

_DONE_REQUESTS = Part(REQUESTS, (Equals("done", True),))


def check_clearable(nouns: Sequence[Noun]) -> None:
    """Refuse logs by themselves. Raises RequestInvalidError."""
    wrong = [
        Violation(
            f"nouns[{place}]",
            "noun.clearable",
            f"{noun.name} is cleared together with {_LOGS[noun]}: name that instead",
        )
        for place, noun in enumerate(nouns)
        if noun in _LOGS
    ]
    if wrong:
        raise RequestInvalidError(wrong)


def parts_of(nouns: Sequence[Noun]) -> list[Part]:
    """All that goes with the nouns; none given: everything that the namespace holds.

    With some of the nouns the requests that were carried out are forgotten, since a repeat of one
    would be answered with things that are gone. Tombstones stay: they hold what happened.
    """
    if not nouns:
        everything = {name for names in COLLECTIONS.values() for name in names}
        return [*map(Part, sorted(everything)), *(Part(name) for name in BESIDE)]
    parts: dict[Part, None] = {}
    for noun in nouns:
        shared = _SHARED.get(noun, ())
        apart = {part.collection for part in shared}
        for name in COLLECTIONS[noun]:
            if name not in apart:
                parts[Part(name)] = None
        parts |= dict.fromkeys(shared)
    return [*parts, _DONE_REQUESTS]


def counted(nouns: Sequence[Noun]) -> dict[Noun, Part]:
    """Of each noun that is deleted, the records that are its things."""
    parts = parts_of(nouns)
    found: dict[Noun, Part] = {}
    for noun, names in COLLECTIONS.items():
        for part in parts:
            if names and part.collection == names[0]:
                same = noun in found and found[noun].where != part.where
                found[noun] = Part(part.collection) if same else part
    return found


def keeps(part: Part) -> bool:
    """Whether the mark of the clear itself may lie among these records."""
    return part.collection == TOMBSTONES
