"""The port for Prometheus answers whatever is sent to it, and whatever the calls do."""

from __future__ import annotations

import asyncio
import random
import socket
import time
from collections.abc import AsyncIterator

import pytest

from lot_grpc.domain.errors import StartupError
from lot_grpc.telemetry import scrape_server
from lot_grpc.telemetry.scrape_server import ScrapeServer

GET = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"


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

    def send_now(self, raw: bytes) -> bytes:
        with socket.create_connection(("127.0.0.1", self.port), 30) as connection:
            connection.sendall(raw)
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


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", 404),
        (b"GET /metrics/../x HTTP/1.1\r\n\r\n", 404),
        (b"POST /metrics HTTP/1.1\r\nContent-Length: 9\r\n\r\n", 405),
        (b"GET /metrics\r\n\r\n", 400),
        (b"\r\n\r\n", 400),
        (b"\xff\xfe\x00 \r\n\r\n", 400),
        (b"GET /metrics HTTP/1.1\r\nX: " + b"x" * 100_000 + b"\r\n\r\n", 431),
        (GET.replace(b"Host: x", b"Accept: application/openmetrics-text; version=\xff,;;,="), 200),
    ],
)
async def test_any_request_is_answered(scraped: Scraped, raw: bytes, code: int) -> None:
    answer = await scraped.send(raw)
    assert status(answer or b"x 431 x") == code, "one that is too long may be cut off"
    assert status(await scraped.send(GET)) == 200


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
