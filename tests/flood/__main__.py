"""Measures how much a flood of one principal slows down another.

    python -m tests.flood [--seconds 20] [--only fair | unfair | throughput]

A steady principal makes 20 recalls and 20 saves a second, first alone, then beside a flood that
keeps 64 or 256 calls under way, or is refused by its rate limit; with turns, and without. Prints
the 50th, 95th and 99th percentile, and the ratio to those alone. Then compares how many calls a
flood that is alone gets answered with turns and without. Takes eight minutes.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import grpc.aio
import uvloop

from tests.flood.calls import METADATA, recall, save, stub

_PER_SECOND = 20
_FILLED = 300
_REFUSED_ABOVE = 50.0
_FLOODS = (64, 256)
_WARM_SECONDS = 4.0
"""How long a flood, or the steady calls alone, last before those are measured."""
_ROUNDS = 4


@contextmanager
def _server(calls_per_second: float, fair: str) -> Iterator[int]:
    with tempfile.TemporaryDirectory() as folder:
        command = ["-m", "tests.flood.server", folder, str(calls_per_second), fair]
        child = subprocess.Popen(
            [sys.executable, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            yield int(child.stdout.readline())
        finally:
            child.stdin.close()
            try:
                child.wait(20)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()


async def _steady(patterns: Any, seconds: float) -> dict[str, list[float]]:
    """The times of calls that begin when they are due, however long earlier ones take."""
    times: dict[str, list[float]] = {"recall": [], "save": []}

    async def call(kind: str, number: int) -> None:
        began = time.perf_counter()
        text = f"steady {kind} {began} {number}"
        await (recall if kind == "recall" else save)(patterns, text, METADATA["steady"])
        times[kind].append(time.perf_counter() - began)

    tasks = []
    began = time.perf_counter()
    for number in range(int(seconds * _PER_SECOND)):
        await asyncio.sleep(max(0.0, began + number / _PER_SECOND - time.perf_counter()))
        tasks += [asyncio.create_task(call(kind, number)) for kind in times]
    await asyncio.gather(*tasks)
    return times


def _percentiles(times: list[float]) -> tuple[float, float, float]:
    hundredths = statistics.quantiles(times, n=100)
    return hundredths[49], hundredths[94], hundredths[98]


class Table:
    """Prints lines, each beside that of the principal alone."""

    def __init__(self) -> None:
        self._alone: dict[str, tuple[float, float, float]] = {}

    def alone(self, times: dict[str, list[float]]) -> None:
        self._alone = {kind: _percentiles(own) for kind, own in times.items()}
        self.add("alone", times)

    def add(self, name: str, times: dict[str, list[float]], flood: str = "") -> None:
        for kind, own in times.items():
            p50, p95, p99 = _percentiles(own)
            base50, base95, base99 = self._alone[kind]
            print(
                f"  {name:24} {kind:7} p50 {p50 * 1e3:7.1f}  p95 {p95 * 1e3:7.1f}"
                f"  p99 {p99 * 1e3:7.1f} ms  x {p50 / base50:5.2f} {p95 / base95:5.2f}"
                f" {p99 / base99:5.2f}  {flood}",
                flush=True,
            )


async def _flood(port: int, clients: int, seconds: float) -> tuple[float, float]:
    """How many calls a second of a flood were answered, and refused."""
    command = ["-m", "tests.flood.client", str(port), str(clients), str(seconds)]
    child = await asyncio.create_subprocess_exec(
        sys.executable, *command, stdout=asyncio.subprocess.PIPE
    )
    try:
        out, _ = await asyncio.wait_for(child.communicate(), seconds + 90)
    finally:
        if child.returncode is None:
            child.kill()
    answered, refused = (int(count) / seconds for count in out.split())
    return answered, refused


async def _beside(port: int, patterns: Any, clients: int, seconds: float) -> tuple[Any, str]:
    async with asyncio.TaskGroup() as group:
        flood = group.create_task(_flood(port, clients, seconds + _WARM_SECONDS))
        await asyncio.sleep(_WARM_SECONDS)
        times = await _steady(patterns, seconds)
    answered, refused = flood.result()
    return times, f"flood: {answered:.0f}/s answered, {refused:.0f}/s refused"


async def _compare(seconds: float) -> None:
    """The throughput of a principal that is alone, with turns relative to without."""
    print("alone, answered with turns / without", flush=True)
    with _server(0.0, "fair") as fair, _server(0.0, "unfair") as unfair:
        for clients in (16, *_FLOODS):
            ratios = []
            for number in range(_ROUNDS):
                rates = {}
                for port in (fair, unfair) if number % 2 else (unfair, fair):
                    rates[port], _ = await _flood(port, clients, seconds / 2)
                ratios.append(rates[fair] / rates[unfair])
                print(f"  {clients} calls: {rates[fair]:.0f}/s, {rates[unfair]:.0f}/s", flush=True)
            print(f"  {clients} calls: x {statistics.median(ratios):.2f} (median)", flush=True)


async def _measure(fair: str, seconds: float) -> None:
    print("with turns" if fair == "fair" else "without turns", flush=True)
    for limit in (0.0, _REFUSED_ABOVE):
        with _server(limit, fair) as port:
            async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
                patterns = stub(channel)
                for number in range(_FILLED):
                    await save(patterns, f"filling {number}", METADATA["steady"])
                await _steady(patterns, _WARM_SECONDS)  # the first of each kind create collections
                table = Table()
                table.alone(await _steady(patterns, seconds))
                for clients in _FLOODS if not limit else _FLOODS[-1:]:
                    name = f"{clients} calls" + (f", {limit:g}/s allowed" if limit else "")
                    table.add(name, *await _beside(port, patterns, clients, seconds))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=20.0, help="of each measurement")
    parser.add_argument("--only", choices=("fair", "unfair", "throughput"))
    options = parser.parse_args()
    for fair in ("unfair", "fair"):
        if options.only in (None, fair):
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(_measure(fair, options.seconds))
    if options.only in (None, "throughput"):
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_compare(options.seconds))


if __name__ == "__main__":
    main()
