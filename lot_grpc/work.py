"""The work that is being done: a call, or a round of housekeeping.

What was read when some work began may be gone when it ends: a write of work that began before a
namespace was cleared would bring something back, and is refused (``services.clearing``). Work whose
callers have all left lets other work go first to the model (``embedding.workers``).
"""

from __future__ import annotations

import time
from contextvars import ContextVar


class Work:
    """One piece of work."""

    __slots__ = ("began", "waiting")

    def __init__(self) -> None:
        self.began = time.monotonic()
        """By the monotonic clock, in seconds."""
        self.waiting = 1
        """How many callers wait for it. Housekeeping waits for itself."""


_CURRENT: ContextVar[Work | None] = ContextVar("work", default=None)


def begin_work() -> Work:
    """Work begins, in this task and those that it makes."""
    work = Work()
    _CURRENT.set(work)
    return work


def current_work() -> Work | None:
    """The work that this task belongs to; None where nobody said."""
    return _CURRENT.get()
