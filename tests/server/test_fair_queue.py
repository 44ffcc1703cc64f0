"""Calls of several principals take turns."""

from __future__ import annotations

import asyncio
import time

import pytest

from lot_grpc.server import fair_queue
from lot_grpc.server.fair_queue import FairQueue, Turn


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


class Calls:
    """Calls that end when they are told to, in the order in which they began."""

    def __init__(self, queue: FairQueue) -> None:
        self.queue = queue
        self.begun: list[str] = []
        self.turns: list[Turn] = []
        self.tasks: list[asyncio.Task[None]] = []

    async def send(self, principal: str, count: int = 1) -> None:
        async def call(name: str) -> None:
            turn = await self.queue.enter(principal)
            self.begun.append(name)
            self.turns.append(turn)

        self.tasks += [asyncio.create_task(call(f"{principal}{n}")) for n in range(count)]
        await settle()

    async def end(self, principal: str) -> None:
        turn = next(one for one in self.turns if one.principal == principal)
        self.turns.remove(turn)
        self.queue.leave(turn)
        await settle()


@pytest.fixture
async def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """While the process is as busy as can be, and nobody is forgotten."""
    monkeypatch.setattr(fair_queue, "_PRESENT_SECONDS", 3600.0)
    monkeypatch.setattr(fair_queue, "_IDLE_SHARE", -1.0)
    return Calls(FairQueue())


async def test_who_is_alone_has_as_many_under_way_as_keep_the_server_busy(calls: Calls):
    await calls.send("a", 20)
    assert len(calls.begun) == fair_queue._AT_ONCE == 16
    for ended in range(4):
        await calls.end("a")
        assert len(calls.begun) == 17 + ended


async def test_who_has_no_call_under_way_never_waits(calls: Calls):
    await calls.send("a", 50)
    for name in "bcdefgh":
        await calls.send(name)
        assert calls.begun[-1] == f"{name}0"


async def test_who_calls_more_waits_for_its_own_and_who_calls_less_does_not(calls: Calls):
    await calls.send("a", 10)
    await calls.send("b", 3)
    assert calls.begun[10:] == ["b0", "b1", "b2"]
    await calls.send("a", 3)
    assert len(calls.queue) == 3
    await calls.end("b")
    assert len(calls.queue) == 3, "another's end gives it nothing"
    for _ in range(9):
        await calls.end("a")
        assert len(calls.queue) == 3, "those that began when it was alone end first"
    await calls.end("a")
    await calls.end("a")
    assert calls.begun[13:] == ["a0", "a1"], "in order"


async def test_who_calls_alike_takes_turns(calls: Calls):
    await calls.send("a", 5)
    await calls.send("b", 20)
    assert [name for name in calls.begun if name[0] == "b"] == [f"b{n}" for n in range(5)]
    await calls.send("a", 9)
    assert len([name for name in calls.begun if name[0] == "a"]) == 6, "one more than b, at most"


async def test_once_it_is_alone_again_its_calls_begin(
    calls: Calls, monkeypatch: pytest.MonkeyPatch
):
    await calls.send("b")
    await calls.send("a", 9)
    assert calls.begun == ["b0", "a0"]
    await calls.end("b")
    monkeypatch.setattr(fair_queue, "_PRESENT_SECONDS", 1e-9)
    await calls.end("a")
    assert len(calls.begun) == 10
    assert len(calls.queue) == 0
    assert len(calls.queue._present) == 1, "who is gone is forgotten"


async def test_who_waits_may_leave(calls: Calls):
    await calls.send("b")
    await calls.send("a", 5)
    calls.tasks[-1].cancel()
    await settle()
    assert len(calls.queue) == 4, "its place is dropped when its turn comes"
    for _ in range(4):
        await calls.end("a")
    assert calls.begun == ["b0", "a0", "a1", "a2", "a3"]
    assert len(calls.queue) == 0
    await calls.send("a")
    assert len(calls.begun) == 6


async def test_who_leaves_as_its_turn_comes_passes_it_on(calls: Calls):
    await calls.send("b")
    await calls.send("a", 3)
    turn = next(one for one in calls.turns if one.principal == "a")
    calls.queue.leave(turn)
    calls.tasks[2].cancel()  # its turn has come, and it has not run since
    await settle()
    assert calls.begun == ["b0", "a0", "a2"]


async def test_a_call_that_waits_while_the_process_is_idle_does_not_count(
    calls: Calls, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(fair_queue, "_LONG_SECONDS", 0.01)
    monkeypatch.setattr(fair_queue, "_IDLE_SHARE", 1e9)
    await calls.send("b")
    await calls.send("a", 5)
    assert len(calls.queue) == 4
    while len(calls.queue):
        await asyncio.sleep(0.01)
    assert calls.begun == ["b0", *(f"a{n}" for n in range(5))]
    for name in "aaaaab":
        await calls.end(name)
    assert not calls.queue._under_way, "each ends once"


async def test_a_call_that_is_long_while_the_process_is_busy_counts(
    calls: Calls, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(fair_queue, "_LONG_SECONDS", 0.001)
    monkeypatch.setattr(fair_queue, "_IDLE_SHARE", 0.01)
    await calls.send("b")
    await calls.send("a", 3)
    for _ in range(20):
        until = time.process_time() + 0.005
        while time.process_time() < until:
            pass
        await asyncio.sleep(0)
    assert len(calls.queue) == 2
    for name in "aaab":
        await calls.end(name)
    assert not calls.queue._under_way
