"""HTTP/2 by hand, on a plain socket: what no gRPC library sends."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Sequence
from typing import Self

DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
END_STREAM, END_HEADERS = 1, 4
CHUNK = 16_384

Pair = tuple[bytes, bytes]


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return (
        struct.pack(">I", len(payload))[1:]
        + bytes([kind, flags])
        + struct.pack(">I", stream)
        + payload
    )


def _string(value: bytes) -> bytes:
    """As HPACK has a string without Huffman coding."""
    size = len(value)
    if size < 127:
        return bytes([size]) + value
    out, rest = [127], size - 127
    while rest >= 128:
        out.append(rest % 128 + 128)
        rest //= 128
    return bytes([*out, rest]) + value


def header_block(path: bytes, extra: Sequence[Pair] = (), method: bytes = b"POST") -> bytes:
    pairs = [
        (b":method", method),
        (b":scheme", b"http"),
        (b":path", path),
        (b":authority", b"localhost"),
        (b"content-type", b"application/grpc"),
        (b"te", b"trailers"),
    ]
    replaced = dict(extra)
    kept = [(key, replaced.pop(key, value)) for key, value in pairs]
    return b"".join(
        b"\0" + _string(key) + _string(value) for key, value in [*kept, *replaced.items()]
    )


class Connection:
    """One connection to a server, after the preface."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        self._socket.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0))
        self._next = 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def read(self) -> bytes:
        """Some bytes; none once the server has closed the connection."""
        try:
            return self._socket.recv(4096)
        except ConnectionError:
            return b""

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def call(
        self, path: bytes, extra: Sequence[Pair] = (), *, method: bytes = b"POST", body: bytes = b""
    ) -> None:
        """Open a stream with a whole message; nothing waits for the answer."""
        block = header_block(path, extra, method)
        pieces = [block[start : start + CHUNK] for start in range(0, len(block), CHUNK)]
        out = []
        for index, piece in enumerate(pieces):
            last = index == len(pieces) - 1
            out.append(
                frame(HEADERS if index == 0 else 9, END_HEADERS if last else 0, self._next, piece)
            )
        message = b"\0" + struct.pack(">I", len(body)) + body
        self.send(b"".join(out) + frame(DATA, END_STREAM, self._next, message))
        self._next += 2


class Pour:
    """A call whose message stops before its end, on a connection of its own."""

    def __init__(self, path: bytes, size: int, sent: int) -> None:
        self.sent = 0
        self._path, self._size, self._most = path, size, sent
        self._window = {0: 65_530, 1: 65_530}  # without the prefix of the message
        self._more = asyncio.Event()
        self._ended = False

    async def run(self, port: int) -> None:
        """Send what the server's windows allow, and wait until it ends the call."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        start = frame(HEADERS, END_HEADERS, 1, header_block(self._path))
        writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0) + start)
        prefix = b"\0" + struct.pack(">I", self._size)
        writer.write(frame(DATA, 0, 1, prefix))
        reading = asyncio.create_task(self._read(reader, writer))
        try:
            while self.sent < self._most and not self._ended:
                self._more.clear()
                room = min(*self._window.values(), CHUNK, self._most - self.sent)
                if room <= 0:
                    await self._more.wait()
                    continue
                writer.write(frame(DATA, 0, 1, bytes(room)))
                self.sent += room
                self._window = {key: value - room for key, value in self._window.items()}
                await writer.drain()
            await reading
        except ConnectionError:
            pass
        finally:
            reading.cancel()
            writer.close()

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readexactly(9)
                payload = await reader.readexactly(int.from_bytes(head[:3], "big"))
                kind, flags, stream = head[3], head[4], int.from_bytes(head[5:], "big")
                if kind == WINDOW_UPDATE:
                    self._window[stream] += int.from_bytes(payload, "big")
                    self._more.set()
                elif kind == SETTINGS and not flags:
                    for at in range(0, len(payload), 6):
                        name, value = struct.unpack(">HI", payload[at : at + 6])
                        if name == 4:
                            self._window[1] += value - 65_535
                            self._more.set()
                    writer.write(frame(SETTINGS, 1, 0))
                elif kind == PING and not flags:
                    writer.write(frame(PING, 1, 0, payload))
                elif kind in (RST_STREAM, GOAWAY) or (kind == HEADERS and flags & END_STREAM):
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self._ended = True
            self._more.set()
