"""Checks whether the service can start: opens everything it needs, creates nothing."""

from __future__ import annotations

from collections.abc import Sequence

from lot_grpc.adapters import open_certificates, open_embedder
from lot_grpc.auth_checks import auth_checks
from lot_grpc.bootstrap import open_all, secret_finder
from lot_grpc.domain.counting import counted
from lot_grpc.domain.errors import (
    KnowledgePackInvalidError,
    LotError,
    ModelAbsentError,
    ModelUnavailableError,
    RedactionRulesInvalidError,
)
from lot_grpc.embedding.catalog import card_of, reranker_card_of
from lot_grpc.embedding.download import source_of
from lot_grpc.embedding.model_files import locate, locate_reranker
from lot_grpc.knowledge import read_packs
from lot_grpc.ports import EmbeddingContract, StoreInfo
from lot_grpc.reports import Check, CheckReport, ModelReport, StoreReport
from lot_grpc.services.admin import check_model
from lot_grpc.services.build import Services
from lot_grpc.services.derived_data import needs_rebuild
from lot_grpc.settings import Settings
from lot_grpc.settings_telemetry import missing_extra
from lot_grpc.store_preview import leaving_no_files, missing_collections, preview
from lot_grpc.tls.certificates import CertificateError, day

_OTHER_DERIVATION = (
    "their terms and signatures are from another version; the next start rebuilds them before it "
    "serves, which takes longer than usual"
)


async def check(settings: Settings, *, may_download: bool = False) -> CheckReport:
    """Open everything that ``serve`` would, except the port, and report. Never raises a LotError.

    Nothing is created or downloaded. ``may_download``: whether ``serve`` could download the model.
    """
    model: ModelReport | None = None
    checks = [
        *_tls_checks(settings),
        _knowledge_check(settings),
        _redaction_check(settings),
        *await auth_checks(settings),
    ]
    if problem := missing_extra(settings.otel):
        checks.append(Check("traces", ok=False, detail=problem))
    if settings.embedding.provider == "fastembed":
        try:
            model = _model_report(settings)
        except ModelUnavailableError as error:
            detail = _download_text(settings, error) if may_download else error.message
            return CheckReport((*checks, Check("model", ok=False, detail=detail)))
        detail = f"{model.file} ({model.origin}); nothing is downloaded"
        checks.append(Check("model file", ok=True, detail=detail))
    quiet = settings.model_copy(
        update={
            "storage": settings.storage.model_copy(update={"maintenance": "off"}),
            "seed": settings.seed.model_copy(update={"packs": ()}),  # they were read above
        }
    )
    try:
        with leaving_no_files(settings.storage.data_dir):
            if missing := await missing_collections(settings):
                contract, found, info = await _preview(quiet, missing)
            else:
                contract, found, info = await _opened(quiet)
    except LotError as error:
        name = "model" if isinstance(error, ModelUnavailableError) else "store"
        return CheckReport((*checks, Check(name, ok=False, detail=error.message)), model)
    model = model or _remote_model_report(settings, contract)
    checks += [*found, _reranker_check(settings)]
    return CheckReport(tuple(checks), model, _store_report(info))


async def _opened(settings: Settings) -> tuple[EmbeddingContract, list[Check], StoreInfo]:
    """Open a complete store and check it."""
    async with open_all(settings, None) as opened:
        ready = await opened.services.admin.ready_checks()
        checks = [Check(one.name, one.ok, one.detail) for one in ready]
        if over := await over_quota(opened.services):
            checks.append(Check("quotas", ok=True, detail=over))
        if await needs_rebuild(opened.store):
            checks.append(Check("records", ok=True, detail=_OTHER_DERIVATION))
        return opened.embedder.contract, checks, await opened.store.info()


async def over_quota(services: Services) -> str:
    """The namespaces that hold more than their quota."""
    quotas = services.runtime.stack.quotas
    over: list[str] = []
    names = {stored.namespace async for stored in services.retention.policies.all()}
    if quotas.counters.default:
        names |= await services.clearing.namespaces.names()
    for name in sorted(names):
        if await quotas.counters.limit_of(name):
            held = await quotas.of(name)
            over += [f"{name} ({unit})" for unit in held.exceeded]
    return f"over their quota, so writes are refused: {', '.join(over)}" if over else ""


