"""Lets the calls of several principals take turns, so that a flood of one does not hold up others.

Calls share one event loop, which serves whatever is ready, in order: at each of its steps, a call
waits for a step of every other running call. So few should run at once. While more than one
principal calls, each one that calls more than average has one call running, and its other calls
wait in order. A principal that is alone, or calls less, has as many running as keep the server
busy; more would not be faster, and would hold up the next caller. A call during which the process
is idle is taken to wait for a store or a model over a network. It does not count, so the next one
begins.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter, deque
from typing import Final

_AT_ONCE: Final = 16
"""Calls under way of a principal that does not call more than others."""
_PRESENT_SECONDS: Final = 1.0
"""How long a principal counts as present after its last call, and over which calls are counted."""
_LONG_SECONDS: Final = 0.025
"""How long a call runs before it may be taken to wait for something outside."""
_IDLE_SHARE: Final = 0.5
"""The process is idle if it used less of one core than this."""


class Turn:
    """A call under way."""

    __slots__ = ("began", "counts", "cpu", "principal", "timer")

    def __init__(self, principal: str) -> None:
        self.principal = principal
        self.counts = True
        self.began = 0.0
        self.cpu = 0.0
        self.timer: asyncio.TimerHandle | None = None


class _Caller:
    """How much a principal calls: its calls, each fading within a second or so."""

    __slots__ = ("calls", "seen")

    def __init__(self, now: float) -> None:
        self.calls = 0.0
        self.seen = now

    def calls_at(self, now: float) -> float:
        return self.calls * math.exp((self.seen - now) / _PRESENT_SECONDS)


class FairQueue:
    """The calls under way and those that wait, by principal. Belongs to one event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._under_way: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        self._present: dict[str, _Caller] = {}
        """Who called lately or has calls under way, the latest last."""

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    async def enter(self, principal: str) -> Turn:
        """Wait for a turn. Return it with ``leave``."""
        now = self._loop.time()
        caller = self._present.pop(principal, None) or _Caller(now)
        self._present[principal] = caller
        if self._waiting.get(principal) or not self._may_begin(principal, now):
            await self._wait(principal)
        else:
            self._begin(principal, now)
        turn = Turn(principal)
        self._look_later(turn)
        return turn

    def leave(self, turn: Turn) -> None:
        """The call has ended."""
        if turn.timer is not None:
            turn.timer.cancel()
        if turn.counts:
            self._end(turn)

    def _begin(self, principal: str, now: float) -> None:
        self._under_way[principal] += 1
        caller = self._present.setdefault(principal, _Caller(now))
        caller.calls, caller.seen = caller.calls_at(now) + 1, now

    def _end(self, turn: Turn) -> None:
        turn.counts = False
        self._under_way[turn.principal] -= 1
        if not self._under_way[turn.principal]:
            del self._under_way[turn.principal]
        self._begin_next(turn.principal)

    def _may_begin(self, principal: str, now: float) -> bool:
        under_way = self._under_way.get(principal, 0)
        return under_way < 1 or (under_way < _AT_ONCE and not self._calls_more(principal, now))

    def _calls_more(self, principal: str, now: float) -> bool:
        """Whether others are present, and call less on average."""
        while self._present:
            oldest = next(iter(self._present))
            recent = now - self._present[oldest].seen < _PRESENT_SECONDS
            if recent or oldest in self._under_way or oldest in self._waiting:
                break
            del self._present[oldest]
        if len(self._present) <= 1:
            return False
        calls = {name: caller.calls_at(now) for name, caller in self._present.items()}
        return calls.get(principal, 0.0) > sum(calls.values()) / len(calls)

    async def _wait(self, principal: str) -> None:
        turn: asyncio.Future[None] = self._loop.create_future()
        row = self._waiting.setdefault(principal, deque())
        row.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # it had its turn: the next one takes it
                self._end(Turn(principal))
            raise

    def _begin_next(self, principal: str) -> None:
        row = self._waiting.get(principal)
        now = self._loop.time()
        while row and self._may_begin(principal, now):
            turn = row.popleft()
            if not turn.done():  # else its caller has gone
                self._begin(principal, now)
                turn.set_result(None)
        if row is not None and not row:
            del self._waiting[principal]

    def _look_later(self, turn: Turn) -> None:
        turn.began, turn.cpu = self._loop.time(), time.process_time()
        turn.timer = self._loop.call_later(_LONG_SECONDS, self._look, turn)

    def _look(self, turn: Turn) -> None:
        used = time.process_time() - turn.cpu
        if used < _IDLE_SHARE * (self._loop.time() - turn.began):
            self._end(turn)
        else:
            self._look_later(turn)
