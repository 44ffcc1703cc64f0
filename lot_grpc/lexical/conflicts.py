"""Whether two short texts contradict each other."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Contradiction:
    """What the first text says where the second says something else; "" for nothing."""

    ours: str
    theirs: str


def contradiction(one: str, other: str) -> Contradiction | None:
    """How two texts contradict each other; None if they may both be true."""
    return None