async def _preview(
    settings: Settings, missing: Sequence[str]
) -> tuple[EmbeddingContract, list[Check], StoreInfo]:
    """Check a store that a start would have to create or complete."""
    embedder = await open_embedder(settings, None)
    try:
        ready = await check_model(embedder)
        info, detail = await preview(settings, embedder.contract, missing)
    finally:
        await embedder.close()
    checks = [Check(ready.name, ready.ok, ready.detail), Check("store", ok=True, detail=detail)]
    return embedder.contract, checks, info


def _download_text(settings: Settings, error: ModelUnavailableError) -> str:
    if not isinstance(error, ModelAbsentError):
        return error.message
    configured = settings.embedding
    source = source_of(card_of(configured.model), configured.cache_dir)
    return (
        f"{configured.model} is not on this machine; `lot-grpc serve` would download it from "
        f"{source}, which is allowed (LOT_EMBEDDING_DOWNLOAD=false or HF_HUB_OFFLINE=1 forbids "
        "it); start it once with the network, or set LOT_EMBEDDING_PATH to a folder with the model"
    )


def _model_report(settings: Settings) -> ModelReport:
    configured = settings.embedding
    files = locate(
        card_of(configured.model),
        path=configured.path,
        sha256=configured.sha256,
        cache_dir=configured.cache_dir,
        allow_download=configured.download,
    )
    return ModelReport(
        name=files.card.name,
        dimensions=files.card.dimensions,
        file=str(files.folder / files.model_file),
        sha256=files.sha256,
        origin=files.origin,
    )


def _tls_checks(settings: Settings) -> list[Check]:
    """What the certificates are good for, and what an operator should change about them."""
    try:
        found = open_certificates(settings)
    except CertificateError as error:
        return [Check("tls", ok=False, detail=error.message)]
    if found is None:
        return []
    names = ", ".join(found.current.names) or "no host name"
    detail = f"{names}, until {day(found.current.expire_time)}"
    return [Check("tls", ok=True, detail=one) for one in (detail, *found.warnings)]


def _knowledge_check(settings: Settings) -> Check:
    try:
        packs = read_packs(settings.seed.packs)
    except KnowledgePackInvalidError as error:
        return Check("knowledge", ok=False, detail=error.message)
    listed = ", ".join(f"{pack.name} ({pack.size})" for pack in packs)
    return Check("knowledge", ok=True, detail=listed)


def _redaction_check(settings: Settings) -> Check:
    try:
        redacts = secret_finder(settings) is not None
    except RedactionRulesInvalidError as error:
        return Check("redaction", ok=False, detail=error.message)
    files = len(settings.redact.rules)
    own = f", with the rules of {counted(files, 'file')}" if files else ""
    return Check("redaction", ok=True, detail=("on" if redacts else "off (LOT_REDACT)") + own)


def _reranker_check(settings: Settings) -> Check:
    """The reranker is optional, so the check fails only if one was configured."""
    configured = settings.rerank
    try:
        card = reranker_card_of(configured.model)
        files = locate_reranker(card, path=configured.path, sha256=configured.sha256)
    except ModelUnavailableError as error:
        named = configured.path is not None or configured.sha256 != ""
        detail = f"none, so rerank is rejected: {error.message}"
        return Check("reranker", ok=not named, detail=detail)
    return Check("reranker", ok=True, detail=f"{files.folder / files.model_file} ({files.origin})")


def _remote_model_report(settings: Settings, contract: EmbeddingContract) -> ModelReport:
    return ModelReport(
        name=contract.model,
        dimensions=contract.dimensions,
        file="",
        sha256="",
        origin=settings.openai.base_url,
    )


def _store_report(info: StoreInfo) -> StoreReport:
    return StoreReport(
        backend=info.backend,
        location=info.location,
        points=dict(info.points),
        used_bytes=info.used_bytes,
        free_bytes=info.free_bytes,
        writable=info.writable,
    )
