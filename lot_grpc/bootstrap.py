"""Creates the services from the settings: opens the adapters, and builds the services on them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from lot_grpc.adapters import (
    compact_grown,
    make_reranker,
    make_store,
    open_embedder,
    open_named_embedder,
)
from lot_grpc.clock import SystemClock
from lot_grpc.domain.context_stats import Fading
from lot_grpc.domain.knowledge import KnowledgePack
from lot_grpc.domain.quota import Quota
from lot_grpc.domain.ranking import RankingWeights
from lot_grpc.domain.recommendation import StructuralWeights
from lot_grpc.knowledge import read_packs
from lot_grpc.parsing.sandbox import SANDBOX
from lot_grpc.ports import Embedder, VectorStore
from lot_grpc.redaction import SecretFinder, read_rules
from lot_grpc.reports import Progress
from lot_grpc.services.build import Services
from lot_grpc.services.changes.settings import ChangeFeed
from lot_grpc.services.distillation.distiller import DistillDefaults
from lot_grpc.services.observed_store import ObservedStore
from lot_grpc.services.recall.reranks import RerankBounds
from lot_grpc.services.reindex.vector_rebuild import drop_stale
from lot_grpc.services.resources import REGISTRY
from lot_grpc.services.runtime import PatternLearning, ServiceSettings, open_runtime
from lot_grpc.services.store_metadata import open_store
from lot_grpc.settings import DAY, Settings


@dataclass(frozen=True, slots=True)
class Opened:
    """Everything needed to serve, except the port."""

    store: VectorStore
    embedder: Embedder
    services: Services


@asynccontextmanager
async def open_all(
    settings: Settings,
    progress: Progress | None,
    *,
    accept_loss: bool = False,
    embedder: Awaitable[Embedder] | None = None,
) -> AsyncIterator[Opened]:
    """Open the model and the knowledge packs first, then the store, then the services.

    ``accept_loss`` opens an embedded store even if data is missing from it. ``embedder`` is the
    configured model if it is being opened already; else its files are read in full and verified.

    Raises:
        StartupError: A knowledge pack, the model or the store cannot be opened.
    """
    async with AsyncExitStack() as stack:
        stack.callback(SANDBOX.close)
        model = await (embedder or open_embedder(settings, progress))
        stack.push_async_callback(model.close)
        packs = read_packs(settings.seed.packs)
        compact = settings.storage.store == "edge" and settings.storage.maintenance == "auto"
        if compact and not accept_loss:
            await compact_grown(settings.storage.data_dir, progress)
        store = make_store(settings, accept_loss=accept_loss)
        stack.push_async_callback(store.close)
        if settings.observed:
            store = ObservedStore(store)
        epoch = await open_store(store, REGISTRY, model.contract, progress)
        await drop_stale(store, REGISTRY)
        reranker = make_reranker(settings)
        stack.push_async_callback(reranker.close)
        runtime = open_runtime(
            store,
            REGISTRY,
            model,
            reranker,
            SystemClock(),
            _service_settings(settings, packs),
            epoch=epoch,
        )
        services = Services(runtime, partial(open_named_embedder, settings))
        stack.push_async_callback(services.runtime.model.close)  # it may be a different one by then
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
        quota=Quota(settings.quotas.records, settings.quotas.bytes),
    )


def ranking_weights(settings: Settings) -> RankingWeights:
    """The configured limits on how far learning may move a hit."""
    configured = settings.ranking
    return RankingWeights(
        configured.reorder_margin,
        configured.learned_weight,
        configured.kernel_width,
        Fading(configured.half_life_days * DAY, configured.decay),
    )


def structural_weights(settings: Settings) -> StructuralWeights:
    """The configured weights of the similarity of an episode to a task."""
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


def secret_finder(settings: Settings) -> SecretFinder | None:
    """What finds the secrets that are redacted; None: nothing is redacted.

    Raises:
        RedactionRulesInvalidError: The rules cannot be used; they are read in any case.
    """
    configured = settings.redact
    rules = read_rules(configured.rules, configured.rules_off)
    return SecretFinder(rules) if configured.enabled else None


@asynccontextmanager
async def throwaway(
    settings: Settings, folder: Path, progress: Progress | None = None
) -> AsyncIterator[Services]:
    """The services as wired for serving, over an empty embedded store in ``folder``.

    The caller removes the folder. No query is answered from the embedding cache, so that each takes
    its full time.

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
