"""Threads that run the model, and their queue.

Each thread takes one text at a time, so nothing waits for a batch to fill or to finish. Queries
go before documents, but every ninth turn is a document's, so that neither starves the other.
Calls take turns text by text: a single save does not wait behind an import, nor behind writes whose
callers have disconnected, which get every ninth turn of the documents. Before that, principals take
turns, so that many calls of one do not hold up another's. The windows of a text longer
than the model's input are spread over the threads, and take turns one by one in place of that text.

A text that is embedded alone may use idle cores if a caller is waiting for it. Two such texts at
the same time would be slower than on one thread each. So after texts have overlapped, each runs on
one thread until none have overlapped for a while.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from lot_grpc.embedding.cache import Key
from lot_grpc.embedding.model import Encoded, Encoder
from lot_grpc.embedding.windows import Windows, mean_vector
from lot_grpc.telemetry.metrics import EMBEDDING_DURATION, EMBEDDING_WAIT
from lot_grpc.work import Work, current_caller, current_work

_IN_A_ROW = 8
"""Queries before a document, and documents with a waiting caller before one without."""
_MOST_THREADS = 8

_ALONE_AFTER_SECONDS = 0.1
"""Seconds without overlapping texts after which a text counts as alone."""


class EmbeddingFault(Exception):  # noqa: N818 - only carries another error
    """Why a job failed. Whatever it was, callers get an ordinary exception."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__(cause)
        self.cause = cause


class Job:
    """A text to embed. All callers with the same text share it; see ``wait`` and ``release``."""

    __slots__ = (
        "abandoned",
        "begun",
        "call",
        "future",
        "key",
        "prefix",
        "principal",
        "text",
        "waiters",
        "work",
    )

    call: _Call
    """Set when its turn has come."""

    def __init__(
        self, key: Key, text: str, loop: asyncio.AbstractEventLoop, prefix: str = ""
    ) -> None:
        self.key = key
        self.text = text
        self.prefix = prefix
        self.begun = time.perf_counter()
        self.waiters = 1
        self.work: Work | None = current_work()
        self.principal = current_caller().principal.id
        self.abandoned = False
        self.future: asyncio.Future[Encoded] = loop.create_future()
        # The event loop must not report an error that no caller waited for.
        self.future.add_done_callback(lambda future: future.cancelled() or future.exception())

    def waited(self) -> None:
        """Its turn has come."""
        EMBEDDING_WAIT.observe(time.perf_counter() - self.begun)

    async def wait(self) -> Encoded:
        """The vector. Cancelling one caller does not affect the others."""
        return await asyncio.shield(self.future)

    def join(self) -> None:
        """Add a caller."""
        self.waiters += 1
        self.work = current_work()

    @property
    def awaited(self) -> bool:
        """Whether the last caller is still waiting."""
        return self.work is None or self.work.waiting > 0

    def release(self) -> bool:
        """Remove a caller; True if it was the last and the job is not done yet."""
        self.waiters -= 1
        self.abandoned = self.waiters == 0 and not self.future.done()
        return self.abandoned


class Reading:
    """A text that is read in windows, on several threads at once. Collects their vectors."""

    def __init__(self, job: Job, windows: Windows) -> None:
        self.job = job
        self.over = False
        self._truncated = windows.truncated
        self._vectors: dict[int, NDArray[np.float32]] = {}
        self._windows = windows.texts
        self._lock = threading.Lock()

    def put(self, number: int, vector: NDArray[np.float32]) -> Encoded | None:
        """Add a window's vector; return the text's, if it was the last one missing."""
        with self._lock:
            self._vectors[number] = vector
            if self.over or len(self._vectors) < len(self._windows):
                return None
            self.over = True
        in_order = [self._vectors[number] for number in range(len(self._windows))]
        return Encoded(mean_vector(in_order, self._windows), self._truncated)

    def fail(self, cause: BaseException) -> EmbeddingFault | None:
        """End it because a window failed; None if a failure was already reported."""
        with self._lock:
            if self.over:
                return None
            self.over = True
        return EmbeddingFault(cause)


class Window:
    """A part of a text to embed."""

    __slots__ = ("number", "reading", "text")

    def __init__(self, reading: Reading, number: int, text: str) -> None:
        self.reading = reading
        self.number = number
        self.text = text

    @property
    def job(self) -> Job:
        """The text that it belongs to."""
        return self.reading.job

    @property
    def abandoned(self) -> bool:
        """Whether no caller waits for the text any more, or another window of it failed."""
        return self.reading.over or self.job.abandoned


class _Call:
    """The jobs of one call, which take turns with other calls for as long as there are any."""

    __slots__ = ("principal", "row", "turns")

    def __init__(self, row: _Row, principal: str) -> None:
        self.row = row
        self.principal = principal
        self.turns: deque[Job | Window] = deque()

    def put_first(self, turns: Iterable[Job | Window]) -> None:
        if not self.turns:
            self.row.append(self)
        self.turns.extendleft(turns)

    @property
    def awaited(self) -> bool:
        """Whether a caller waits for the next job."""
        turn = self.turns[0]
        return (turn if isinstance(turn, Job) else turn.job).awaited

    def take(self) -> Job | Window:
        turn = self.turns.popleft()
        if isinstance(turn, Job):
            turn.call = self
        if self.turns:
            self.row.append(self)
        return turn


