"""What no gRPC library sends, from a seed: odd headers, random frames, floods, half-sent calls."""

from __future__ import annotations

import asyncio
import random
import socket
import struct
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, suppress

from tests.server.frames import (
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    PING,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    Connection,
    Pour,
    frame,
    header_block,
)
from tests.server.test_transport import ODD
from tests.server.wire import SAVE

_PATH = SAVE.encode()
_BLOCK = header_block(_PATH)
_CALL = frame(HEADERS, END_HEADERS, 1, _BLOCK)
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_HEAR_SECONDS = 0.05

Case = Callable[[int], None]
"""What is done on a connection to a port."""

_FIRST = {
    "HTTP/1.1": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500),
    "preface alone": _PREFACE,
    "zeros": bytes(70_000),
}
_BODIES = {
    "message longer than its length": b"\0\0\0\0\1abc",
    "message of 4 GiB": b"\0\xff\xff\xff\xffabc",
    "compressed, and not": b"\1\0\0\0\3abc",
    "unknown flag": b"\xff\0\0\0\3abc",
    "two messages": b"\0\0\0\0\0" * 2,
    "half a prefix": b"\0\0",
    "nothing": b"",
}
_FLOODS = {
    "pings": frame(PING, 0, 0, bytes(8)) * 5000,
    "settings": frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 1)) * 5000,
    "window over its bound": frame(WINDOW_UPDATE, 0, 0, b"\x7f\xff\xff\xff") * 2,
    "resets": b"".join(
        frame(HEADERS, END_HEADERS, stream, _BLOCK) + frame(RST_STREAM, 0, stream, bytes(4))
        for stream in range(1, 2001, 2)
    ),
    "headers that never end": frame(HEADERS, 0, 1, _BLOCK)
    + frame(9, 0, 1, b"\0\1a\x7f\x80\x7f" + bytes(16_000)) * 60,
    "data without a call": frame(DATA, 0, 7, bytes(16_000)) * 20,
}


def cases(rng: random.Random, count: int) -> Iterator[tuple[str, Case]]:
    """All that is odd by name, and ``count`` of frames at random."""
    for name in ODD:
        yield name, lambda port, name=name: _odd(port, name)  # type: ignore[misc]
    sent = {name: _PREFACE + frame(SETTINGS, 0, 0) + data for name, data in _FLOODS.items()}
    for name, body in _BODIES.items():
        sent[name] = _PREFACE + frame(SETTINGS, 0, 0) + _CALL + frame(DATA, END_STREAM, 1, body)
    for number in range(count):
        sent[f"frames {number}"] = _PREFACE + _random_frames(rng)
    for name, data in (_FIRST | sent).items():
        yield name, lambda port, data=data: _send(port, data)  # type: ignore[misc]


def _odd(port: int, name: str) -> None:
    with suppress(OSError), Connection(port) as connection:
        connection._socket.settimeout(_HEAR_SECONDS)
        ODD[name](connection)
        while connection.read():
            pass


def _send(port: int, data: bytes) -> None:
    """Send bytes on a connection of their own, and read until it ends or for a moment."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        connection.sendall(data)
        connection.settimeout(_HEAR_SECONDS)
        while connection.recv(4096):
            pass


def _random_frames(rng: random.Random) -> bytes:
    out = [frame(SETTINGS, 0, 0), _CALL] if rng.random() < 0.5 else []
    for _ in range(rng.choice((1, 5, 40))):
        kind = rng.choice((0, 1, 3, 4, 6, 8, 9, rng.randrange(256)))
        payload = rng.randbytes(rng.choice((0, 4, 6, 8, 100)))
        if kind == HEADERS and rng.random() < 0.7:
            block = bytearray(header_block(_PATH, [(rng.randbytes(5), rng.randbytes(30))]))
            for _ in range(rng.randrange(4)):
                block[rng.randrange(len(block))] = rng.randrange(256)
            payload = bytes(block)
        flags = rng.choice((0, 1, 4, 5, rng.randrange(256)))
        out.append(frame(kind, flags, rng.choice((0, 1, 1, 3, 2, rng.randrange(2**31))), payload))
    return b"".join(out)


async def half_sent(port: int, count: int, size: int, check: Callable[[], Awaitable[None]]) -> None:
    """Requests of ``size`` bytes that stop 5 bytes before their end, all at once."""
    calls = [Pour(_PATH, size, size - 5) for _ in range(count)]
    tasks = [asyncio.create_task(call.run(port)) for call in calls]
    try:
        for _ in range(20):
            await asyncio.sleep(0.1)
            if all(call.sent >= size - 5 for call in calls):
                break
        await check()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def many_connections(port: int, count: int, check: Callable[[], Awaitable[None]]) -> None:
    """Connections that stay open and say nothing."""
    with ExitStack() as stack:
        for _ in range(count):
            stack.enter_context(Connection(port))
        await check()
