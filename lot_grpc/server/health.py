"""The standard health service; on shutdown its watchers are notified and their streams end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

from grpc_health.v1 import health_pb2
from grpc_health.v1._async import HealthServicer

from lot_grpc.domain.errors import LotError, StorageFullError
from lot_grpc.telemetry.metrics import SERVING

SERVICE: Final = health_pb2.DESCRIPTOR.services_by_name["Health"]
NAME: Final = SERVICE.full_name

_SERVING = health_pb2.HealthCheckResponse.SERVING
_NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


PROBE_SECONDS: Final = 2.0
"""How often the store is probed; probes time out too, so a change shows within 5 s."""


class Health(HealthServicer):
    """Health of the server (the empty name) and of each service.

    NOT_SERVING until ``serving``, from ``draining`` on, and while ``follow`` finds the store
    unusable.
    """

    def __init__(self, service_names: Iterable[str]) -> None:
        super().__init__()
        self._names = ("", *service_names)
        self._server_status = dict.fromkeys(self._names, _NOT_SERVING)
        self._change_watcher: set[asyncio.Task[Any]] = set()

    async def Watch(self, request: Any, context: Any) -> None:  # noqa: N802 - the RPC's name
        """Like the library's, but tracked here, since the library's never ends."""
        task = asyncio.current_task()
        assert task is not None
        self._change_watcher.add(task)
        try:
            await super().Watch(request, context)
        finally:
            self._change_watcher.discard(task)

    async def serving(self) -> None:
        """Report SERVING: calls are accepted."""
        await self._set_all(_SERVING)

    async def _set_all(self, status: Any) -> None:
        SERVING.set(status == _SERVING)
        for name in self._names:
            await self.set(name, status)

    async def follow(
        self,
        check: Callable[[], Awaitable[None]],
        report: Callable[[str], None],
        seconds: float = PROBE_SECONDS,
    ) -> None:
        """Report whether the store is usable, until cancelled.

        ``check`` raises whatever a write would fail with. A full disk is ignored: reads still work.
        ``report`` is called with the problem whenever it changes, and with "" once it is gone.
        """
        known = ""
        while True:
            await asyncio.sleep(seconds)
            wrong = ""
            try:
                await check()
            except StorageFullError:
                pass
            except LotError as error:
                wrong = error.message
            if bool(wrong) != bool(known):
                await self._set_all(_NOT_SERVING if wrong else _SERVING)
            if wrong != known:
                report(wrong)
            known = wrong

    async def draining(self) -> None:
        """Report NOT_SERVING to watchers: no more calls are accepted."""
        SERVING.set(0)
        await self.enter_graceful_shutdown()

    def end(self) -> None:
        """End the streams of watchers, which would otherwise use up the whole grace period."""
        for task in self._change_watcher:
            task.cancel()
