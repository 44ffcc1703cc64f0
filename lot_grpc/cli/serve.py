"""``lot-grpc serve``."""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import signal
import sys
import threading
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog
import typer
import uvloop
from typer import Option

from lot_grpc import __version__
from lot_grpc.cli.options import Config
from lot_grpc.cli.progress import ProgressDisplay
from lot_grpc.cli.start import begin, importing
from lot_grpc.domain.counting import counted
from lot_grpc.reports import Progress, Ready

if TYPE_CHECKING:
    from lot_grpc.settings import Settings

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)

_CLOSE_SECONDS = 1.0
"""How long an aborted start may take to close what it opened."""


def serve(
    *,
    config: Config = None,
    accept_loss: bool = Option(
        False,
        "--accept-loss",
        help="Serve what is left of a data folder that has lost files or records. "
        "Needed once: later starts expect only what is left.",
    ),
) -> None:
    """Serve until SIGTERM or Ctrl-C, then finish running calls. A second one stops immediately."""
    try:
        _run(config, accept_loss=accept_loss)
    except KeyboardInterrupt:
        typer.echo("interrupted", err=True)
        raise


def _run(config: Path | None, *, accept_loss: bool) -> None:
    settings = begin(config)
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(
        resource.RLIMIT_NOFILE, (most, most)
    )  # connections must not exhaust file descriptors
    runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
    with ProgressDisplay() as progress, runner as loop:
        loop.run(_serve(settings, progress, accept_loss=accept_loss))


async def _serve(settings: Settings, progress: Progress, *, accept_loss: bool) -> None:
    signals = _Signals(settings.server.drain_seconds)
    storage = settings.storage
    where = settings.qdrant.url if storage.store == "qdrant" else str(storage.data_dir)
    log = structlog.get_logger()
    log.info("starting", version=__version__, store=storage.store, location=where)

    def ready(what: Ready) -> None:
        signals.starting = None
        _announce(what, settings)

    try:
        # Importing takes half a second, during which signals are handled and the model is loaded.
        adapters = await _imported("lot_grpc.adapters")
        embedder = asyncio.create_task(adapters.open_served_embedder(settings, progress))
        app = await _imported("lot_grpc.app")
        await app.serve(
            settings,
            accept_loss=accept_loss,
            ready=ready,
            stop=signals.stop,
            progress=progress,
            embedder=embedder,
        )
    except asyncio.CancelledError:
        if not signals.first:
            raise
        _end(signals.first)


async def _imported(module: str) -> Any:
    with importing():
        return await asyncio.to_thread(import_module, module)


class _Signals:
    """Signal handling: the first signal drains, the second ends the process at once.

    During startup, the first one ends it. Acknowledged writes are kept in either case.
    """

    def __init__(self, drain_seconds: float) -> None:
        self.stop = asyncio.Event()
        self.starting = asyncio.current_task()
        self.first = 0
        self._drain_seconds = drain_seconds
        for number in STOP_SIGNALS:
            asyncio.get_running_loop().add_signal_handler(number, self._take, number)

    def _take(self, number: signal.Signals) -> None:
        log = structlog.get_logger()
        if self.first:
            log.warning("stopped at once", signal=number.name)
            _end(number)
        self.first = number
        if self.starting is None:
            log.info("stopping", signal=number.name, drain_seconds=self._drain_seconds)
            self.stop.set()
            return
        log.warning("stopped while starting", signal=number.name)
        self.starting.cancel()  # also ends the compaction's child process
        late = threading.Timer(_CLOSE_SECONDS, _end, [number])  # for example a download
        late.daemon = True
        late.start()


def _end(number: int) -> None:
    sys.stderr.flush()
    os._exit(128 + number)


def _announce(ready: Ready, settings: Settings) -> None:
    """Print the start line, and a call to try."""
    also = f" and, with client certificates, {ready.client_address}" if ready.client_address else ""
    print(  # noqa: T201
        f"lot-grpc {__version__} is serving on {ready.address}{also}"
        f" ({ready.store} store {ready.location}, {counted(ready.points, 'point')};"
        f" {ready.model}, {ready.dimensions}-d; ready in {ready.seconds:.1f} s)\n"
        f"try: {_to_try(ready.address, settings)}",
        flush=True,
    )


def _to_try(address: str, settings: Settings) -> str:
    """A grpcurl command if it is installed, on the PATH or next to this program."""
    if settings.tls.enabled or settings.authenticates:
        return f"{_shown(sys.argv[0])} stats  # with the same settings"
    call = f"-plaintext {address} lot.v1.AdminService/GetServerInfo"
    if shutil.which("grpcurl"):
        return f"grpcurl {call}"
    beside = shutil.which("grpcurl", path=str(Path(sys.executable).parent))
    return f"{_shown(beside)} {call}" if beside else f"{_shown(sys.argv[0])} stats -a {address}"


def _shown(program: str) -> str:
    """A program's path as typed in the current folder."""
    path = Path(program)
    if path.is_absolute() and path.is_relative_to(Path.cwd()):
        return str(path.relative_to(Path.cwd()))
    return program
