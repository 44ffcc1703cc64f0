"""Calls pass together; the switch goes alone, and holds nobody up for long."""

from __future__ import annotations

import asyncio

import pytest

from lot_grpc.services.reindex import gate as gate_module
from lot_grpc.services.reindex.gate import ModelGate


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> ModelGate:
    monkeypatch.setattr(gate_module, "_BRIEF_SECONDS", 0.03)
    monkeypatch.setattr(gate_module, "_LOOK_SECONDS", 0.005)
    return ModelGate()


async def test_one_alone_meets_nobody(gate: ModelGate) -> None:
    inside = most = 0
    alone = False
    met: list[int] = []

    async def call() -> None:
        nonlocal inside, most
        async with gate.together():
            assert not alone
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0.002)
            inside -= 1

    async def switch() -> None:
        nonlocal alone
        async with gate.alone():
            alone = True
            met.append(inside)
            await asyncio.sleep(0.002)
            alone = False

    calls = [asyncio.create_task(call()) for _ in range(20)]
    await asyncio.sleep(0.001)
    switches = [asyncio.create_task(switch()) for _ in range(1)]
    calls += [asyncio.create_task(call()) for _ in range(20)]
    await asyncio.gather(*calls, *switches)
    assert met == [0]
    assert most > 1


async def test_a_long_call_is_waited_for_and_others_pass_meanwhile(gate: ModelGate) -> None:
    release = asyncio.Event()

    async def long_call() -> None:
        async with gate.together():
            await release.wait()

    async def switch() -> None:
        async with gate.alone():
            pass

    running = asyncio.create_task(long_call())
    await asyncio.sleep(0)
    switching = asyncio.create_task(switch())
    for _ in range(20):
        async with gate.together():
            pass
        await asyncio.sleep(0.005)
    assert not switching.done()
    release.set()
    await asyncio.gather(running, switching)


async def test_who_gives_up_waiting_leaves_the_gate_open(gate: ModelGate) -> None:
    async def stuck() -> None:
        async with gate.together():
            await asyncio.sleep(60)

    async def switch() -> None:
        async with gate.alone():
            pass

    running = asyncio.create_task(stuck())
    await asyncio.sleep(0)
    for pause in (0.001, 0.04, 0.1):
        switching = asyncio.create_task(switch())
        await asyncio.sleep(pause)
        switching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await switching
        async with gate.together():
            pass
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    async with gate.alone():
        pass


async def test_an_error_inside_opens_it_again(gate: ModelGate) -> None:
    with pytest.raises(ValueError, match="inside"):
        async with gate.alone():
            raise ValueError("inside")
    async with gate.together():
        pass


async def test_calls_that_overlap_and_last_long_do_not_keep_the_gate_open(gate: ModelGate) -> None:
    done = asyncio.Event()
    calls = 0

    async def caller(late: float) -> None:
        nonlocal calls
        await asyncio.sleep(late)
        while not done.is_set():
            async with gate.together():
                calls += 1
                await asyncio.sleep(0.06)  # longer than a brief call

    callers = [asyncio.create_task(caller(number * 0.02)) for number in range(3)]
    await asyncio.sleep(0.05)
    async with gate.alone():
        done.set()
    await asyncio.gather(*callers)
    assert calls >= 3