class _Row:
    """Calls that wait. Principals take turns, and so do the calls of each."""

    def __init__(self) -> None:
        self._calls: dict[str, deque[_Call]] = {}

    def __bool__(self) -> bool:
        return bool(self._calls)

    def append(self, call: _Call) -> None:
        self._calls.setdefault(call.principal, deque()).append(call)

    def take(self, accept: Callable[[_Call], bool] = lambda call: True) -> _Call | None:
        """The first that is accepted; its principal goes to the end of the row."""
        for principal, calls in self._calls.items():
            for number, call in enumerate(calls):
                if accept(call):
                    del calls[number]
                    del self._calls[principal]
                    if calls:
                        self._calls[principal] = calls
                    return call
        return None


class Turns:
    """The queue between the event loop and the threads."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._queries = _Row()
        self._documents = _Row()
        self._in_a_row = 0
        self._awaited_in_a_row = 0
        self._running = 0
        self._last_overlap = -_ALONE_AFTER_SECONDS
        self._closed = False

    def add_queries(self, jobs: Sequence[Job]) -> None:
        """Queue search texts."""
        with self._changed:
            for job in jobs:
                _Call(self._queries, job.principal).put_first([job])
            self._changed.notify(len(jobs))

    def add_documents(self, jobs: Sequence[Job]) -> None:
        """Queue the texts of one call."""
        if jobs:
            with self._changed:
                _Call(self._documents, jobs[0].principal).put_first(reversed(jobs))
                self._changed.notify(len(jobs))

    def add_windows(self, job: Job, windows: Windows) -> None:
        """Queue the windows of a job from ``take`` in its place. Allowed after ``close``."""
        reading = Reading(job, windows)
        parts = [
            Window(reading, number, job.prefix + text) for number, text in enumerate(windows.texts)
        ]
        with self._changed:
            job.call.put_first(reversed(parts))
            self._changed.notify(len(parts))

    def close(self) -> None:
        """Let ``take`` end once the queue is empty."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def take(self) -> Job | Window | None:
        """Wait for the next job that is still needed; None when closed and empty."""
        with self._changed:
            while True:
                while not (self._queries or self._documents or self._closed):
                    self._changed.wait()
                turn = self._next()
                if turn is None or not turn.abandoned:
                    self._running += turn is not None
                    return turn

    def alone(self) -> bool:
        """Whether no other job has run or waited for a while, so that one may use idle cores."""
        now = time.monotonic()
        with self._changed:
            if self._running > 1 or self._queries or self._documents:
                self._last_overlap = now
                return False
            return now - self._last_overlap >= _ALONE_AFTER_SECONDS

    def done(self) -> None:
        """A job from ``take`` has ended."""
        with self._changed:
            self._running -= 1

    def _next(self) -> Job | Window | None:
        if self._queries and (not self._documents or self._in_a_row < _IN_A_ROW):
            self._in_a_row += 1
            query = self._queries.take()
            return None if query is None else query.take()
        self._in_a_row = 0
        awaited = self._awaited_in_a_row < _IN_A_ROW
        call = self._documents.take(lambda one: one.awaited == awaited) or self._documents.take()
        if call is None:
            return None
        self._awaited_in_a_row = self._awaited_in_a_row + 1 if call.awaited else 0
        return call.take()


class Workers:
    """Threads that embed the jobs of ``turns`` and pass the results to the event loop.

    Args:
        encoder: Splits and embeds texts; called from all threads.
        threads: How many, at least 1.
        settle: Called on the event loop with each finished job and its outcome.
    """

    def __init__(
        self,
        encoder: Encoder,
        threads: int,
        settle: Callable[[Job, Encoded | EmbeddingFault], None],
    ) -> None:
        self.turns = Turns()
        self._encoder = encoder
        self._settle = settle
        self._loop = asyncio.get_running_loop()
        # Daemons, so that a process that never called close() can still exit.
        self._threads = [
            threading.Thread(target=self._work, name=f"lot-embedding-{number}", daemon=True)
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
        while (turn := self.turns.take()) is not None:
            outcome: Encoded | EmbeddingFault | None
            job = turn if isinstance(turn, Job) else turn.job
            # Whatever is raised, if the thread died of it, its callers would hang; a Rust panic is
            # not an Exception.
            try:
                outcome = self._read(turn) if isinstance(turn, Job) else self._read_part(turn)
            except BaseException as error:  # noqa: BLE001
                outcome = EmbeddingFault(error)
            self.turns.done()
            if outcome is None:
                continue
            try:
                self._loop.call_soon_threadsafe(self._settle, job, outcome)
            except RuntimeError:
                return  # the event loop is closed: no caller is left

    def _read(self, job: Job) -> Encoded | None:
        job.waited()
        windows = self._encoder.split(job.prefix, job.text)
        if windows is None:
            return Encoded(self._encode(job, job.prefix + job.text), truncated=False)
        self.turns.add_windows(job, windows)
        return None

    def _read_part(self, window: Window) -> Encoded | EmbeddingFault | None:
        try:
            vector = self._encode(window.job, window.text)
        except BaseException as error:  # noqa: BLE001 - as in `_work`
            return window.reading.fail(error)
        return window.reading.put(window.number, vector)

    def _encode(self, job: Job, text: str) -> NDArray[np.float32]:
        with EMBEDDING_DURATION.time():
            return self._encoder.encode(text, alone=job.awaited and self.turns.alone())


def usable_cores() -> int:
    """Cores that this process may run on, at most 8: how many threads a model gets."""
    usable = getattr(os, "sched_getaffinity", None)
    cores = len(usable(0)) if usable else os.cpu_count() or 1
    return min(cores, _MOST_THREADS)
