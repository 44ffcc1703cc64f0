"""The composition root: settings → services (``bootstrap``) → server → drain → close."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import structlog

from lot_grpc import __version__
from lot_grpc.adapters import (
    make_authenticator,
    open_audit_log,
    open_certificates,
    require_store,
)
from lot_grpc.auth.authenticator import Authenticator
from lot_grpc.bootstrap import Opened, open_all, secret_finder
from lot_grpc.clock import SystemClock
from lot_grpc.domain.errors import (
    LotError,
    StartupError,
    StorageFullError,
)
from lot_grpc.domain.rate_limits import PrincipalLimits
from lot_grpc.log_lines import AuditReports, Background, Calls
from lot_grpc.monitoring import monitored
from lot_grpc.ports import Embedder
from lot_grpc.redaction import SecretFinder
from lot_grpc.reports import (
    CompactReport,
    Progress,
    Ready,
)
from lot_grpc.server.build import LotServer, StandardServices, build_server
from lot_grpc.server.calllog import CallLog
from lot_grpc.server.guards import Guards
from lot_grpc.server.limits import Limits
from lot_grpc.server.servicers import build_servicers
from lot_grpc.services.build import Services
from lot_grpc.services.derived_data import rebuild_derived_data
from lot_grpc.services.records.collections import META, REPLICAS
from lot_grpc.services.resources import REGISTRY
from lot_grpc.services.seeder import Seeds
from lot_grpc.settings import Settings
from lot_grpc.storage.edge_maintenance import (
    ShardCompaction,
    compact_in_child,
)

if TYPE_CHECKING:
    from lot_grpc.tls.reloading import ReloadedCertificates

_log = structlog.get_logger()

_OWN = (META, REPLICAS)
"""Collections with the service's own bookkeeping."""

_OLDEST_THRESHOLD: Final = 100
"""How many collections of the middle generation come before a full one (Python: 10). A full one
stops all calls for 20 to 60 ms once caches are full, and finds next to nothing."""


# --- serving ----------------------------------------------------------------------------------


