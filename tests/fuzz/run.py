"""A fuzz against a server: its calls in rounds, and after each whether all is well."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from typing import Any

import grpc
import grpc.aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from tests.e2e.process import Served
from tests.fuzz import transport
from tests.fuzz.calls import RPCS, SECONDS, Attempt, Outcome, attempt, make
from tests.fuzz.keys import ADMIN, Keyed, Keys, not_allowed
from tests.fuzz.making import NAMESPACES, Maker
from tests.fuzz.memory import Memory
from tests.server.examples import prepare
from tests.server.service import OPTIONS, Lot
from tests.soak.children import logged_errors

MIB = 2**20
MOST_MEMORY = 2048 * MIB
"""What server and parser may take: the model, a store, a parser's 512 MiB, and requests."""
MOST_LOG_BYTES = 1000
"""What a call may write to the log, on the average of a round."""
SLOW_SECONDS = 60.0
"""From which on a call is wrong. To seed a namespace takes some 10 s of two processors."""
_QUARTERS = 4
_ENOUGH_ROUNDS = 20
_MOST_GROWTH = 4 / 3
"""How much more may be taken in the last quarter than in the second, when caches are full."""
_TOGETHER = 16
OFFLINE = {"LOT_EMBEDDING_DOWNLOAD": "false"}
"""A setting of the server: a call may happen to name a model that could be downloaded."""


@dataclass
class Row:
    """What came of an RPC's calls; the worst of them by number."""

    codes: Counter[str] = field(default_factory=Counter)
    slowest: tuple[float, int] = (0.0, -1)
    grown: tuple[int, int] = (0, -1)


