"""The unit of work in progress: a call, or a round of housekeeping.

Data read when work began may be gone when it ends: a write by work that began before a namespace
was cleared would restore data, and is refused (``services.clearing``). Work whose callers have all
disconnected yields to other work at the model (``embedding.workers``).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, NamedTuple

from lot_grpc.domain.access import ANONYMOUS, Principal


class Work:
    """A unit of work."""

    __slots__ = ("background", "began", "waiting")

    def __init__(self, *, background: bool = False) -> None:
        self.background = background
        """Whether it is not urgent and should leave cores to calls."""
        self.began = time.monotonic()
        """When it began, by the monotonic clock, in seconds."""
        self.waiting = 0 if background else 1
        """How many callers are waiting for it. Housekeeping counts as its own caller."""


class Caller(NamedTuple):
    """Whom work is done for: what it may be bound to.

    Attributes:
        principal: Who called.
        namespace: The namespace that the call was authorized for; empty without authentication.
    """

    principal: Principal = ANONYMOUS
    namespace: str = ""

    @property
    def cache_scope(self) -> str:
        """Who shares what is cached by its content: nobody else may find out what was asked.

        Empty without authentication, and for the server's own work.
        """
        return self.namespace or self.principal.id


_NOBODY: Final = Caller()

_CURRENT: ContextVar[Work | None] = ContextVar("work", default=None)
_CALLER: ContextVar[Caller] = ContextVar("caller", default=_NOBODY)


def begin_work(*, background: bool = False) -> Work:
    """Begin work in this task and those that it creates, for no caller yet."""
    work = Work(background=background)
    _CURRENT.set(work)
    _CALLER.set(_NOBODY)
    return work


def work_for(principal: Principal, namespace: str) -> None:
    """Let the work of this task and those that it creates be done for an authorized caller."""
    _CALLER.set(Caller(principal, namespace))


def current_caller() -> Caller:
    """Whom the work of this task is done for. Work for several callers is nobody's."""
    return _CALLER.get()


def continue_work(works: Iterable[Work | None]) -> None:
    """Let this task act for several units of work: it counts as the one that began first."""
    _CURRENT.set(min(filter(None, works), key=lambda work: work.began, default=None))


def current_work() -> Work | None:
    """The work that this task belongs to; None outside any."""
    return _CURRENT.get()


_FOLLOW_UP: ContextVar[bool] = ContextVar("follow_up", default=False)


@contextmanager
def follow_up(begin: bool = True) -> Iterator[None]:
    """What is written in it follows from something that was accepted, so no quota refuses it.

    ``begin`` False: it does not.
    """
    token = _FOLLOW_UP.set(begin)
    try:
        yield
    finally:
        _FOLLOW_UP.reset(token)


def is_follow_up() -> bool:
    """Whether this is within ``follow_up``."""
    return _FOLLOW_UP.get()