async def serve(
    settings: Settings,
    *,
    ready: Callable[[Ready], None],
    stop: asyncio.Event,
    progress: Progress | None = None,
    accept_loss: bool = False,
    embedder: Awaitable[Embedder] | None = None,
) -> None:
    """Open everything, call ``ready``, serve until ``stop`` is set, drain, close.

    If ``stop`` is set before ``ready``, it closes what is open and returns. ``accept_loss`` serves
    what is left of an embedded store that has lost data. ``embedder`` is the configured model if it
    is being opened already.

    Raises:
        StartupError: It cannot serve, or can no longer; everything opened is closed again.
    """
    started = time.monotonic()
    async with AsyncExitStack() as stack:
        certificates = open_certificates(settings)  # first: a mistake there shows at once
        for warning in certificates.warnings if certificates else ():
            _log.warning("TLS needs attention", why=warning)
        authenticator = await stack.enter_async_context(_authenticator(settings))
        secrets = secret_finder(settings)
        opened = await stack.enter_async_context(
            open_all(settings, progress, accept_loss=accept_loss, embedder=embedder)
        )
        await _prepare(settings, opened, progress, stop)
        if stop.is_set():
            return
        background = Background()
        stack.callback(background.end)
        await stack.enter_async_context(
            _running(opened.services.housekeeping.run(background, _log_sweep))
        )
        calls = Calls()
        stack.callback(calls.end)
        guards = await stack.enter_async_context(_guards(settings, opened, authenticator, secrets))
        server = _build(settings, opened, calls, guards)
        stack.push_async_callback(server.stop, settings.server.drain_seconds)
        stack.callback(gc.set_threshold, *gc.get_threshold())
        settle_collector()
        address, client_address = await _start(server, settings, certificates)
        await stack.enter_async_context(_running(server.follow(opened.store.check, _report_health)))
        ready(await _ready(opened, address, client_address, time.monotonic() - started))
        stopped = asyncio.create_task(stop.wait())
        await asyncio.wait((stopped, server.failed), return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        await server.stop(settings.server.drain_seconds)
        await _flush(opened)
        if server.failed.done():
            raise server.failed.result()
    _log.info("stopped")


def settle_collector() -> None:
    """Keep the garbage collector from stopping calls, once everything is loaded."""
    gc.freeze()  # what exists stays, and need not be scanned
    young, middle, _ = gc.get_threshold()
    gc.set_threshold(young, middle, _OLDEST_THRESHOLD)


async def _prepare(
    settings: Settings, opened: Opened, progress: Progress | None, stop: asyncio.Event
) -> None:
    """Bring the store up to date. If ``stop`` is set meanwhile, the next start continues it."""
    rebuilt = await rebuild_derived_data(opened.store, REGISTRY, progress, stop.is_set)
    if rebuilt:
        _log.info("rebuilt terms and signatures", records=rebuilt)
    if stop.is_set():
        return
    await opened.services.runtime.stack.sequencer.open()
    finished = await opened.services.housekeeping.roll_forward(starting=True)
    if finished.anything:
        _log.info(
            "completed operations left unfinished by an earlier run",
            **{name: count for name, count in finished.counts.items() if count},
        )
    if settings.seed.on_start and not stop.is_set():
        await _seed(opened.services, settings.seed.namespaces)


async def _seed(services: Services, namespaces: Sequence[str]) -> None:
    """Store the packs. A nearly full disk does not stop a server that can still read."""
    for namespace in namespaces:
        try:
            seeded = await services.seeder.seed(namespace, Seeds())
        except StorageFullError as error:
            _log.warning("knowledge was not stored", namespace=namespace, cause=error.message)
            return
        _log.info(
            "stored knowledge",
            namespace=namespace,
            created=sum(pack.created for pack in seeded.packs),
            existing=sum(pack.existing for pack in seeded.packs),
            deleted=sum(pack.deleted for pack in seeded.packs),
        )


@asynccontextmanager
async def _authenticator(settings: Settings) -> AsyncIterator[Authenticator | None]:
    """What authenticates callers, kept up to date until the block is left; None: nothing does."""
    authenticator = make_authenticator(settings)
    if authenticator is None:
        yield None
        return
    try:
        async with _running(authenticator.run()):
            yield authenticator
    finally:
        await authenticator.close()


@asynccontextmanager
async def _guards(
    settings: Settings,
    opened: Opened,
    authenticator: Authenticator | None,
    secrets: SecretFinder | None,
) -> AsyncIterator[Guards]:
    """What checks and observes the calls, until the block is left."""
    audit = open_audit_log(settings.audit, AuditReports())
    with closing(audit) if audit is not None else nullcontext():
        async with monitored(settings, opened) as observers:
            yield Guards(
                authenticator=authenticator,
                audit=audit,
                certificates=settings.tls.client_ca is not None,
                secrets=secrets,
                metrics=observers.metrics,
                tracer=observers.tracer,
                principal_limits=PrincipalLimits(**settings.principal_limits.model_dump()),
            )


def _build(settings: Settings, opened: Opened, log: CallLog, guards: Guards) -> LotServer:
    configured = settings.limits
    limits = Limits(
        **configured.model_dump(exclude={"max_batch_items"}),
        stream_idle_seconds=settings.streams.idle_seconds,
    )
    edge = settings.storage.store == "edge"
    servicers = build_servicers(
        opened.services,
        SystemClock(),
        version=__version__,
        limits=limits,
        max_batch_items=configured.max_batch_items,
        min_free_bytes=settings.storage.min_free_bytes if edge else 0,
    )
    return build_server(
        servicers,
        limits,
        log=log,
        gate=opened.services.runtime.gate,
        guards=guards,
        standard_services=StandardServices(settings.server.health, settings.server.reflection),
    )


async def _start(
    server: LotServer, settings: Settings, certificates: ReloadedCertificates | None
) -> tuple[str, str]:
    """Listen at all addresses; those it got, the second empty if there is none."""
    own, theirs, client_address = settings.server.address, settings.tls.client_address, ""
    if certificates is None:
        return _bound(own, await server.start(own)), ""
    if theirs:
        mutual = certificates.credentials(client_certificates=True)
        client_address = _bound(theirs, server.listen(theirs, mutual))
    required = settings.tls.requires_certificates
    port = await server.start(own, certificates.credentials(client_certificates=required))
    return _bound(own, port), client_address


def _bound(address: str, port: int) -> str:
    """An address with the port that it got."""
    return f"{address.rpartition(':')[0]}:{port}"


def _log_sweep(what: str, namespace: str, counts: Mapping[str, int]) -> None:
    _log.info(what, namespace=namespace, counts=dict(counts))


def _report_health(wrong: str) -> None:
    if wrong:
        _log.error("not serving: the store cannot be used", why=wrong)
    else:
        _log.info("serving again")


@asynccontextmanager
async def _running(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run work in the background until the block is left."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _flush(opened: Opened) -> None:
    """Write pending rows before the store is closed; they may be lost, so it does not fail."""
    try:
        await opened.services.runtime.retrievals.flush()
        await opened.services.runtime.stack.sequencer.publish()
        await opened.store.flush()
    except LotError as error:
        _log.warning("the last recalls and changes could not be written", cause=error.message)


async def _ready(opened: Opened, address: str, client_address: str, seconds: float) -> Ready:
    info = await opened.store.info()
    contract = opened.embedder.contract
    return Ready(
        address=address,
        client_address=client_address,
        store=info.backend,
        location=info.location,
        points=sum(count for name, count in info.points.items() if name not in _OWN),
        model=contract.model,
        dimensions=contract.dimensions,
        seconds=seconds,
    )


# --- compacting -------------------------------------------------------------------------------


def compact(settings: Settings, progress: Progress | None = None) -> CompactReport:
    """Merge and index the embedded store under its lock, and erase what was deleted. Slow.

    Raises:
        StartupError: The folder is in use, or the store is not an embedded one.
    """
    if settings.storage.store != "edge":
        raise StartupError("a Qdrant server optimizes its collections by itself; nothing to do")
    require_store(settings)
    folder = settings.storage.data_dir
    started = time.monotonic()
    total = sum(1 for entry in folder.iterdir() if entry.is_dir())
    shards = asyncio.run(_compact_all(folder, total, progress))
    return CompactReport(
        changed=any(shard.changed for shard in shards),
        location=str(folder),
        bytes_before=sum(shard.bytes_before for shard in shards),
        bytes_after=sum(shard.bytes_after for shard in shards),
        seconds=time.monotonic() - started,
        skipped=[f"{shard.collection}: {shard.skipped}" for shard in shards if shard.skipped],
    )


async def _compact_all(
    folder: Path, total: int, progress: Progress | None
) -> list[ShardCompaction]:
    shards = []
    async for shard in compact_in_child(folder):
        shards.append(shard)
        if progress:
            progress("compacting", len(shards), max(total, len(shards)))
    return shards
