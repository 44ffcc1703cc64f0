"""A ``grpc.aio`` server that no request can bring down.

``grpc.aio`` accepts calls and decodes their paths in one loop: a path that is not UTF-8 raises, the
loop ends and the port closes for good, since the loop cannot be restarted. So one server owns the
port, and the loops of others, which have no port, accept its calls and are replaced when they end;
calls that arrive in the meantime wait in gRPC's core, in order. There are several, since each needs
some turns of the event loop to accept a call. This relies on private names of ``grpc.aio``, which
are checked at startup.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import grpc
import structlog
from grpc._cython import cygrpc
from grpc.aio import _server

from lot_grpc.domain.errors import StartupError

_log = structlog.get_logger()


def _is_ours_to_know(record: logging.LogRecord) -> bool:
    return not record.getMessage().startswith("Invalid encoding on")


# gRPC logs a traceback and the whole value for each metadata text that is not UTF-8; drop those.
logging.getLogger("grpc._cython.cygrpc").addFilter(_is_ours_to_know)

_NEEDED: Final = (
    "_make_request_call_future",
    "_request_call",
    "_serving_task_crash_handler",
    "_start_shutting_down",
)

_TAKERS: Final = 8
"""With one, calls wait behind those of a flood while the event loop is busy."""
_QUIET_SECONDS: Final = 60.0
"""Minimum time between two log lines about dropped calls."""

Ended = Callable[[BaseException], None]


class CallServer(_server.Server):
    """Like ``grpc.aio.server(options=options)``, but its loop is replaced if a bad path ends it.

    Args:
        options: of gRPC's core.
        ended: called with the error if anything else ends the loop; no calls are accepted then.
    """

    def __init__(self, options: Sequence[tuple[str, int]], ended: Ended) -> None:
        if missing := [name for name in _NEEDED if not hasattr(cygrpc.AioServer, name)]:
            raise StartupError(
                f"grpcio {grpc.__version__} is not supported: its server lacks "
                f"{', '.join(missing)}; install the version pinned in constraints.txt"
            )
        self._loop = asyncio.get_running_loop()
        self._server = _Port(options, ended)

    def add_registered_method_handlers(self, service_name: str, method_handlers: Any) -> None:
        """Do nothing: the generic handlers, which generated code adds too, serve the methods."""


class _Port(cygrpc.AioServer):  # type: ignore[misc]
    """Owns the port and the calls; its own loop accepts none."""

    def __init__(self, options: Sequence[tuple[str, int]], ended: Ended) -> None:
        self.handlers: list[Any] = []
        self._ended = ended
        self._takers: set[_Taker] = set()
        self._dropped = 0
        self._last_logged = -_QUIET_SECONDS
        self._closing = asyncio.get_running_loop().create_future()
        self._replacing: set[asyncio.Future[Any]] = set()
        super().__init__(asyncio.get_running_loop(), None, (), (), tuple(options), None)

    def add_generic_rpc_handlers(self, handlers: Sequence[Any]) -> None:
        self.handlers.extend(handlers)

    def _make_request_call_future(self, _: Any) -> asyncio.Future[Any]:
        return self._closing

    async def start(self) -> None:
        await super().start()
        await asyncio.gather(*(self._start_taker() for _ in range(_TAKERS)))

    def _start_taker(self) -> Awaitable[None]:
        taker = _Taker(self)
        self._takers.add(taker)
        started: Awaitable[None] = taker.start()
        return started

    async def shutdown(self, grace: float | None) -> None:
        await asyncio.gather(*map(_close, self._takers), super().shutdown(grace))

    async def _start_shutting_down(self) -> None:
        self._closing.set_exception(cygrpc._RequestCallError())  # noqa: SLF001
        await super()._start_shutting_down()

    def take(self) -> asyncio.Task[Any]:
        """The next call."""
        return asyncio.create_task(self._request_call())

    def taker_ended(self, taker: _Taker, error: BaseException) -> None:
        """Replace a loop that ended, or report that no more calls are accepted."""
        if not self.is_running():
            return
        if not isinstance(error, UnicodeDecodeError):
            self._ended(error)
            return
        self._dropped += 1
        now = time.monotonic()
        if now - self._last_logged >= _QUIET_SECONDS:
            self._last_logged = now
            _log.warning("dropped calls whose path is not UTF-8", since_start=self._dropped)
        self._takers.discard(taker)
        replacing = asyncio.gather(self._start_taker(), _close(taker))
        self._replacing.add(replacing)
        replacing.add_done_callback(self._replacing.discard)


class _Taker(cygrpc.AioServer):  # type: ignore[misc]
    """Accepts the calls of a port until something ends it."""

    def __init__(self, port: _Port) -> None:
        self._port = port
        super().__init__(asyncio.get_running_loop(), None, port.handlers, (), (), None)

    def _make_request_call_future(self, _: Any) -> asyncio.Future[Any]:
        return self._port.take()

    def _serving_task_crash_handler(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._port.taker_ended(self, error)


async def _close(taker: _Taker) -> None:
    """Release a taker. If its loop has ended, the first attempt only raises the reason."""
    for _ in range(2):
        with contextlib.suppress(Exception):
            await taker.shutdown(None)


_WATCH_SECONDS: Final = 5.0
_REFUSALS: Final = 3
"""After this many refused connections in a row, our own port counts as closed."""


async def watch_port(host: str, port: int, ended: Ended, seconds: float = _WATCH_SECONDS) -> None:
    """Connect to our own port from time to time, and report when nothing listens there."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "localhost"}.get(host, host)  # noqa: S104
    refused = 0
    while refused < _REFUSALS:
        await asyncio.sleep(seconds)
        try:
            async with asyncio.timeout(seconds):
                _, writer = await asyncio.open_connection(host, port)
            writer.close()
        except ConnectionRefusedError as error:
            refused, cause = refused + 1, error
        except OSError:  # not a refusal, for example a lack of file descriptors
            refused = 0
        else:
            refused = 0
    ended(cause)
