"""From settings to services: the adapters, and what stands on them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from lot_grpc.clock import SystemClock
from lot_grpc.domain.context_stats import Fading
from lot_grpc.domain.errors import ModelUnavailableError, StartupError
from lot_grpc.domain.knowledge import KnowledgePack
from lot_grpc.domain.ranking import RankingWeights
from lot_grpc.domain.recommendation import StructuralWeights
from lot_grpc.embedding.endpoint_options import EndpointOptions
from lot_grpc.embedding.fastembed import open_fastembed
from lot_grpc.embedding.openai import open_openai
from lot_grpc.embedding.reranking import make_reranker
from lot_grpc.knowledge import read_packs
from lot_grpc.parsing.sandbox import SANDBOX
from lot_grpc.ports import Embedder, Reranker, VectorStore
from lot_grpc.reports import Progress
from lot_grpc.services.build import Services
from lot_grpc.services.changes.settings import ChangeFeed
from lot_grpc.services.distillation.distiller import DistillDefaults
from lot_grpc.services.recall.reranks import RerankBounds
from lot_grpc.services.reindex.vector_rebuild import drop_stale
from lot_grpc.services.resources import REGISTRY
from lot_grpc.services.runtime import PatternLearning, ServiceSettings, open_runtime
from lot_grpc.services.store_metadata import REMOTE, open_store
from lot_grpc.settings import DAY, Settings
from lot_grpc.storage.edge import EdgeStore
from lot_grpc.storage.edge_maintenance import compact_in_child, needs_compaction

if TYPE_CHECKING:
    from lot_grpc.storage.qdrant import QdrantStore

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Opened:
    """What serves, but for the port."""

    store: VectorStore
    embedder: Embedder
    services: Services


def require_store(settings: Settings) -> None:
    """Raise StartupError if the embedded store's folder is missing, which opening would create."""
    folder = settings.storage.data_dir
    if settings.storage.store == "edge" and not folder.is_dir():
        raise StartupError(f"{folder} does not exist; set LOT_DATA_DIR to the store's folder")


@asynccontextmanager
async def open_all(
    settings: Settings, progress: Progress | None, *, accept_loss: bool = False
) -> AsyncIterator[Opened]:
    """What is read from files first, since it may be wrong; then the store; then the services.

    ``accept_loss`` opens an embedded store even if data is missing from it.

    Raises:
        StartupError: A knowledge pack, the model or the store cannot be opened.
    """
    async with AsyncExitStack() as stack:
        stack.callback(SANDBOX.close)
        packs = read_packs(settings.seed.packs)
        embedder = await open_embedder(settings, progress)
        stack.push_async_callback(embedder.close)
        compact = settings.storage.store == "edge" and settings.storage.maintenance == "auto"
        if compact and not accept_loss:
            await _maintain(settings.storage.data_dir, progress)
        store = make_store(settings, accept_loss=accept_loss)
        stack.push_async_callback(store.close)
        epoch = await open_store(store, REGISTRY, embedder.contract, progress)
        await drop_stale(store, REGISTRY)
        reranker = _make_reranker(settings)
        stack.push_async_callback(reranker.close)
        runtime = open_runtime(
            store,
            REGISTRY,
            embedder,
            reranker,
            SystemClock(),
            _service_settings(settings, packs),
            epoch=epoch,
        )
        services = Services(runtime, partial(_open_named, settings))
        stack.push_async_callback(services.runtime.model.close)  # it may be another one by then
        yield Opened(services.runtime.stack.model, services.runtime.model, services)


def _service_settings(settings: Settings, packs: Sequence[KnowledgePack]) -> ServiceSettings:
    return ServiceSettings(
        weights=ranking_weights(settings),
        rerank=RerankBounds(settings.rerank.candidates, settings.rerank.seconds),
        similarity=structural_weights(settings),
        learning=_learning(settings),
        changes=ChangeFeed(settings.changes.keep_days * DAY, settings.changes.poll_seconds),
        packs=packs,
        abandon_after_hours=settings.episodes.abandon_after_hours,
    )


def ranking_weights(settings: Settings) -> RankingWeights:
    """How far what was learned may move a hit."""
    configured = settings.ranking
    return RankingWeights(
        configured.reorder_margin,
        configured.learned_weight,
        configured.kernel_width,
        Fading(configured.half_life_days * DAY, configured.decay),
    )


