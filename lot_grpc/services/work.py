"""When the work began that is being done: a call, or a round of housekeeping.

What is read at the beginning of some work may be gone by its end. A write that belongs to work from
before a namespace was cleared would bring something back, and is told by this (``clearing``).
"""

from __future__ import annotations

import time
from contextvars import ContextVar

_BEGAN: ContextVar[float | None] = ContextVar("began", default=None)


def begin_work() -> None:
    """Work begins, in this task and those that it makes."""
    _BEGAN.set(time.monotonic())


def work_began() -> float | None:
    """When, by the monotonic clock in seconds; None where nobody said."""
    return _BEGAN.get()
