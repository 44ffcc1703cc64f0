"""The composition root: settings → adapters → services → server → drain → close."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import structlog

from lot_grpc import __version__
from lot_grpc.clock import SystemClock
from lot_grpc.domain.errors import LotError, ModelUnavailableError, StartupError
from lot_grpc.domain.ranking import RankingWeights
from lot_grpc.embedding.catalog import card_of
from lot_grpc.embedding.fastembed import FastembedEmbedder, open_fastembed
from lot_grpc.embedding.model_files import locate
from lot_grpc.ports import StoreInfo, VectorStore
from lot_grpc.reports import (
    Check,
    CheckReport,
    CompactReport,
    ModelReport,
    Progress,
    Ready,
    StoreReport,
)
from lot_grpc.server.build import LotServer, build_server
from lot_grpc.server.calllog import CallLog
from lot_grpc.server.limits import Limits
from lot_grpc.server.servicers import build_servicers
from lot_grpc.services.build import Services, build_services
from lot_grpc.services.records.collections import META
from lot_grpc.services.store_contract import open_store
from lot_grpc.settings import Settings
from lot_grpc.storage.edge import EdgeStore
from lot_grpc.storage.edge_maintenance import (
    ShardCompaction,
    compact_in_child,
    needs_compaction,
)
from lot_grpc.storage.qdrant import QdrantStore

_log = structlog.get_logger()

_QUIET_SECONDS = 60.0
"""How long a failure that goes on, such as a full disk, is not logged again."""


@dataclass(frozen=True, slots=True)
class _Opened:
    """What serves, but for the port."""

    store: VectorStore
    embedder: FastembedEmbedder
    services: Services


# --- serving ----------------------------------------------------------------------------------


async def serve(
    settings: Settings,
    *,
    ready: Callable[[Ready], None],
    stop: asyncio.Event,
    progress: Progress | None = None,
) -> None:
    """Open everything, call ``ready``, serve until ``stop`` is set, drain, close.

    ``stop`` may be set before ``ready``; then it closes what is open and returns.

    Raises:
        StartupError: It cannot serve; what was opened is closed again.
    """
    started = time.monotonic()
    async with AsyncExitStack() as stack:
        opened = await stack.enter_async_context(_open(settings, progress))
        finished = await opened.services.housekeeping.roll_forward(starting=True)
        if finished.anything:
            _log.info(
                "finished what an earlier run had begun",
                outcomes=finished.outcomes,
                deletes=finished.deletes,
                recordings=finished.recordings,
            )
        if stop.is_set():
            return
        await stack.enter_async_context(_housekeeping(opened.services))
        server = _build(settings, opened)
        stack.push_async_callback(server.stop, settings.server.drain_seconds)
        gc.freeze()  # what start-up made stays: no collection need walk it
        port = await server.start(settings.server.address)
        ready(await _ready(settings, opened, port, time.monotonic() - started))
        await stop.wait()
        await server.stop(settings.server.drain_seconds)
        await _flush(opened)
    _log.info("stopped")


def _build(settings: Settings, opened: _Opened) -> LotServer:
    wanted = settings.limits
    limits = Limits(
        max_message_bytes=wanted.max_message_bytes,
        max_concurrent_calls=wanted.max_concurrent_calls,
        max_streams=wanted.max_streams,
        max_call_seconds=wanted.max_call_seconds,
    )
    edge = settings.storage.store == "edge"
    servicers = build_servicers(
        opened.services,
        SystemClock(),
        version=__version__,
        limits=limits,
        max_batch_items=wanted.max_batch_items,
        needed_bytes=settings.storage.min_free_bytes if edge else 0,
    )
    return build_server(servicers, limits, log=_call_log())


def _call_log() -> CallLog:
    log = _log.bind()  # once, as each call would do it anew

    def write(record: Mapping[str, object]) -> None:
        fields = {key: value for key, value in record.items() if value != ""}
        level = str(fields.pop("level"))
        # `code` would be taken for the code of a pattern and masked.
        fields["status"] = fields.pop("code")
        getattr(log, level)("call", **fields)

    return write


class _Reporter:
    """Logs what fails beside the calls: with a reason once a minute, else with its traceback."""

    def __init__(self) -> None:
        self._told: dict[str, float] = {}

    def __call__(self, what: str, error: Exception) -> None:
        if not isinstance(error, LotError):
            _log.warning(what, exc_info=error)
            return
        now = time.monotonic()
        if now - self._told.get(error.reason, -_QUIET_SECONDS) >= _QUIET_SECONDS:
            self._told[error.reason] = now
            _log.warning(what, cause=error.message, exc_info=error.__cause__)


@asynccontextmanager
async def _housekeeping(services: Services) -> AsyncIterator[None]:
    task = asyncio.create_task(services.housekeeping.run(_Reporter()))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _flush(opened: _Opened) -> None:
    """Write what waits before the store is closed; its loss is allowed, so it does not fail."""
    try:
        await opened.services.retrievals.flush()
        await opened.store.flush()
    except LotError as error:
        _log.warning("the last recalls could not be written", cause=error.message)


async def _ready(settings: Settings, opened: _Opened, port: int, seconds: float) -> Ready:
    info = await opened.store.info()
    contract = opened.embedder.contract
    return Ready(
        address=f"{settings.server.address.rpartition(':')[0]}:{port}",
        store=info.backend,
        location=info.location,
        points=sum(count for name, count in info.points.items() if name != META),
        model=contract.model,
        dimensions=contract.dimensions,
        seconds=seconds,
    )


# --- opening ----------------------------------------------------------------------------------


@asynccontextmanager
async def _open(settings: Settings, progress: Progress | None) -> AsyncIterator[_Opened]:
    """The model first, since it may be missing; then the store; then both together."""
    async with AsyncExitStack() as stack:
        embedder = await _open_embedder(settings, progress)
        stack.push_async_callback(embedder.close)
        if settings.storage.store == "edge" and settings.storage.maintenance == "auto":
            await _maintain(settings.storage.data_dir, progress)
        store = _make_store(settings)
        stack.push_async_callback(store.close)
        await open_store(store, embedder.contract)
        weights = RankingWeights(settings.ranking.gate, settings.ranking.learned_weight)
        yield _Opened(store, embedder, build_services(store, embedder, SystemClock(), weights))


async def _open_embedder(settings: Settings, progress: Progress | None) -> FastembedEmbedder:
    wanted = settings.embedding
    return await open_fastembed(
        wanted.model,
        path=wanted.path,
        sha256=wanted.sha256,
        cache_dir=wanted.cache_dir,
        allow_download=wanted.download,
        threads=wanted.threads,
        cache_entries=wanted.cache_entries,
        progress=progress,
    )


def _make_store(settings: Settings) -> VectorStore:
    wanted = settings.storage
    if wanted.store == "edge":
        return EdgeStore(
            wanted.data_dir,
            SystemClock(),
            min_free_bytes=wanted.min_free_bytes,
            sync_always=wanted.sync == "always",
        )
    key = settings.qdrant.api_key
    return QdrantStore(
        SystemClock(),
        settings.qdrant.url,
        key.get_secret_value() if key else None,
        settings.qdrant.prefix,
    )


async def _maintain(folder: Path, progress: Progress | None) -> None:
    """Compact what grew, in a child process, before the port opens: here it would stop us."""
    grown = await asyncio.to_thread(needs_compaction, folder)
    if not grown:
        return
    done = 0
    if progress:
        progress("compacting the store", 0, len(grown))
    async for shard in compact_in_child(folder, grown):
        done += 1
        _log.info(
            "compacted",
            collection=shard.collection,
            points=shard.points,
            seconds=shard.seconds,
            skipped=shard.skipped,
        )
        if progress:
            progress("compacting the store", done, len(grown))


# --- checking ---------------------------------------------------------------------------------


async def check(settings: Settings) -> CheckReport:
    """Open everything as ``serve`` would, short of the port, and tell. Never raises a LotError."""
    try:
        model = _model_report(settings)
    except ModelUnavailableError as error:
        return CheckReport((Check("model", ok=False, detail=error.message),))
    checks = [Check("model file", ok=True, detail=f"{model.file} ({model.origin})")]
    quiet = settings.model_copy(
        update={"storage": settings.storage.model_copy(update={"maintenance": "off"})}
    )
    try:
        async with _open(quiet, None) as opened:
            looked_at = await opened.services.admin.ready_checks()
            checks += [Check(one.name, one.ok, one.detail) for one in looked_at]
            return CheckReport(tuple(checks), model, _store_report(await opened.store.info()))
    except LotError as error:
        name = "model" if isinstance(error, ModelUnavailableError) else "store"
        return CheckReport((*checks, Check(name, ok=False, detail=error.message)), model)


def _model_report(settings: Settings) -> ModelReport:
    wanted = settings.embedding
    files = locate(
        card_of(wanted.model),
        path=wanted.path,
        sha256=wanted.sha256,
        cache_dir=wanted.cache_dir,
        allow_download=wanted.download,
    )
    return ModelReport(
        name=files.card.name,
        dimensions=files.card.dimensions,
        file=str(files.folder / files.model_file),
        sha256=files.sha256,
        origin=files.origin,
    )


def _store_report(info: StoreInfo) -> StoreReport:
    return StoreReport(
        backend=info.backend,
        location=info.location,
        points=dict(info.points),
        disk_bytes=info.disk_bytes,
        free_bytes=info.free_bytes,
        writable=info.writable,
    )


# --- compacting -------------------------------------------------------------------------------


def compact(settings: Settings, progress: Progress | None = None) -> CompactReport:
    """Merge and index the embedded store under its lock. Slow.

    Raises:
        StartupError: The folder is in use, or the store is no embedded one.
    """
    if settings.storage.store != "edge":
        raise StartupError("a Qdrant server optimises its collections by itself; nothing to do")
    folder = settings.storage.data_dir
    if not folder.is_dir():
        raise StartupError(f"{folder} does not exist; set LOT_DATA_DIR to the store's folder")
    started = time.monotonic()
    total = sum(1 for entry in folder.iterdir() if entry.is_dir())
    shards = asyncio.run(_compact_all(folder, total, progress))
    return CompactReport(
        changed=any(shard.changed for shard in shards),
        location=str(folder),
        bytes_before=sum(shard.bytes_before for shard in shards),
        bytes_after=sum(shard.bytes_after for shard in shards),
        seconds=time.monotonic() - started,
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
