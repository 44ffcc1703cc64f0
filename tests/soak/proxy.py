"""A proxy on loopback that cuts connections, in the middle of messages too, and stalls them."""

from __future__ import annotations

import asyncio
import random
import socket
import struct
from typing import Literal

Cut = Literal["RST", "FIN"]

_CHUNK = 16 * 1024


class Link:
    """A connection of a client and the one to the server that belongs to it."""

    def __init__(
        self,
        near: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        far: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        dice: random.Random,
    ) -> None:
        self._near, self._far = near, far
        self._dice = dice
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._armed: Cut | None = None

    async def carry(self) -> None:
        """Both ways, until either end is gone or it is cut."""
        ways = [
            asyncio.create_task(self._pump(self._near[0], self._far[1])),
            asyncio.create_task(self._pump(self._far[0], self._near[1])),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            for _, writer in (self._near, self._far):
                if self._armed == "RST":
                    _reset(writer)
                writer.close()

    def cut(self, how: Cut) -> None:
        """Cut it in the middle of what comes next."""
        self._armed = how

    async def stall(self, seconds: float) -> None:
        """Hold everything back for a while."""
        self._flowing.clear()
        await asyncio.sleep(seconds)
        self._flowing.set()

    def release(self) -> None:
        """Let it go on."""
        self._flowing.set()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while chunk := await reader.read(_CHUNK):
                await self._flowing.wait()
                if self._armed:
                    writer.write(chunk[: self._dice.randrange(len(chunk))])
                    await writer.drain()
                    return
                writer.write(chunk)
                await writer.drain()
        except OSError:
            return  # one end is gone: the other one's turn


class Proxy:
    """Listens on a port of its own and carries everything to ``target``.

    Attributes:
        port: where it listens.
        cuts, stalls: how many there were.
    """

    def __init__(self, target: int, seed: int) -> None:
        self._target = target
        self._dice = random.Random(seed)
        self._links: set[Link] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.port = 0
        self.cuts = self.stalls = 0

    async def start(self) -> None:
        """Listen on a free port."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """End all connections and listen no more."""
        assert self._server is not None
        self._server.close()
        for task in [*self._tasks]:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut_one(self, how: Cut) -> bool:
        """Cut a connection. False: there is none."""
        if not self._links:
            return False
        self._any().cut(how)
        self.cuts += 1
        return True

    def stall_one(self, seconds: float) -> bool:
        """Hold a connection back for a while. False: there is none."""
        if not self._links:
            return False
        self._keep(asyncio.create_task(self._any().stall(seconds)))
        self.stalls += 1
        return True

    def release(self) -> None:
        """Let all go on that are held back."""
        for link in self._links:
            link.release()

    def _any(self) -> Link:
        return self._dice.choice([*self._links])

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._keep(task)
        try:
            far = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:  # the server is down: so is this
            _reset(writer)
            writer.close()
            return
        link = Link((reader, writer), far, self._dice)
        self._links.add(link)
        try:
            await link.carry()
        except asyncio.CancelledError:
            return  # the run is over
        finally:
            self._links.discard(link)


def _reset(writer: asyncio.StreamWriter) -> None:
    """Have its close send RST, and drop what was not sent."""
    held = writer.get_extra_info("socket")
    if held is not None:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
