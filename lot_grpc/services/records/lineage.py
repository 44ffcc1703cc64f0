"""What the records of a kind that supersede each other have in common."""

from __future__ import annotations

from lot_grpc.ports import Condition, Equals, Not

SUPERSEDES = "supersedes"
"""The id that a record supersedes, as its content says."""
SUPERSEDED, SUPERSEDED_BY, SUPERSEDED_TIME = "superseded", "superseded_by", "superseded_time"
"""The mark, derived from ``SUPERSEDES`` of other records (``services.lineage``): whether any name
this one, the newest of them, and for memories when that begins."""


def superseded_filter(include: bool | None) -> list[Condition]:
    """Only superseded ones, or only the others; the mark is stored only if true."""
    marked = Equals(SUPERSEDED, True)
    return [] if include is None else [marked if include else Not(marked)]