def structural_weights(settings: Settings) -> StructuralWeights:
    """What makes an episode similar to a task, as it is set."""
    configured = settings.recommendation
    return StructuralWeights(
        configured.category_weight,
        configured.task_type_weight,
        configured.complexity_weight,
        configured.text_weight,
    )


def _learning(settings: Settings) -> PatternLearning:
    configured = settings.distill
    return PatternLearning(
        settings.dedupe.similarity,
        DistillDefaults(configured.similarity, configured.min_group_size),
        configured.interval_minutes * 60,
    )


def _make_reranker(settings: Settings) -> Reranker:
    """It reads its files when it is first asked: most servers never are."""
    configured = settings.rerank
    return make_reranker(
        configured.model, path=configured.path, sha256=configured.sha256, threads=configured.threads
    )


async def _open_named(settings: Settings, model: str) -> Embedder:
    """A model to reindex to, by the name that its contract has."""
    remote = model.startswith(REMOTE)
    if remote and settings.embedding.provider != "openai":
        raise StartupError(
            "this server embeds locally and sends no text elsewhere; to switch to an endpoint, "
            "configure it (LOT_EMBEDDING_PROVIDER=openai, LOT_EMBEDDING_MODEL, "
            "LOT_OPENAI_BASE_URL), stop the server and run `lot-grpc reindex --offline`",
            model=model,
        )
    configured: dict[str, object] = {
        "provider": "openai" if remote else "fastembed",
        "model": model.removeprefix(REMOTE),
    }
    if model != settings.embedding.model or settings.reindex.path:
        configured |= {"path": settings.reindex.path, "sha256": settings.reindex.sha256}
    embedding = settings.embedding.model_copy(update=configured)
    try:
        return await open_embedder(settings.model_copy(update={"embedding": embedding}), None)
    except ModelUnavailableError as error:
        for name in ("PATH", "SHA256"):
            error.message = error.message.replace(f"LOT_EMBEDDING_{name}", f"LOT_REINDEX_{name}")
        raise


async def open_embedder(settings: Settings, progress: Progress | None) -> Embedder:
    """The configured model. Raises StartupError."""
    configured = settings.embedding
    if configured.provider == "openai":
        return await _open_remote_embedder(settings)
    return await open_fastembed(
        configured.model,
        path=configured.path,
        sha256=configured.sha256,
        cache_dir=configured.cache_dir,
        allow_download=configured.download,
        threads=configured.threads,
        cache_entries=configured.cache_entries,
        progress=progress,
    )


async def _open_remote_embedder(settings: Settings) -> Embedder:
    configured = settings.openai
    key = configured.api_key.get_secret_value() if configured.api_key else ""
    options = EndpointOptions(**configured.model_dump(exclude={"api_key"}), api_key=key)
    model, entries = settings.embedding.model, settings.embedding.cache_entries
    return await open_openai(model, options, cache_entries=entries)


def make_store(settings: Settings, *, accept_loss: bool = False) -> VectorStore:
    """The configured store. Raises StartupError."""
    configured = settings.storage
    if configured.store == "edge":
        return EdgeStore(
            configured.data_dir,
            SystemClock(),
            min_free_bytes=configured.min_free_bytes,
            sync_always=configured.sync == "always",
            accept_loss=accept_loss,
        )
    return make_qdrant_store(settings)


def make_qdrant_store(settings: Settings) -> QdrantStore:
    """The store on the Qdrant server in the settings."""
    from lot_grpc.storage.qdrant import QdrantStore  # its client takes 2 s to import

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


@asynccontextmanager
async def throwaway(
    settings: Settings, folder: Path, progress: Progress | None = None
) -> AsyncIterator[Services]:
    """The services as they are wired for serving, over an empty embedded store in ``folder``.

    The folder is the caller's to remove. No query is answered from the embedding cache, so that
    each takes the time it takes.

    Raises:
        StartupError: The model or the store cannot be opened.
    """
    data = {"store": "edge", "data_dir": folder, "sync": "off", "maintenance": "off"}
    alone = settings.model_copy(
        update={
            "storage": settings.storage.model_copy(update=data),
            "embedding": settings.embedding.model_copy(update={"cache_entries": 0}),
        }
    )
    async with open_all(alone, progress) as opened:
        yield opened.services
