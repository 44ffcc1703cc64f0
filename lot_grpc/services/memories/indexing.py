"""Indexes long memories in the background.

A memory of more than ``AT_ONCE`` passages is stored with its terms and the vector of its first
passage, marked as pending. The mark is the intent. The process that stored the memory computes the
other vectors, one memory at a time, and writes them together with the state if the text is still
the same. Memories that are left pending are resumed by the next start, or on a shared store by
another process once they are old enough (``Housekeeping.roll_forward``). The reason for a failed
attempt is stored in the memory, and the attempt is repeated.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.errors import LotError, NamespaceClearingError
from lot_grpc.domain.memory import IndexingState, Memory, search_text
from lot_grpc.domain.search_text import SearchText
from lot_grpc.kernel.compare_and_set import compare_and_set, replace_as_read
from lot_grpc.kernel.intents import recover
from lot_grpc.ports import Equals, IdIn, Record
from lot_grpc.services.admin import ReadyCheck
from lot_grpc.services.records.collections import MEMORIES
from lot_grpc.services.records.counters import STATS_REVISION
from lot_grpc.services.records.memories import (
    INDEXING,
    INDEXING_PROBLEM,
    memory_from_record,
    memory_point,
)
from lot_grpc.services.runtime import Runtime
from lot_grpc.work import begin_work, current_work, follow_up

STEP_SECONDS = 0.1
"""The pause between two memories, and the longest pause before the first."""

_LONGEST_RETRY_SECONDS = 60.0
_LOOK_SECONDS = 0.1
_PENDING = Equals(INDEXING, IndexingState.PENDING.value)
_SHOWN = 100
_BUG = "internal error; see the log of the server"


@dataclass(slots=True, eq=False)
class _Task:
    """A memory to index. ``at``: when, by the event loop's clock.

    ``noted``: the problem is stored in the record too.
    """

    namespace: str
    memory_id: str
    at: float
    failures: int = 0
    problem: str = ""
    noted: bool = False

    @property
    def point(self) -> str:
        return memory_point(self.namespace, self.memory_id)


class MemoryIndexing:
    """The pending memories that this process is to index."""

    def __init__(self, runtime: Runtime) -> None:
        self._store = runtime.store
        self._indexer = runtime.indexer
        self._tasks: dict[str, _Task] = {}

    # --- what is to be done -------------------------------------------------------------------

    def add(self, memory: Memory, *, changed: bool = False) -> None:
        """Schedule a memory if it is pending. ``changed``: its text has changed."""
        if memory.indexing is IndexingState.PENDING:
            self._add(memory.namespace, memory.memory_id, changed=changed)

    async def resume(self, before: int) -> int:
        """Schedule pending memories stored before a time. A recovery; returns 0: none is done."""

        async def take(row: Record) -> None:
            self._add(row.namespace, row.payload["memory_id"])

        await recover(
            self._store,
            MEMORIES,
            _PENDING,
            take,
            before=before,
            begun="update_time",
            payload=("memory_id", "update_time"),
        )
        return 0

    def _add(self, namespace: str, memory_id: str, *, changed: bool = False) -> None:
        task = _Task(namespace, memory_id, asyncio.get_running_loop().time())
        if changed:
            self._tasks.pop(task.point, None)
        self._tasks.setdefault(task.point, task)

    # --- doing it -----------------------------------------------------------------------------

    async def step(self) -> None:
        """Index the memory that is due first, if any. Periodic. Raises the error of a failure."""
        now = asyncio.get_running_loop().time()
        due = [task for task in self._tasks.values() if task.at <= now]
        if not due:
            return
        begin_work(background=True)
        task = min(due, key=lambda one: one.at)
        try:
            await self._store.check()  # without a store, computing vectors would be wasted
            over = await self._index(task)
        except NamespaceClearingError:
            self._defer(task)  # the clear deletes it, or ends soon
        except Exception as error:
            self._defer(task)
            await self._note(task, error.message if isinstance(error, LotError) else _BUG)
            raise
        else:
            if over and self._is_current(task):
                del self._tasks[task.point]

    async def _index(self, task: _Task) -> bool:
        """Compute and store its vectors; False if its text has changed meanwhile."""
        record = await self._read(task)
        if record is None:
            return True
        text = _text(record)
        vectors = await self._indexer.passage_vectors(text, lambda: self._is_current(task))
        if vectors is None:
            return False

        async def attempt() -> bool:
            record = await self._read(task, vectors=True)
            if record is None:
                return True
            if _text(record) != text:
                return False
            ours = (INDEXING, INDEXING_PROBLEM)
            keys = ("revision", STATS_REVISION, INDEXING)
            payload = {key: value for key, value in record.payload.items() if key not in ours}
            new = replace(record, payload=payload, vectors={**record.vectors, **vectors})
            with follow_up():
                await replace_as_read(self._store, MEMORIES, record, new, *keys)
            return True

        return await compare_and_set(ResourceKind.MEMORY, task.memory_id, attempt)

    async def _read(self, task: _Task, *, vectors: bool = False) -> Record | None:
        """Its record; None if it is deleted or already indexed."""
        given = (MEMORIES, task.namespace, [task.point])
        record = (await self._store.get(*given, vectors=vectors)).get(task.point)
        return record if record is not None and INDEXING in record.payload else None

    def _is_current(self, task: _Task) -> bool:
        return self._tasks.get(task.point) is task

    # --- failures -----------------------------------------------------------------------------

    def _defer(self, task: _Task) -> None:
        task.at = asyncio.get_running_loop().time() + retry_seconds(task.failures)
        task.failures += 1

    async def _note(self, task: _Task, problem: str) -> None:
        """Store why an attempt failed; if that fails too, keep it in this process."""
        if task.noted and task.problem == problem:
            return
        task.problem, task.noted = problem, False
        try:
            task.noted = await self._store.update(
                MEMORIES,
                task.namespace,
                task.point,
                set={INDEXING_PROBLEM: problem},
                when=[_PENDING],
            )
        except LotError:
            return  # the disk is full or the store unreachable: `with_problem` adds it

    def with_problem(self, memory: Memory) -> Memory:
        """The memory, with a problem that this process could not store."""
        if memory.indexing is not IndexingState.PENDING:
            return memory
        task = self._tasks.get(memory_point(memory.namespace, memory.memory_id))
        return replace(memory, indexing_problem=task.problem) if task and task.problem else memory

    async def check(self) -> ReadyCheck:
        """How many memories are pending, and why. Always ``ok``. Raises store errors."""
        count = await self._store.count(MEMORIES, None, [_PENDING])
        if not count:
            return ReadyCheck("indexing", ok=True, detail="all memories are indexed")
        rows = await self._store.scroll(
            MEMORIES, None, [_PENDING], limit=_SHOWN, payload=(INDEXING_PROBLEM,)
        )
        stored = [row.payload.get(INDEXING_PROBLEM, "") for row in rows]
        known = [task.problem for task in self._tasks.values()]
        waiting = f"memories still to be indexed: {count}"
        problems = sorted({*stored, *known} - {""})
        if not problems:
            return ReadyCheck("indexing", ok=True, detail=waiting)
        why = "; ".join(problems[:3])
        return ReadyCheck("indexing", ok=True, detail=f"{waiting}; failed attempts: {why}")

    # --- waiting for it -----------------------------------------------------------------------

    async def wait(self, memories: Sequence[Memory], seconds: float) -> None:
        """Wait until each memory is indexed or an attempt to index it has failed.

        Waits at most ``seconds``, and only while the caller waits for the call.
        """
        loop, work = asyncio.get_running_loop(), current_work()
        end = loop.time() + seconds
        failures = {
            memory_point(one.namespace, one.memory_id): self._failures(one)
            for one in memories
            if one.indexing is IndexingState.PENDING
        }
        while failures and loop.time() < end and (work is None or work.waiting):
            await asyncio.sleep(min(_LOOK_SECONDS, max(0.0, end - loop.time())))
            rows = await self._store.scroll(
                MEMORIES,
                memories[0].namespace,
                [IdIn(tuple(failures)), _PENDING],
                limit=len(failures),
                payload=("memory_id",),
            )
            failures = {
                row.id: failures[row.id]
                for row in rows
                if row.id not in self._tasks or self._tasks[row.id].failures == failures[row.id]
            }

    def _failures(self, memory: Memory) -> int:
        task = self._tasks.get(memory_point(memory.namespace, memory.memory_id))
        return task.failures if task else 0


def retry_seconds(failures: int) -> float:
    """The pause before the next attempt, after ``failures`` earlier failures."""
    return min(_LONGEST_RETRY_SECONDS, 2.0 ** min(failures, 10))


def _text(record: Record) -> SearchText:
    return search_text(memory_from_record(record).content)
