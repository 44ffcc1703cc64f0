"""How long a stream may wait for its next request, on a loop whose clock jumps from timer to timer.

So nothing here depends on how fast the machine is.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any

import grpc
from hypothesis import given
from hypothesis import strategies as st

from lot_grpc.domain.errors import StreamIdleError
from lot_grpc.pb.lot.v1 import episode_service_pb2
from lot_grpc.server.streams import Requests

LIMIT = 100


class _Selector(selectors.DefaultSelector):
    """Lets the time that it should wait for pass at once."""

    now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        self.now += timeout or 0.0
        return super().select(0)


def run(main: Coroutine[Any, Any, None]) -> None:
    selector = _Selector()

    def loop() -> asyncio.AbstractEventLoop:
        made = asyncio.SelectorEventLoop(selector)
        made.time = lambda: selector.now  # type: ignore[method-assign]
        return made

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(main)


class Caller:
    """Sends an empty message after each of the pauses, then no more."""

    def __init__(self, pauses: list[int]) -> None:
        self._pauses = list(pauses)
        self.left = asyncio.Event()

    async def read(self) -> Any:
        if not self._pauses:
            await self.left.wait()
            return grpc.aio.EOF
        await asyncio.sleep(self._pauses.pop(0))
        return b""


def reading(caller: Caller) -> Requests:
    context: Any = caller
    return Requests(context, episode_service_pb2.RecordEventsRequest.FromString)


def idle() -> StreamIdleError:
    return StreamIdleError("e", LIMIT)


@given(st.lists(st.integers(0, 99) | st.integers(101, 300), max_size=8))
def test_it_ends_in_the_first_pause_that_is_too_long_and_not_before(pauses):
    async def main() -> None:
        loop = asyncio.get_running_loop()
        requests = reading(Caller(pauses))
        requests.limit_wait(LIMIT, idle)
        seen = 0
        try:
            async for _ in requests:
                seen += 1
        except StreamIdleError:
            ended = loop.time()
        requests.close()
        short = [*(n for n, pause in enumerate(pauses) if pause > LIMIT), len(pauses)][0]
        assert seen == short
        assert ended == sum(pauses[:short]) + LIMIT

    run(main())


@given(st.lists(st.integers(0, 300), min_size=1, max_size=6))
def test_what_the_consumer_does_meanwhile_does_not_count(works):
    async def main() -> None:
        requests = reading(Caller([0] * len(works)))
        requests.limit_wait(LIMIT, idle)
        for work in works:
            await anext(requests)
            await asyncio.sleep(work)
        requests.close()

    run(main())


def test_a_new_limit_takes_the_place_of_the_old_one_and_none_is_no_limit():
    async def main() -> None:
        caller = Caller([50, 10_000])
        requests = reading(caller)
        requests.limit_wait(LIMIT, idle)
        await anext(requests)
        requests.limit_wait(0, idle)
        await anext(requests)
        requests.close()

    run(main())


def test_nothing_of_a_closed_one_is_left_in_the_loop():
    async def main() -> None:
        loop: Any = asyncio.get_running_loop()
        caller = Caller([])
        requests = reading(caller)
        requests.limit_wait(LIMIT, idle)
        waiting = asyncio.create_task(anext(requests))
        await asyncio.sleep(LIMIT / 2)
        requests.close()
        await asyncio.wait([waiting])
        assert waiting.cancelled()
        caller.left.set()
        await asyncio.sleep(1)
        assert [one for one in loop._scheduled if not one.cancelled()] == []

    run(main())


def test_one_timer_serves_however_many_requests_come():
    async def main() -> None:
        loop: Any = asyncio.get_running_loop()
        requests = reading(Caller([1] * 50))
        requests.limit_wait(LIMIT, idle)
        most = 0
        for _ in range(50):
            await anext(requests)
            most = max(most, len(loop._scheduled))
        requests.close()
        assert most <= 2, "the timer and the caller's pause"

    run(main())
