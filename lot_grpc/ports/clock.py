"""The time."""

from __future__ import annotations

from typing import Protocol, TypeAlias

Micros: TypeAlias = int
"""An instant as whole microseconds since 1970-01-01 UTC. Exact in a double until the year 2255."""


class Clock(Protocol):
    """The time. Tests pass a fixed one."""

    def now(self) -> Micros:
        """Now; may repeat, and may step back when the machine's clock does."""
