"""A soak from its start to its verdict."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine
from operator import attrgetter
from pathlib import Path

import pytest
from lot_client import LotClient

from tests.e2e.process import ROOT
from tests.soak import checks, content, memory
from tests.soak.books import Asked, asked, recorded, told
from tests.soak.chaos import SERVERS_UNTIL, Blow, schedule
from tests.soak.checks_asked import check_asked
from tests.soak.children import Client, Server
from tests.soak.collect import collect
from tests.soak.journal import faults
from tests.soak.memory import Sample
from tests.soak.proxy import Proxy
from tests.soak.stored import Stored
from tests.soak.tally import Tally
from tests.soak.verdict import Verdict, told_counts
from tests.soak.watcher import LAST

ROLES = {"agent": 4, "writer": 2, "watcher": 2, "replayer": 1}
_FINISH_SECONDS = 150.0
_PROGRESS_SECONDS = 5.0
_LONGEST_STALL = 6.0


class Soak:
    """One run in a folder of its own."""

    def __init__(self, folder: Path, seconds: float, seed: int, say: Callable[[str], None]) -> None:
        self._folder, self._seconds, self._seed, self._say = folder, seconds, seed, say
        self._server = Server(folder)
        self._proxy = Proxy(self._server.port, seed)
        self._clients: list[Client] = []
        self._samples: list[Sample] = []
        self._wrong: list[str] = []
        self._pending: set[asyncio.Task[None]] = set()
        self._tally = Tally()
        self._began = time.monotonic()

    @property
    def _now(self) -> float:
        return time.monotonic() - self._began

    async def run(self) -> Verdict:
        """Start everything, hurt it, let it finish, check it, end everything."""
        try:
            await self._prepare()
            await self._hurt()
            await self._finish()
            await self._check()
        except pytest.fail.Exception as failure:  # the server did not start
            self._wrong.append(str(failure))
        finally:
            for task in self._pending:
                task.cancel()
            for client in self._clients:
                client.end()
            await asyncio.to_thread(self._server.end)
            await self._proxy.stop()
        return self._verdict()

    # --- start ----------------------------------------------------------------------------------

    async def _prepare(self) -> None:
        await asyncio.to_thread(self._server.start)
        await self._proxy.start()
        with LotClient(f"127.0.0.1:{self._server.port}") as client:
            for name in content.HOT:
                await asyncio.to_thread(client.save_pattern, content.task(name), pattern_id=name)
        address = f"127.0.0.1:{self._proxy.port}"
        for role, count in ROLES.items():
            for number in range(count):
                name = f"{role}-{number}"
                self._clients.append(Client(role, name, address, self._folder, self._seed))
        await self._start_clients()
        self._began = time.monotonic()

    async def _start_clients(self) -> None:
        """Watchers first: what is deleted before they watch is never told to them."""
        watchers = [client for client in self._clients if client.role == "watcher"]
        for watcher in watchers:
            watcher.start()
        until = time.monotonic() + _FINISH_SECONDS
        while not all(watcher.entries() for watcher in watchers) and time.monotonic() < until:
            await asyncio.sleep(0.1)
        for client in self._clients:
            if client.role != "watcher":
                client.start()

    # --- chaos ----------------------------------------------------------------------------------

    async def _hurt(self) -> None:
        blows = schedule(self._seed, self._seconds)
        sampler = asyncio.create_task(self._sample())
        shower = asyncio.create_task(self._show())
        server_work: asyncio.Task[None] | None = None
        try:
            for blow in blows:
                await asyncio.sleep(max(0.0, blow.at - self._now))
                self._watch_over()
                if self._now >= SERVERS_UNTIL * self._seconds:
                    (self._folder / "calm").touch()
                if blow.action in {"stop server", "kill server"}:
                    if server_work is not None:
                        await server_work
                    server_work = asyncio.create_task(self._restart(blow))
                else:
                    self._strike(blow)
            await asyncio.sleep(max(0.0, self._seconds - self._now))
            if server_work is not None:
                await server_work
        finally:
            sampler.cancel()
            shower.cancel()

    def _strike(self, blow: Blow) -> None:
        if blow.action == "cut":
            self._proxy.cut_one("RST" if blow.how < 0.5 else "FIN")
        elif blow.action == "stall":
            self._proxy.stall_one(blow.how**2 * _LONGEST_STALL)
        else:
            client = self._clients[int(blow.how * len(self._clients))]
            if client.kill():
                self._later(self._revive(client, blow.how * 10 % 2))

    async def _revive(self, client: Client, seconds: float) -> None:
        await asyncio.sleep(seconds)
        client.start()

    async def _restart(self, blow: Blow) -> None:
        end = self._server.stop if blow.action == "stop server" else self._server.kill
        await asyncio.to_thread(end)
        await asyncio.sleep(blow.how * 2)
        await asyncio.to_thread(self._server.start)

    def _later(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._pending.add(task)
        task.add_done_callback(self._pending.discard)

    def _watch_over(self) -> None:
        """Clients and the server end only when we end them."""
        self._server.check_alive()
        for client in self._clients:
            if client.code is not None:
                self._wrong.append(f"{client.name} ended with {client.code}:\n{client.tail()}")
                client.end()

    async def _sample(self) -> None:
        while True:
            if self._server.pid:
                taken = await asyncio.to_thread(memory.sample, self._server.pid, self._now)
                if taken is not None:
                    self._samples.append(taken)
            await asyncio.sleep(1)

    async def _show(self) -> None:
        while True:
            await asyncio.sleep(_PROGRESS_SECONDS)
            size = self._samples[-1].resident if self._samples else 0
            counts = await asyncio.to_thread(self._counts)
            wrong = f" · WRONG so far: {len(self._wrong)}" if self._wrong else ""
            self._say(f"{self._now:5.0f} s  {told_counts(counts)} · {size / 2**20:,.0f} MB{wrong}")

    def _counts(self) -> dict[str, int]:
        self._tally.read(self._folder)
        return self._tally.counts | {
            "cuts": self._proxy.cuts,
            "stalls": self._proxy.stalls,
            "kills": sum(client.kills for client in self._clients),
            "server kills": self._server.kills,
            "server stops": self._server.stops,
        }

    # --- the end --------------------------------------------------------------------------------

    async def _finish(self) -> None:
        """Nothing goes wrong any more: everything that was begun comes to its end."""
        self._proxy.release()
        await asyncio.gather(*self._pending)
        (self._folder / "over").touch()
        self._say("chaos is over; everyone finishes")
        await self._await_ends([c for c in self._clients if c.role != "watcher"])
        with LotClient(f"127.0.0.1:{self._server.port}") as client:
            await asyncio.to_thread(client.create_memory, "the end", memory_id=LAST)
        await self._await_ends([c for c in self._clients if c.role == "watcher"])

    async def _await_ends(self, clients: list[Client]) -> None:
        until = time.monotonic() + _FINISH_SECONDS
        while any(client.running for client in clients) and time.monotonic() < until:
            await asyncio.sleep(0.2)
        for client in clients:
            if client.running:
                self._wrong.append(f"{client.name} did not finish within {_FINISH_SECONDS:g} s")
            elif client.code:
                self._wrong.append(f"{client.name} ended with {client.code}:\n{client.tail()}")
            client.end()

    async def _check(self) -> None:
        with LotClient(f"127.0.0.1:{self._server.port}", deadline=120) as client:
            memories = [LAST, *(ask.request_id for ask in self._asks() if ask.what == "memory")]
            stored = await asyncio.to_thread(collect, client, memories)
        await asyncio.to_thread(self._server.stop)
        self._server.stops -= 1  # that one belongs to the end
        self._wrong += self._server.wrong
        self._wrong += self._judge(stored)
        self._wrong += await asyncio.to_thread(self._check_offline, stored)
        self._wrong += [f"the server logged: {line}" for line in self._server.logged_errors()]

    def _asks(self) -> list[Asked]:
        """All requests of all writers."""
        writers = [client for client in self._clients if client.role == "writer"]
        return [ask for writer in writers for ask in asked(writer.entries()).values()]

    def _judge(self, stored: Stored) -> list[str]:
        asks = self._asks()
        wrong = checks.check_episodes(stored) + check_asked(asks, stored)
        for client in self._clients:
            entries = client.entries()
            wrong += [f"{client.name} saw: {fault}" for fault in faults(entries)]
            if client.role == "agent":
                wrong += checks.check_recorded(recorded(entries).values(), stored)
            elif client.role == "watcher":
                told_ = checks.check_told(told(entries), asks, stored)
                wrong += [f"{client.name}: {one}" for one in told_]
        return wrong

    def _check_offline(self, stored: Stored) -> list[str]:
        command = [sys.executable, "-m", "tests.soak.offline", str(self._folder / "data")]
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300
        )
        if done.returncode:
            return [f"the store, without a server: {done.stderr[-1500:]}"]
        return checks.check_offline(json.loads(done.stdout), stored)

    def _verdict(self) -> Verdict:
        growth: dict[str, float] = {}
        try:
            for what in ("resident", "anonymous"):
                growth[what] = memory.growth(self._samples, self._seconds, attrgetter(what))
        except ValueError as error:
            self._wrong.append(str(error))
        self._wrong += memory.grown_too_much(growth, self._seconds)
        return Verdict(self._counts(), growth, self._seed, self._now, self._wrong)
