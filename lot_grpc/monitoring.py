"""Publishes metrics and traces while a server runs, as the settings say."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Final

import structlog

from lot_grpc import __version__
from lot_grpc.bootstrap import Opened
from lot_grpc.domain.errors import LotError, StartupError
from lot_grpc.server.observation import count_open_streams
from lot_grpc.services.resources import REGISTRY
from lot_grpc.settings import Settings
from lot_grpc.settings_telemetry import missing_extra
from lot_grpc.telemetry import metrics
from lot_grpc.telemetry.instruments import Gauge
from lot_grpc.telemetry.spans import Tracer

_log = structlog.get_logger()

_SHARE: Final = 0.01
"""Of the time, at most, in which the figures of the store are read: that walks over its files."""
_LEAST_SECONDS: Final = 1.0
"""How old they may be in any case, and how long a scrape waits for them."""

_GAUGES: Final = [metric for metric in metrics.ALL if isinstance(metric, Gauge)]


@dataclass(frozen=True, slots=True)
class Observers:
    """What observes the calls."""

    metrics: bool = False
    tracer: Tracer | None = None


@asynccontextmanager
async def monitored(settings: Settings, opened: Opened) -> AsyncIterator[Observers]:
    """Serve metrics and send traces until the block is left.

    Raises:
        StartupError: An address cannot be used, or the extra for traces is not installed.
    """
    if not settings.observed:
        yield Observers()
        return
    async with AsyncExitStack() as stack:
        gauges = Gauges(opened)
        stack.push_async_callback(gauges.close)
        info = await opened.store.info()
        metrics.BUILD_INFO.set(1, __version__, info.backend, opened.embedder.contract.model)
        if (served := settings.metrics.host_and_port) is not None:
            from lot_grpc.telemetry.scrape_server import ScrapeServer  # few servers need it

            server = ScrapeServer(gauges.refresh)
            port = server.start(*served)
            stack.push_async_callback(server.close)
            _log.info("serving metrics", url=f"http://{served[0]}:{port}/metrics")
        tracer = None
        if (otel := settings.otel).endpoint:
            if problem := missing_extra(otel):
                raise StartupError(problem)
            from lot_grpc.telemetry.otlp import OtlpSender  # it may not be installed

            sender = OtlpSender(otel.endpoint, __version__, otel.metrics_seconds, gauges.refresh)
            sender.start()
            stack.push_async_callback(sender.close)
            tracer = Tracer(sender.end, otel.sample_ratio, contents=otel.contents)
            _log.info("sending traces", endpoint=otel.endpoint, sample_ratio=otel.sample_ratio)
        yield Observers(True, tracer)


class Gauges:
    """Sets the gauges before they are published."""

    def __init__(self, opened: Opened) -> None:
        self._opened = opened
        self._reading: asyncio.Task[None] | None = None
        self._read_at = self._read_again_at = float("-inf")

    async def refresh(self) -> None:
        """Set all of them. Those of the store may be older, as ``STORE_FIGURES_AGE`` tells."""
        count_open_streams()
        for gauge in _GAUGES:
            gauge.refresh()
        if self._reading is None and time.monotonic() > self._read_again_at:
            self._reading = asyncio.create_task(self._read_store())
        if self._reading is not None:
            await asyncio.wait([self._reading], timeout=_LEAST_SECONDS)
        if self._read_at > float("-inf"):
            metrics.STORE_FIGURES_AGE.set(time.monotonic() - self._read_at)

    async def close(self) -> None:
        """Stop reading."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait([self._reading])

    async def _read_store(self) -> None:
        begun = time.monotonic()
        try:
            info = await self._opened.store.info()
        except LotError:
            return  # the last figures stay, and their age tells
        finally:
            self._reading = None
            ended = time.monotonic()
            self._read_again_at = ended + max(_LEAST_SECONDS, (ended - begun) / _SHARE)
        for kind, count in self._opened.services.admin.counts(info).items():
            metrics.STORED_RECORDS.set(count, kind)
            if info.sizes:
                collection = REGISTRY.resources[kind].collection.name
                metrics.STORED_BYTES.set(info.sizes.get(collection, 0), kind)
        metrics.STORE_WRITABLE.set(info.writable)
        if info.sizes:
            metrics.STORE_USED_BYTES.set(info.used_bytes)
            metrics.STORE_FREE_BYTES.set(info.free_bytes)
        self._read_at = ended
