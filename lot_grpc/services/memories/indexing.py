"""Indexes long memories in the background.

A memory of more passages than a caller waits for is stored with its terms and the vector of its
first passage, marked as pending. The mark is the intent: the process that stored it makes the other
vectors, one memory at a time, and writes them together with the state, if the text is still the
same. A start resumes what is left; on a shared store another process does, once it is old enough
(``Housekeeping.roll_forward``). A failed attempt is noted in the memory and repeated.
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
from lot_grpc.services.records.memories import (
    INDEXING,
    INDEXING_PROBLEM,
    memory_from_record,
    memory_point,
)
from lot_grpc.services.runtime import Runtime
from lot_grpc.work import begin_work, current_work

STEP_SECONDS = 0.1
"""The pause between two memories, and the longest until the first one begins."""

_LONGEST_RETRY_SECONDS = 60.0
_LOOK_SECONDS = 0.1
_PENDING = Equals(INDEXING, IndexingState.PENDING.value)
_SHOWN = 100
_BUG = "an internal error, which the log of the server explains"


@dataclass(slots=True, eq=False)
class _Task:
    """A memory to index. ``at``: when, by the event loop's clock. ``noted``: in the record too."""

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
    """The memories that are pending, as far as this process is to index them."""

    def __init__(self, runtime: Runtime) -> None:
        self._store = runtime.store
        self._indexer = runtime.indexer
        self._tasks: dict[str, _Task] = {}

    # --- what is to be done -------------------------------------------------------------------

    def add(self, memory: Memory, *, changed: bool = False) -> None:
        """Index a memory if it is pending. ``changed``: it has another text than before."""
        if memory.indexing is IndexingState.PENDING:
            self._add(memory.namespace, memory.memory_id, changed=changed)

    async def resume(self, before: int) -> int:
        """Take on what was stored before a time and is pending; a recovery. It finishes none."""

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
        """Index the memory that is due first, if any is; periodic. Raises what made it fail."""
        now = asyncio.get_running_loop().time()
        due = [task for task in self._tasks.values() if task.at <= now]
        if not due:
            return
        begin_work(background=True)
        task = min(due, key=lambda one: one.at)
        try:
            await self._store.check()  # vectors that cannot be written are not worth making
            over = await self._index(task)
        except NamespaceClearingError:
            self._defer(task)  # a clear deletes it; one that does not ends soon
        except Exception as error:
            self._defer(task)
            await self._note(task, error.message if isinstance(error, LotError) else _BUG)
            raise
        else:
            if over and self._is_current(task):
                del self._tasks[task.point]

    async def _index(self, task: _Task) -> bool:
        """Make and store its vectors; False if its text has changed meanwhile."""
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
            payload = {key: value for key, value in record.payload.items() if key not in ours}
            new = replace(record, payload=payload, vectors={**record.vectors, **vectors})
            await replace_as_read(self._store, MEMORIES, record, new, "revision", INDEXING)
            return True

        return await compare_and_set(ResourceKind.MEMORY, task.memory_id, attempt)

    async def _read(self, task: _Task, *, vectors: bool = False) -> Record | None:
        """Its record; None if there is nothing to index any more."""
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
        """Store why an attempt failed, or remember it where that cannot be stored either."""
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
            return  # the disk is full, or the store is away: `with_problem` tells

    def with_problem(self, memory: Memory) -> Memory:
        """A memory with the problem that this process has with it."""
        if memory.indexing is not IndexingState.PENDING:
            return memory
        task = self._tasks.get(memory_point(memory.namespace, memory.memory_id))
        return replace(memory, indexing_problem=task.problem) if task and task.problem else memory

    async def check(self) -> ReadyCheck:
        """How many memories are pending. Never a reason not to be ready. Raises store errors."""
        count = await self._store.count(MEMORIES, None, [_PENDING])
        if not count:
            return ReadyCheck("indexing", ok=True, detail="no memory is waiting for its vectors")
        rows = await self._store.scroll(
            MEMORIES, None, [_PENDING], limit=_SHOWN, payload=(INDEXING_PROBLEM,)
        )
        stored = [row.payload.get(INDEXING_PROBLEM, "") for row in rows]
        known = [task.problem for task in self._tasks.values()]
        waiting = f"memories whose passages are not all found by meaning yet: {count}"
        problems = sorted({*stored, *known} - {""})
        if not problems:
            return ReadyCheck("indexing", ok=True, detail=waiting)
        why = "; ".join(problems[:3])
        return ReadyCheck("indexing", ok=True, detail=f"{waiting}; some are retried, since {why}")

    # --- waiting for it -----------------------------------------------------------------------

    async def wait(self, memories: Sequence[Memory], seconds: float) -> None:
        """Wait until none is pending, but for those that an attempt fails for.

        At most so long, and no longer than a caller waits for the call.
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
    """The pause before the next attempt, after so many earlier failures."""
    return min(_LONGEST_RETRY_SECONDS, 2.0 ** min(failures, 10))


def _text(record: Record) -> SearchText:
    return search_text(memory_from_record(record).content)
