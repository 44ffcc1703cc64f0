"""Threads that run the model, and whose turn it is.

Each thread takes one text at a time, so nothing waits for a batch to fill or to finish. Queries
go before documents, but every ninth turn is a document's, so that neither starves the other.
Calls with documents take turns text by text: a single save does not wait behind an import.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Sequence

from lot_grpc.embedding.cache import Key
from lot_grpc.embedding.model import Encoded

_QUERIES_IN_A_ROW = 8


class EmbeddingFault(Exception):  # noqa: N818 - carries an error across, is none of its own
    """Why a job failed. Whatever it was, a waiter meets an ordinary exception."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__(cause)
        self.cause = cause


class Job:
    """A text on its way. All who want the same text share it; see ``wait`` and ``release``."""

    __slots__ = ("abandoned", "future", "key", "text", "wanted")

    def __init__(self, key: Key, text: str, loop: asyncio.AbstractEventLoop) -> None:
        self.key = key
        self.text = text
        self.wanted = 1
        self.abandoned = False
        self.future: asyncio.Future[Encoded] = loop.create_future()
        # An error that nobody waited for is no news to the event loop.
        self.future.add_done_callback(lambda future: future.cancelled() or future.exception())

    async def wait(self) -> Encoded:
        """The vector. Cancelling one who waits leaves the others' result alone."""
        return await asyncio.shield(self.future)

    def release(self) -> bool:
        """One who wanted it is gone; True when that was the last and it is not done yet."""
        self.wanted -= 1
        self.abandoned = self.wanted == 0 and not self.future.done()
        return self.abandoned


class Turns:
    """The queue between the event loop and the threads."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._queries: deque[Job] = deque()
        self._calls: deque[deque[Job]] = deque()
        self._row = 0
        self._closed = False

    def add_queries(self, jobs: Sequence[Job]) -> None:
        """Queue search texts."""
        with self._changed:
            self._queries.extend(jobs)
            self._changed.notify(len(jobs))

    def add_documents(self, jobs: Sequence[Job]) -> None:
        """Queue the texts of one call."""
        if jobs:
            with self._changed:
                self._calls.append(deque(jobs))
                self._changed.notify(len(jobs))

    def close(self) -> None:
        """Let ``take`` end once the queue is empty."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def take(self) -> Job | None:
        """Wait for the next job that is still wanted; None when closed and empty."""
        with self._changed:
            while True:
                while not (self._queries or self._calls or self._closed):
                    self._changed.wait()
                job = self._next()
                if job is None or not job.abandoned:
                    return job

    def _next(self) -> Job | None:
        if self._queries and (not self._calls or self._row < _QUERIES_IN_A_ROW):
            self._row += 1
            return self._queries.popleft()
        self._row = 0
        if not self._calls:
            return None
        call = self._calls.popleft()
        job = call.popleft()
        if call:
            self._calls.append(call)
        return job


class Workers:
    """Threads that embed what ``turns`` hands out and give the results to the event loop.

    Args:
        encode: Embeds one text; called from all threads.
        threads: How many, at least 1.
        settle: Called on the event loop with each finished job and what came of it.
    """

    def __init__(
        self,
        encode: Callable[[str], Encoded],
        threads: int,
        settle: Callable[[Job, Encoded | EmbeddingFault], None],
    ) -> None:
        self.turns = Turns()
        self._encode = encode
        self._settle = settle
        self._loop = asyncio.get_running_loop()
        # Daemons, so that a process that never came to close() can still end.
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
        while (job := self.turns.take()) is not None:
            outcome: Encoded | EmbeddingFault
            try:
                outcome = self._encode(job.text)
            except BaseException as error:  # noqa: BLE001 - a Rust panic is no Exception
                # Whatever it is, a thread that died of it would leave its waiters hanging.
                outcome = EmbeddingFault(error)
            try:
                self._loop.call_soon_threadsafe(self._settle, job, outcome)
            except RuntimeError:
                return  # The event loop is closed: nobody is left to tell.
