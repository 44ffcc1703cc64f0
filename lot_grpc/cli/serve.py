"""``lot-grpc serve``."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import sys
from pathlib import Path

import structlog
import uvloop

from lot_grpc import __version__
from lot_grpc.cli.progress import ProgressDisplay
from lot_grpc.cli.start import begin
from lot_grpc.reports import Progress, Ready
from lot_grpc.settings import Settings

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def run(config: Path | None, *, accept_loss: bool = False) -> None:
    """Serve until a signal.

    Raises:
        SettingsError: The settings cannot be used.
        StartupError: The service cannot start.
    """
    settings = begin(config)
    storage = settings.storage
    where = settings.qdrant.url if storage.store == "qdrant" else str(storage.data_dir)
    log = structlog.get_logger()
    log.info("starting", version=__version__, store=storage.store, location=where)
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # connections must not use up files
    with ProgressDisplay() as progress, asyncio.Runner(loop_factory=uvloop.new_event_loop) as loop:
        loop.run(_serve(settings, progress, accept_loss))


async def _serve(settings: Settings, progress: Progress, accept_loss: bool) -> None:
    from lot_grpc import app

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, _on_signal, number, stop, settings.server.drain_seconds)
    await app.serve(settings, ready=announce, stop=stop, progress=progress, accept_loss=accept_loss)


def _on_signal(number: signal.Signals, stop: asyncio.Event, drain_seconds: float) -> None:
    """The first signal drains; the second ends the process. What was acknowledged is kept."""
    log = structlog.get_logger()
    if stop.is_set():
        log.warning("stopped at once", signal=number.name)
        sys.stderr.flush()
        os._exit(128 + number)
    log.info("stopping", signal=number.name, drain_seconds=drain_seconds)
    stop.set()


def announce(ready: Ready) -> None:
    """The start line, for whoever is looking, and a call to try."""
    print(  # noqa: T201
        f"lot-grpc {__version__} is serving on {ready.address}"
        f" ({ready.store} store {ready.location}, {ready.points:,} points;"
        f" {ready.model}, {ready.dimensions}-d; ready in {ready.seconds:.1f} s)\n"
        f"try: grpcurl -plaintext {ready.address} lot.v1.AdminService/GetServerInfo",
        flush=True,
    )
