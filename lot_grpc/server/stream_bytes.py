"""Ends streams that stall in the middle of messages if these together take too much memory.

A stream may wait for its next message indefinitely, and gRPC does not show whether part of it has
arrived. The kernel does: the connection has received more bytes than its complete messages have.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from lot_grpc.domain.errors import OverloadedError
from lot_grpc.server.call import Call

_LOOK_SECONDS: Final = 0.25
_BYTES_RECEIVED: Final = 128
"""Where ``tcpi_bytes_received`` is in the ``tcp_info`` of Linux."""
_MANY: Final = 1000
"""From this many connections on, closed ones are dropped even while no stream is open."""
_FRAMING: Final = 2048
"""Maximum overhead of a message on the wire in bytes, in addition to 1/64 of its size."""


class StreamBytes:
    """Counts the bytes of incomplete messages on connections with request streams.

    Args:
        streams: the open streams.
        most: how many such bytes are allowed; beyond that, the streams of the connections with the
            most of them end with OVERLOADED.
    """

    def __init__(self, streams: Collection[Call], most: int) -> None:
        self._streams = streams
        self._most = most
        self._whole: dict[str, int] = {}
        """By connection, the bytes of its complete messages."""

    def arrived(self, peer: str, size: int) -> None:
        """Count a complete message of a connection."""
        taken = size + size // 64 + _FRAMING
        self._whole[peer] = self._whole.get(peer, 0) + taken

    async def watch(self) -> None:
        """Check periodically, until cancelled."""
        clock = asyncio.get_running_loop().time
        while True:
            began = clock()
            await self.look()
            await asyncio.sleep(max(_LOOK_SECONDS, 10 * (clock() - began)))

    async def look(self) -> None:
        """End streams if there are too many bytes of incomplete messages."""
        waiting = [call for call in self._streams if call.reader is not None]
        if not waiting and len(self._whole) < _MANY:
            return
        peers = {*self._whole, *(call.peer for call in waiting)}
        now = await asyncio.to_thread(received, peers)  # 50 us per connection
        self._whole = {peer: min(self._whole.get(peer, 0), size) for peer, size in now.items()}
        partial = {
            call.peer: now[call.peer] - self._whole[call.peer]
            for call in waiting
            if call.peer in now
        }
        excess = sum(partial.values()) - self._most
        for peer in sorted(partial, key=partial.__getitem__, reverse=True):
            if excess <= 0:
                return
            excess -= partial[peer]
            self._whole[peer] = now[peer]
            for call in waiting:
                if call.peer == peer and call.reader is not None:
                    call.reader.interrupt(self._too_much())

    def _too_much(self) -> OverloadedError:
        return OverloadedError(
            f"streams hold {self._most:,} bytes of incomplete messages, the most this server "
            "allows; reopen the stream and resume after the last acknowledged message",
            limit=self._most,
        )


def received(peers: Collection[str]) -> dict[str, int]:
    """The bytes that connections of this process have received, by their name in gRPC."""
    names = {_plain(peer): peer for peer in peers}
    found = {}
    for link in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            if not link.is_socket():
                continue
            with socket.socket(fileno=os.dup(int(link.name))) as one:
                if one.family not in (socket.AF_INET, socket.AF_INET6):
                    continue
                address = one.getpeername()
                name = names.get(f"{address[0].removeprefix('::ffff:')}:{address[1]}")
                if name is not None:
                    info = one.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _BYTES_RECEIVED + 8)
                    found[name] = struct.unpack_from("=Q", info, _BYTES_RECEIVED)[0]
    return found


def _plain(peer: str) -> str:
    """``ipv6:%5B::1%5D:50051`` as ``::1:50051``."""
    return unquote(peer).partition(":")[2].replace("[", "").replace("]", "")
