"""Callers at the same time share what is done for them, and no fate."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

import pytest

from lot_grpc.kernel.groups import Groups
from lot_grpc.work import begin_work, current_work

NONE = type(None)


class RefusedError(Exception):
    pass


class Worker:
    """Lists the groups that it was given; refuses what is negative, with all that comes with it."""

    def __init__(self, most: int = 100) -> None:
        self.groups: list[list[int]] = []
        self.began: list[float | None] = []
        self.blocked = asyncio.Event()
        self.blocked.set()
        self.callers = Groups(self.work, most)

    async def work(self, numbers: Sequence[int]) -> None:
        self.groups.append(list(numbers))
        work = current_work()
        self.began.append(work.began if work else None)
        await self.blocked.wait()
        if min(numbers) < 0:
            raise RefusedError(numbers)


async def test_callers_at_the_same_time_share_a_group() -> None:
    worker = Worker(most=3)
    await asyncio.gather(*(worker.callers.process(number) for number in range(7)))
    assert worker.groups == [[0, 1, 2], [3, 4, 5], [6]]
    await worker.callers.process(7)
    assert worker.groups[-1] == [7]


async def test_a_caller_some_turns_of_the_loop_later_still_joins() -> None:
    worker = Worker()

    async def late(number: int) -> None:
        for _ in range(10 * number):
            await asyncio.sleep(0)
        await worker.callers.process(number)

    await asyncio.gather(*(late(number) for number in range(4)))
    assert worker.groups == [[0, 1, 2, 3]]


async def test_who_comes_while_a_group_is_worked_on_is_in_the_next() -> None:
    worker = Worker()
    worker.blocked.clear()
    first = asyncio.create_task(worker.callers.process(1))
    while not worker.groups:
        await asyncio.sleep(0)
    others = [asyncio.create_task(worker.callers.process(number)) for number in (2, 3)]
    await asyncio.sleep(0)
    worker.blocked.set()
    await asyncio.gather(first, *others)
    assert worker.groups == [[1], [2, 3]]


async def test_one_that_is_refused_fails_no_other() -> None:
    worker = Worker()
    numbers = [1, -2, 3, -4]
    results = await asyncio.gather(
        *(worker.callers.process(number) for number in numbers), return_exceptions=True
    )
    assert [type(result) for result in results] == [NONE, RefusedError, NONE, RefusedError]
    assert worker.groups == [numbers, [1], [-2], [3], [-4]]


async def test_a_caller_that_is_cancelled_leaves_the_others_and_the_next_group_alone() -> None:
    worker = Worker()
    worker.blocked.clear()
    calls = [asyncio.create_task(worker.callers.process(number)) for number in (1, 2)]
    while not worker.groups:
        await asyncio.sleep(0)
    calls[0].cancel()
    worker.blocked.set()
    with pytest.raises(asyncio.CancelledError):
        await calls[0]
    await calls[1]
    await worker.callers.process(3)
    assert worker.groups == [[1, 2], [3]]


async def test_nobody_waits_forever_if_the_work_itself_is_cancelled() -> None:
    worker = Worker(most=1)
    worker.blocked.clear()
    calls = [asyncio.create_task(worker.callers.process(number)) for number in (1, 2)]
    while not worker.groups:
        await asyncio.sleep(0)
    running = worker.callers._running
    assert running is not None
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    results = await asyncio.gather(*calls, return_exceptions=True)
    assert all(isinstance(result, asyncio.CancelledError) for result in results)
    worker.blocked.set()
    await worker.callers.process(3)


async def test_a_group_counts_as_begun_when_its_first_call_began() -> None:
    """Else a write of a call that is older than a clear of its namespace would not be refused."""
    worker = Worker()

    async def call(number: int) -> float:
        began = begin_work().began
        await asyncio.sleep(0)
        await worker.callers.process(number)
        return began

    began = await asyncio.gather(*(call(number) for number in (1, -2, 3)), return_exceptions=True)
    assert worker.groups == [[1, -2, 3], [1], [-2], [3]]
    assert worker.began[:2] == [began[0], began[0]]
    assert worker.began[3] == began[2]
    assert current_work() is None
