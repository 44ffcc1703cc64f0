"""Threads that score pairs of query and text, and their queue.

Calls take turns pair by pair, each starting with its first texts: a call with five candidates does
not wait behind one with a hundred. A call ends at its deadline with the scores it has by then.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

MAX_WAITING = 4096
"""Limit on all waiting pairs: minutes of work. Further ones are not queued."""


class Call:
    """One query and its texts in progress. ``finished`` is set when no more scores will come.

    Until then everything else is guarded by the lock of ``Turns``.
    """

    def __init__(self, query: str, texts: Sequence[str], deadline: float) -> None:
        self.query = query
        self.texts = texts
        self.deadline = deadline
        self.scores: list[float | None] = [None] * len(texts)
        self.fault: tuple[str, BaseException] | None = None
        """The text that the model failed on first, and how."""
        self.next = 0
        self.end = 0
        self.running = 0
        self.finished = asyncio.Event()
        self.loop = asyncio.get_running_loop()


class Turns:
    """The queue between the event loop and the threads."""

    def __init__(self, most: int = MAX_WAITING) -> None:
        self._most = most
        self._changed = threading.Condition()
        self._calls: deque[Call] = deque()
        self._waiting = 0
        self._closed = False

    def add(self, call: Call) -> None:
        """Queue as many of the call's first texts as the limit allows."""
        with self._changed:
            room = 0 if self._closed else self._most - self._waiting
            call.end = min(len(call.texts), room)
            self._waiting += call.end
            if call.end:
                self._calls.append(call)
                self._changed.notify(call.end)
            else:
                _notify_if_finished(call)

    def stop(self, call: Call) -> None:
        """Start no more of the call's pairs. Running ones are finished."""
        with self._changed:
            self._stop(call)

    def close(self) -> None:
        """Let ``take`` end once the queue is empty."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def take(self) -> tuple[Call, int] | None:
        """Wait for the next pair whose deadline has not passed; None when closed and empty."""
        with self._changed:
            while True:
                while not (self._calls or self._closed):
                    self._changed.wait()
                if not self._calls:
                    return None
                call = self._calls.popleft()
                if time.monotonic() >= call.deadline:
                    self._stop(call)
                if call.next == call.end:
                    continue
                index = call.next
                call.next += 1
                call.running += 1
                self._waiting -= 1
                if call.next < call.end:
                    self._calls.append(call)
                return call, index

    def give(self, call: Call, index: int, outcome: float | BaseException) -> None:
        """Report the outcome of a pair from ``take``."""
        with self._changed:
            call.running -= 1
            if isinstance(outcome, BaseException):
                call.fault = call.fault or (call.texts[index], outcome)
                self._stop(call)
            else:
                call.scores[index] = outcome
                _notify_if_finished(call)

    def _stop(self, call: Call) -> None:
        # It stays in the queue, where `take` skips it.
        self._waiting -= call.end - call.next
        call.end = call.next
        _notify_if_finished(call)


class PairWorkers:
    """Threads that score the pairs of ``turns``.

    Args:
        score: Scores one pair of query and text; called from all threads.
        threads: How many, at least 1.
    """

    def __init__(
        self, score: Callable[[str, str], float], threads: int, most: int = MAX_WAITING
    ) -> None:
        self.turns = Turns(most)
        self._score = score
        # Daemons, so that a process that never called close() can still exit.
        self._threads = [
            threading.Thread(target=self._work, name=f"lot-rerank-{number}", daemon=True)
            for number in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    async def close(self) -> None:
        """Finish what is queued, then end the threads. Idempotent."""
        self.turns.close()
        for thread in self._threads:
            await asyncio.to_thread(thread.join)

    def _work(self) -> None:
        while (taken := self.turns.take()) is not None:
            call, index = taken
            outcome: float | BaseException
            try:
                outcome = self._score(call.query, call.texts[index])
            except BaseException as error:  # noqa: BLE001 - a Rust panic is not an Exception
                # Whatever it is, if the thread died of it, its callers would hang.
                outcome = error
            self.turns.give(call, index, outcome)


def _notify_if_finished(call: Call) -> None:
    if call.running or call.next < call.end:
        return
    try:
        call.loop.call_soon_threadsafe(call.finished.set)
    except RuntimeError:
        return  # the event loop is closed: no caller is left