@dataclass
class Fuzz:
    """One run against a server that runs.

    Attributes:
        wrong: what should not be, each kind once.
        rows: by RPC.
        keys: who calls, if the server has authentication.
        made: how many calls.
        most_memory: bytes that the server and its parser took at most.
        resident: what they took after each round.
    """

    served: Served
    seed: int
    say: Callable[[str], None]
    rpcs: Sequence[str] = tuple(RPCS)
    keys: Keys | None = None
    wrong: dict[str, str] = field(default_factory=dict)
    rows: dict[str, Row] = field(default_factory=dict)
    made: int = 0
    most_memory: int = 0
    resident: list[int] = field(default_factory=list)
    _maker: Maker = field(default_factory=Maker)
    _kept: list[tuple[str, str]] = field(default_factory=list)
    _log_seen: int = 0

    async def run(
        self, calls: int, seconds: float, *, transport_cases: int = 60, half_sent: int = 60
    ) -> None:
        """``calls`` in all, or what ``seconds`` allow."""
        end = time.monotonic() + 0.8 * seconds  # the rest is for what is below calls
        await self._prepare()
        with (
            grpc.insecure_channel(self.served.address, OPTIONS) as channel,
            Memory(self.served.process.pid) as memory,
        ):
            await self._check("the start")
            rounds = -(-calls // len(self.rpcs))
            size = max(1, 600 // len(self.rpcs))
            for start in range(0, rounds, size):
                if time.monotonic() > end or not self._alive:
                    break
                numbers = range(start, min(start + size, rounds))
                todo = [(rpc, number) for number in numbers for rpc in self.rpcs]
                together = _TOGETHER if start // size % 4 == 3 else 1
                await self._round(channel, memory, todo, together, end)
                self.resident.append(memory.start())
            await self._transport(transport_cases, half_sent)
            await self._find_kept()
            self._compare_memory()
            self.most_memory = memory.most
            if memory.most > MOST_MEMORY:
                self._note("memory", f"{memory.most // MIB} MiB at most")

    async def replay(self, number: int) -> None:
        """Make one call of each RPC again, and say what came of it."""
        await self._prepare()
        with (
            grpc.insecure_channel(self.served.address, OPTIONS) as channel,
            Memory(self.served.process.pid) as memory,
        ):
            for rpc in self.rpcs:
                it = attempt(self._maker, self.seed, rpc, number)
                self.say(it.text)
                self.say(str(await self._call(channel, it, memory)))

    async def _prepare(self) -> None:
        async with self._connected() as channel:
            for namespace in reversed(NAMESPACES):  # examples name what is in the first
                await prepare(Lot(channel, namespace))

    @property
    def _alive(self) -> bool:
        return self.served.process.poll() is None

    def _note(self, kind: str, text: str) -> None:
        if kind not in self.wrong:
            self.wrong[kind] = text
            self.say(f"wrong: {kind}: {text}")

    def _connected(self) -> grpc.aio.Channel:
        """A connection of one that may do everything."""
        key = Keyed(self.keys.metadata(ADMIN) if self.keys else ())
        return grpc.aio.insecure_channel(
            self.served.address, options=OPTIONS, interceptors=[key] if self.keys else None
        )

    # --- calls ------------------------------------------------------------------------------------

    async def _round(
        self,
        channel: grpc.Channel,
        memory: Memory,
        todo: Sequence[tuple[str, int]],
        together: int,
        end: float,
    ) -> None:
        first = self.made
        for at in range(0, len(todo), together):
            if time.monotonic() > end or not self._alive:
                break
            some = [attempt(self._maker, self.seed, *one) for one in todo[at : at + together]]
            await asyncio.gather(
                *(self._call(channel, it, None if together > 1 else memory) for it in some)
            )
        await self._check(f"{self.made} calls", self.made - first)

    async def _call(self, channel: grpc.Channel, it: Attempt, memory: Memory | None) -> Outcome:
        row = self.rows.setdefault(it.rpc, Row())
        before = memory.start() if memory else 0
        who = self._caller(it)
        metadata = self.keys.metadata(who) if self.keys else ()
        outcome = await asyncio.to_thread(make, channel, it, self._maker, metadata)
        self.made += 1
        row.codes[outcome.code] += 1
        row.slowest = max(row.slowest, (outcome.seconds, it.number))
        if memory:
            row.grown = max(row.grown, (memory.most_since() - before, it.number))
        if outcome.wrong:
            self._note(f"{it.rpc} {outcome.wrong[:60]}", f"{it.text}: {outcome.wrong}")
        if self.keys and it.messages and (wrong := not_allowed(who, RPCS[it.rpc], outcome.code)):
            self._note(f"{it.rpc} by {who or 'nobody'}", f"{it.text}: {wrong}")
        if outcome.seconds > SLOW_SECONDS:
            self._note(f"{it.rpc} is slow", f"{it.text}: {outcome.seconds:.0f} s")
        return outcome

    def _caller(self, it: Attempt) -> str:
        """Whose key a call carries: the same for the same seed."""
        if self.keys is None:
            return ""
        return self.keys.choose(random.Random(f"{self.seed}/{it.rpc}/{it.number}/key"))

    # --- whether all is well ----------------------------------------------------------------------

    async def _check(self, when: str, calls: int = 0) -> None:
        """Healthy, over a connection of its own; saves and recalls; its log is as it should be."""
        try:
            async with self._connected() as channel:
                health: Any = health_pb2_grpc.HealthStub(channel)
                answer = await health.Check(health_pb2.HealthCheckRequest(), timeout=SECONDS)
                if answer.status != health_pb2.HealthCheckResponse.SERVING:
                    self._note("health", f"{answer.status} after {when}")
                lot = Lot(channel, "kept")
                text = f"kept number {len(self._kept)}"
                memory = await lot.memories.CreateMemory(memory={"content": text})
                pattern = await lot.patterns.SavePattern(pattern={"task": text})
                self._kept.append((memory.memory.memory_id, pattern.pattern.pattern_id))
                hits = (await lot.memories.SearchMemories(query=text, limit=5)).hits
                if all(hit.memory.content != text for hit in hits):
                    self._note("recall", f"{text!r} was not found after {when}")
        except grpc.aio.AioRpcError as error:
            self._note("serving", f"after {when}: {error.code().name} {error.details()}")
        self._read_log(calls)

    def _read_log(self, calls: int) -> None:
        with self.served.log.open(errors="replace") as log:
            log.seek(self._log_seen)
            text = log.read()
            self._log_seen = log.tell()
        for line in logged_errors(text):
            self._note(f"log {_shape(line)}", line)
        for line in text.splitlines():
            if "Traceback" in line:
                self._note(f"traceback {_shape(line)}", line[:300] + " … " + line[-700:])
        if calls and len(text) > MOST_LOG_BYTES * calls:
            self._note("log size", f"{len(text) // calls} bytes a call")

    async def _find_kept(self) -> None:
        async with self._connected() as channel:
            lot = Lot(channel, "kept")
            for index, (memory_id, pattern_id) in enumerate(self._kept):
                try:
                    memory = (await lot.memories.GetMemory(memory_id=memory_id)).memory
                    pattern = (await lot.patterns.GetPattern(pattern_id=pattern_id)).pattern
                    if {memory.content, pattern.task} != {f"kept number {index}"}:
                        self._note("changed", f"{memory_id}, {pattern_id}")
                except grpc.aio.AioRpcError as error:
                    self._note("lost", f"{memory_id}, {pattern_id}: {error.details()}")

    def levels(self) -> list[int]:
        """Bytes in each quarter of the rounds: the median, since a parser comes and goes."""
        count = len(self.resident)
        if count < _QUARTERS:
            return self.resident
        bounds = [count * part // _QUARTERS for part in range(_QUARTERS + 1)]
        return [int(median(self.resident[a:b])) for a, b in pairwise(bounds)]

    def _compare_memory(self) -> None:
        if len(self.resident) < _ENOUGH_ROUNDS:
            return
        _, second, _, last = self.levels()
        if last > second * _MOST_GROWTH:
            self._note("memory", f"{second // MIB} MiB in the second quarter, {last // MIB} later")

    # --- below calls ------------------------------------------------------------------------------

    async def _transport(self, count: int, half_sent: int) -> None:
        port = self.served.port
        for name, case in transport.cases(random.Random(f"{self.seed}/transport"), count):
            if self._alive:
                await asyncio.to_thread(case, port)
                await self._still_serves(name)
        if self._alive:
            await transport.many_connections(port, 200, lambda: self._still_serves("200 idle"))
            await transport.half_sent(
                port, half_sent, 4 * MIB, lambda: self._still_serves("half-sent requests")
            )
            await self._check("the transport cases")

    async def _still_serves(self, name: str) -> None:
        try:
            async with self._connected() as channel:
                stub: Any = health_pb2_grpc.HealthStub(channel)
                await stub.Check(health_pb2.HealthCheckRequest(), timeout=SECONDS)
        except grpc.aio.AioRpcError as error:
            self._note(f"transport {name}", f"{error.code().name} {error.details()}")

    # --- the report -------------------------------------------------------------------------------

    def table(self) -> list[str]:
        """A line an RPC, the slowest first."""
        lines = [f"{'RPC':46} {'calls':>6} {'ms':>7} {'#':>5} {'MiB':>6} {'#':>5}  codes"]
        for rpc, row in sorted(self.rows.items(), key=lambda one: one[1].slowest, reverse=True):
            codes = ", ".join(f"{code} {count}" for code, count in row.codes.most_common())
            lines.append(
                f"{rpc:46} {row.codes.total():6} {row.slowest[0] * 1000:7.0f} {row.slowest[1]:5} "
                f"{row.grown[0] / MIB:6.1f} {row.grown[1]:5}  {codes}"
            )
        return lines

    def finish(self) -> None:
        """Stop the server; it has to end by itself, with 0."""
        code = self.served.stop()
        if code:
            self._note("stop", f"exit code {code}")
        self._read_log(0)


def _shape(line: str) -> str:
    """What lines of one kind have in common: the exception, or what was said."""
    try:
        entry = json.loads(line)
    except ValueError:
        return line[:80]
    ended = str(entry.get("exception", "")).strip().rpartition("\n")[2]
    return ended.partition(":")[0] or f"{entry.get('method', '')} {entry.get('message', '')}"[:80]
