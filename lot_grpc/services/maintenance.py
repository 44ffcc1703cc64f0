"""Background tasks by name: modules declare them, housekeeping runs them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Recovery: TypeAlias = Callable[[int], Awaitable[int]]
"""Finishes what was begun before a time and left; says how many."""

Task: TypeAlias = Callable[[], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Swept:
    """The result of a sweep, for the log: counts by namespace and kind; empty if it did nothing."""

    what: str
    counts: Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Maintenance:
    """The tasks of a module, or of all. Each may be done at any time, by several processes, again.

    Attributes:
        recoveries: Finish what a dead process left; in their order, at a start and every minute.
        sweeps: Drop what is over; every minute. One that returns ``Swept`` is logged.
        periodic: Tasks with their interval in seconds.
    """

    recoveries: Mapping[str, Recovery] = field(default_factory=dict)
    sweeps: Mapping[str, Task] = field(default_factory=dict)
    periodic: Mapping[str, tuple[float, Task]] = field(default_factory=dict)

    @classmethod
    def of_all(cls, parts: Iterable[Maintenance]) -> Maintenance:
        """The tasks of several modules, in order."""
        parts = tuple(parts)
        return cls(
            recoveries=_merged(one.recoveries for one in parts),
            sweeps=_merged(one.sweeps for one in parts),
            periodic=_merged(one.periodic for one in parts),
        )


def _merged(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for part in parts:
        if twice := merged.keys() & part.keys():
            raise ValueError(f"two modules have a task of one name: {sorted(twice)}")
        merged |= part
    return merged
