"""Estimates how hard a task is, by points."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

_COMPLEX_CATEGORIES = frozenset({"backend", "database", "integration", "auth"})


class Complexity(StrEnum):
    """Complexity of a task."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


def assess_complexity(
    task: str, dependencies: Sequence[str], effort: float, category: str
) -> Complexity:
    """Complexity by points: HIGH from 7, MEDIUM from 4.

    Task over 200 characters 2, over 100 1; each dependency 1; effort over 5 3, over 2 1 (0 counts
    as 1); category backend, database, integration or auth 2.
    """
    points = len(dependencies)
    points += 2 if len(task) > 200 else 1 if len(task) > 100 else 0
    points += 3 if effort > 5 else 1 if effort > 2 else 0
    points += 2 if category in _COMPLEX_CATEGORIES else 0
    if points >= 7:
        return Complexity.HIGH
    return Complexity.MEDIUM if points >= 4 else Complexity.LOW
