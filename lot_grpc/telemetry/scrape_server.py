"""Serves the metrics over HTTP, in a thread and an event loop of its own.

So a scrape neither waits for calls nor do calls wait for it, and whatever is sent to the port
reaches nothing else. It reads one short request a connection, in limited time and number, and
closes it.
"""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from http import HTTPStatus
from typing import Final

import h11
import structlog

from lot_grpc.domain.errors import StartupError
from lot_grpc.telemetry.exposition import Exposition
from lot_grpc.telemetry.metrics import LOOP_DELAY

_log = structlog.get_logger()

_REQUEST_BYTES: Final = 8192
_MOST_UNREAD: Final = 256 * 1024
"""Bytes that may follow a request, such as a body or more requests; they are not answered."""
_SECONDS: Final = 5.0
"""How long a connection may last."""
_CONNECTIONS: Final = 64
"""At more, the oldest is closed, so that idle ones do not keep a scrape out."""
_REFRESH_SECONDS: Final = 2.0
"""How long the event loop of the calls may take for the gauges; then the last ones are sent."""
_JOIN_SECONDS: Final = 2.0

_PATH: Final = b"/metrics"


class ScrapeServer:
    """The port for Prometheus."""

    def __init__(self, refresh: Callable[[], Awaitable[None]]) -> None:
        """``refresh`` sets the gauges; it runs in the loop that makes this."""
        self._refresh = refresh
        self._calls_loop = asyncio.get_running_loop()
        self._exposition = Exposition()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name="lot-metrics", daemon=True)
        self._connections: dict[asyncio.Task[None], None] = {}
        self._stop = asyncio.Event()
        self._socket: socket.socket | None = None

    def start(self, host: str, port: int) -> int:
        """Listen; return the port.

        Raises:
            StartupError: The address cannot be used.
        """
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
            self._socket = socket.create_server(found[4][:2], family=found[0], backlog=64)
        except OSError as error:
            raise StartupError(
                f"cannot serve metrics on {host}:{port}: {error.strerror or error}; choose another "
                "LOT_METRICS_ADDRESS, or leave it empty"
            ) from error
        self._loop = asyncio.new_event_loop()
        self._thread.start()
        bound: int = self._socket.getsockname()[1]
        return bound

    async def close(self) -> None:
        """Stop listening and close the connections."""
        if self._loop is not None:
            with suppress(RuntimeError):  # it has just ended
                self._loop.call_soon_threadsafe(self._stop.set)
            await asyncio.to_thread(self._thread.join, _JOIN_SECONDS)

    def _run(self) -> None:
        assert self._loop is not None
        try:
            self._loop.run_until_complete(self._serve())
        except Exception as error:  # noqa: BLE001 - the service goes on without metrics
            _log.error("metrics are no longer served", exc_info=error)
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        server = await asyncio.start_server(
            self._connected, sock=self._socket, limit=_REQUEST_BYTES
        )
        try:
            await self._stop.wait()
        finally:
            server.close()
            for task in self._connections:
                task.cancel()
            await asyncio.gather(*self._connections, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if len(self._connections) >= _CONNECTIONS:
            oldest = next(iter(self._connections))
            del self._connections[oldest]
            oldest.cancel()
        self._connections[task] = None
        try:
            async with asyncio.timeout(_SECONDS):
                await self._exchange(reader, writer)
        except (OSError, EOFError, TimeoutError, asyncio.CancelledError):
            pass  # it was slow, left, or was one too many: nobody waits for an answer
        finally:
            self._connections.pop(task, None)
            writer.transport.abort()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        http = h11.Connection(h11.SERVER, max_incomplete_event_size=_REQUEST_BYTES)
        try:
            while (request := http.next_event()) is h11.NEED_DATA:
                http.receive_data(await reader.read(_REQUEST_BYTES))
            if not isinstance(request, h11.Request):
                return  # it was closed
            head, body, end = await self._answer(request)
            response = [head, end] if request.method == b"HEAD" else [head, body, end]
        except h11.RemoteProtocolError as error:
            response = _response(error.error_status_hint)
        writer.writelines(http.send(part) or b"" for part in response)
        writer.write_eof()
        # Closed before all is read, the connection is reset, and the response may be lost.
        unread = _MOST_UNREAD
        while unread > 0 and (data := await reader.read(unread)):
            unread -= len(data)

    async def _answer(self, request: h11.Request) -> list[h11.Event]:
        if request.method not in (b"GET", b"HEAD"):
            return _response(HTTPStatus.METHOD_NOT_ALLOWED)
        if request.target.partition(b"?")[0] != _PATH:
            return _response(HTTPStatus.NOT_FOUND, b"The metrics are at %s.\n" % _PATH)
        accept = b",".join(value for name, value in request.headers if name == b"accept")
        await self._refreshed()
        return _response(HTTPStatus.OK, *self._exposition.render(accept.decode("latin-1")))

    async def _refreshed(self) -> None:
        """Set the gauges in the loop of the calls; if it is busy or closed, they stay."""
        begun = time.perf_counter()

        async def refresh() -> None:
            LOOP_DELAY.set(time.perf_counter() - begun)
            await self._refresh()

        work = refresh()
        try:
            running = asyncio.run_coroutine_threadsafe(work, self._calls_loop)
        except RuntimeError:
            work.close()
            return
        try:
            async with asyncio.timeout(_REFRESH_SECONDS):
                await asyncio.wrap_future(running)
        except TimeoutError:
            LOOP_DELAY.set(time.perf_counter() - begun)
        except Exception as error:  # noqa: BLE001 - the counters are still worth sending
            _log.warning("some metrics could not be read", exc_info=error)


def _response(status: int, body: bytes = b"", content_type: str = "text/plain") -> list[h11.Event]:
    fields = {"Content-Type": content_type, "Content-Length": f"{len(body)}", "Connection": "close"}
    reason = HTTPStatus(status).phrase
    head = h11.Response(status_code=status, headers=list(fields.items()), reason=reason)
    return [head, h11.Data(data=body), h11.EndOfMessage()]
