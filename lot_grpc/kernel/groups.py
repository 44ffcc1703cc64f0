"""Groups the requests of concurrent callers, so that they share reads and writes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context
from dataclasses import dataclass
from itertools import islice
from typing import Generic, TypeVar

from lot_grpc.work import Work, continue_work, current_work, follow_up, is_follow_up

T = TypeVar("T")

_QUIET_TURNS = 20
"""Turns of the event loop that a call takes from the socket to here. An idle turn takes 1 us."""


@dataclass(eq=False, slots=True)
class _Waiting(Generic[T]):
    item: T
    work: Work | None
    follow_up: bool
    done: asyncio.Future[None]


class Groups(Generic[T]):
    """Processes items in groups of at most ``most``.

    An item that arrives while a group is being processed joins the next one. A group that fails is
    processed again item by item, so that no item fails because of another; processing must
    therefore be repeatable. A caller that is cancelled stops waiting, but its item is processed.
    """

    def __init__(self, process: Callable[[Sequence[T]], Awaitable[None]], most: int) -> None:
        self._process = process
        self._most = most
        self._waiting: list[_Waiting[T]] = []
        self._running: asyncio.Task[None] | None = None
        """Exists while anything waits, and ends by itself."""

    async def process(self, item: T) -> None:
        """Return once the item has been processed. Raises what its processing raised."""
        done = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(item, current_work(), is_follow_up(), done))
        if self._running is None:
            # The task works for many callers, so it must not inherit the context of one of them.
            self._running = asyncio.create_task(self._run(), context=Context())
        await done

    async def _run(self) -> None:
        group: list[_Waiting[T]] = []
        try:
            while self._waiting:
                await self._gather()
                group = list(islice(self._waiting, self._most))
                del self._waiting[: len(group)]
                await self._process_all(group)
        finally:  # if this task is cancelled, no caller waits forever
            self._running = None
            for one in [*group, *self._waiting]:
                one.done.cancel()
            self._waiting.clear()

    async def _gather(self) -> None:
        """Let arriving callers join, until the event loop brings no more of them."""
        joined, quiet = 0, 0
        while quiet < _QUIET_TURNS and joined < self._most:
            await asyncio.sleep(0)
            quiet = quiet + 1 if len(self._waiting) == joined else 0
            joined = len(self._waiting)

    async def _process_all(self, group: Sequence[_Waiting[T]]) -> None:
        continue_work(one.work for one in group)
        try:
            with follow_up(all(one.follow_up for one in group)):
                await self._process([one.item for one in group])
        except Exception as error:  # noqa: BLE001 - raised in the callers
            if len(group) > 1:
                for one in group:
                    await self._process_all([one])
            elif not group[0].done.done():
                group[0].done.set_exception(error)
            return
        for one in group:
            if not one.done.done():
                one.done.set_result(None)
