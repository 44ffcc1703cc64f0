"""The port for Prometheus answers whatever is sent to it, and whatever the calls do."""

from __future__ import annotations

import asyncio
import random
import socket
import time
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from lot_grpc.domain.errors import StartupError
from lot_grpc.telemetry import scrape_server
from lot_grpc.telemetry.exposition import Exposition
from lot_grpc.telemetry.scrape_server import ScrapeServer

GET = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"


def with_header(line: bytes) -> bytes:
    return GET.replace(b"Host: x", b"Host: x\r\n" + line)


class Scraped:
    """A server, and how often it asked for the gauges."""

    def __init__(self) -> None:
        self.refreshed = 0
        self.failure: Exception | None = None
        self.port = 0

    async def refresh(self) -> None:
        self.refreshed += 1
        if self.failure is not None:
            raise self.failure

    async def send(self, raw: bytes) -> bytes:
        """What is answered until the server closes the connection."""
        return await asyncio.to_thread(self.send_now, raw)

    def send_now(self, *parts: bytes) -> bytes:
        with socket.create_connection(("127.0.0.1", self.port), 30) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for part in parts:
                connection.sendall(part)
            answer = b""
            try:
                while part := connection.recv(65536):
                    answer += part
            except ConnectionResetError:
                pass
            return answer


@pytest.fixture
async def scraped(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Scraped]:
    monkeypatch.setattr(scrape_server, "_SECONDS", 1.0)
    monkeypatch.setattr(scrape_server, "_REFRESH_SECONDS", 0.2)
    made = Scraped()
    server = ScrapeServer(made.refresh)
    made.port = server.start("127.0.0.1", 0)
    yield made
    await server.close()
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", made.port), 5)


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


async def test_a_scrape_sets_the_gauges_first(scraped: Scraped) -> None:
    head, _, body = (await scraped.send(GET)).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK")
    assert f"Content-Length: {len(body)}".encode() in head
    assert b"lot_event_loop_delay_seconds" in body
    assert scraped.refreshed == 1


async def test_a_head_request_gets_the_head(scraped: Scraped) -> None:
    head, _, body = (await scraped.send(GET.replace(b"GET", b"HEAD"))).partition(b"\r\n\r\n")
    assert b"Content-Length: 0" not in head
    assert body == b""
    head, _, body = (await scraped.send(b"HEAD / HTTP/1.0\r\n\r\n")).partition(b"\r\n\r\n")
    assert (status(head), body) == (404, b"")


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (GET.replace(b"/metrics", b"/"), 404),
        (GET.replace(b"/metrics", b"/metrics/../x"), 404),
        (GET.replace(b"GET", b"POST") + b"body", 405),
        (with_header(b"Content-Length: 9").replace(b"GET", b"POST"), 405),
        (b"GET /metrics\r\n\r\n", 400),
        (GET.replace(b"1.1", b"1.x"), 400),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 405),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64), 400),
        (GET.replace(b"Host: x", b"X: y"), 400),
        (with_header(b"Host: y"), 400),
        (with_header(b"no colon"), 400),
        (with_header(b"X : y"), 400),
        (with_header(b"X: a\0b"), 400),
        (with_header(b"Content-Length: 1\r\nContent-Length: 2"), 400),
        (with_header(b"Transfer-Encoding: gzip"), 501),
        (b"GET /metrics HTTP/1.0\r\n\r\n", 200),
        (b"GET /metrics HTTP/1.0\n\n", 200),
        (GET.replace(b"\r\n", b"\n"), 200),
        (with_header(b"X: a\r\n b"), 200),
        (with_header(b"Expect: 100-continue\r\nContent-Length: 9"), 200),
        (with_header(b"Content-Length: 4") + b"body", 200),
        (with_header(b"Transfer-Encoding: chunked") + b"4\r\nbody\r\n0\r\n\r\n", 200),
        (with_header(b"Transfer-Encoding: chunked") + b"no chunk", 200),
        (with_header(b"Content-Length: 100000") + b"x" * 100_000, 200),
        (GET * 1000, 200),
        (b"\xff\xfe\x00 \r\n\r\n", 400),
        (with_header(b"X: " + b"x" * 100_000), 431),
        (with_header(b"Accept: application/openmetrics-text; version=\xff,;;,="), 200),
        (with_header(b"Accept: a/b\r\nAccept: text/plain;version=1.0.0"), 200),
    ],
)
async def test_any_request_is_answered(scraped: Scraped, raw: bytes, code: int) -> None:
    answer = await scraped.send(raw)
    assert status(answer) == code
    assert answer.count(b"HTTP/1.1 ") == 1, "one request a connection"
    assert b"\r\nConnection: close\r\n" in answer
    assert status(await scraped.send(GET)) == 200


async def test_a_request_may_arrive_in_pieces(scraped: Scraped) -> None:
    assert status(await asyncio.to_thread(scraped.send_now, *(bytes([one]) for one in GET))) == 200


async def test_an_unfinished_request_is_answered_or_closed(scraped: Scraped) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", scraped.port)
    writer.write(GET[:-2])
    writer.write_eof()
    assert status(await reader.read()) == 400
    writer.close()
    reader, writer = await asyncio.open_connection("127.0.0.1", scraped.port)
    writer.write(GET[:-2])
    assert await reader.read() == b"", "it took too long"
    writer.close()


async def test_a_reader_that_is_too_slow_is_cut_off(
    scraped: Scraped, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Exposition, "render", lambda *_: (bytes(32 * 2**20), "text/plain"))
    with socket.create_connection(("127.0.0.1", scraped.port), 30) as slow:
        slow.sendall(GET)
        await asyncio.to_thread(send_until_cut_off, slow)


def send_until_cut_off(connection: socket.socket) -> None:
    with suppress(ConnectionError):
        while True:
            connection.sendall(b"x")
            time.sleep(0.05)


async def test_noise_stops_nothing(scraped: Scraped) -> None:
    dice = random.Random(7)
    for _ in range(200):
        await scraped.send(dice.randbytes(dice.randrange(200)) + b"\r\n\r\n")
    assert status(await scraped.send(GET)) == 200


async def test_idle_connections_do_not_keep_a_scrape_out(scraped: Scraped) -> None:
    idle = [socket.create_connection(("127.0.0.1", scraped.port), 5) for _ in range(200)]
    try:
        assert status(await scraped.send(GET)) == 200
        for one in idle:
            one.settimeout(30)
            one.sendall(b"G")
        for one in idle:  # each is closed, since it took too long or was one too many
            assert await asyncio.to_thread(closed, one)
    finally:
        for one in idle:
            one.close()


def closed(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


async def test_a_busy_event_loop_delays_no_scrape(scraped: Scraped) -> None:
    answer = asyncio.create_task(scraped.send(GET))
    await asyncio.sleep(0)
    time.sleep(0.5)
    assert status(await answer) == 200


async def test_gauges_that_fail_leave_the_rest(scraped: Scraped) -> None:
    scraped.failure = RuntimeError("x")
    assert status(await scraped.send(GET)) == 200


async def test_an_address_that_is_taken_says_what_to_do() -> None:
    async def nothing() -> None:
        pass

    with socket.create_server(("127.0.0.1", 0)) as taken:
        server = ScrapeServer(nothing)
        with pytest.raises(StartupError, match="LOT_METRICS_ADDRESS"):
            server.start("127.0.0.1", taken.getsockname()[1])
        await server.close()
