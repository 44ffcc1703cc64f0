"""Creates the adapters from the settings: the store, the embedder, the reranker."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from lot_grpc.audit_log import OFF, STDOUT, AuditFile, AuditOutput, Reports
from lot_grpc.auth.authenticator import Authenticator
from lot_grpc.auth.files import FileError
from lot_grpc.auth.keys import KeyVerifier
from lot_grpc.clock import SystemClock
from lot_grpc.domain.errors import ModelUnavailableError, StartupError
from lot_grpc.embedding.endpoint_options import EndpointOptions
from lot_grpc.embedding.fastembed import open_fastembed
from lot_grpc.embedding.hash_record import default_record
from lot_grpc.embedding.reranking import make_reranker as open_reranker
from lot_grpc.ports import Embedder, Reranker, VectorStore
from lot_grpc.reports import Progress
from lot_grpc.services.store_metadata import REMOTE
from lot_grpc.settings import AuditSettings, Settings
from lot_grpc.storage.edge import EdgeStore
from lot_grpc.storage.edge_maintenance import compact_in_child, needs_compaction

if TYPE_CHECKING:
    from lot_grpc.auth.key_set_source import KeySource
    from lot_grpc.auth.tokens import TokenVerifier
    from lot_grpc.storage.qdrant import QdrantStore
    from lot_grpc.tls.reloading import ReloadedCertificates

_log = structlog.get_logger()

# --- the store ------------------------------------------------------------------------------------


def require_store(settings: Settings) -> None:
    """Raise StartupError if the embedded store's folder is missing, which opening would create."""
    folder = settings.storage.data_dir
    if settings.storage.store == "edge" and not folder.is_dir():
        raise StartupError(f"{folder} does not exist; set LOT_DATA_DIR to the store's folder")


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


async def compact_grown(folder: Path, progress: Progress | None) -> None:
    """Compact grown collections in a child process, before the port opens: it would block ours."""
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


# --- models ---------------------------------------------------------------------------------------


async def open_embedder(
    settings: Settings, progress: Progress | None, hash_record: Path | None = None
) -> Embedder:
    """Open the configured model. Without ``hash_record``, its files are read in full.

    Raises StartupError.
    """
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
        hash_record=hash_record,
    )


async def open_served_embedder(settings: Settings, progress: Progress | None) -> Embedder:
    """The configured model. Its files are read in full only if they were not verified before.

    Raises StartupError.
    """
    return await open_embedder(settings, progress, default_record())


async def _open_remote_embedder(settings: Settings) -> Embedder:
    from lot_grpc.embedding.openai import open_openai  # httpx is not needed for a local model

    configured = settings.openai
    key = configured.api_key.get_secret_value() if configured.api_key else ""
    options = EndpointOptions(**configured.model_dump(exclude={"api_key"}), api_key=key)
    model, entries = settings.embedding.model, settings.embedding.cache_entries
    return await open_openai(model, options, cache_entries=entries)


async def open_named_embedder(settings: Settings, model: str) -> Embedder:
    """A model to reindex to, by its name in the contract."""
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


def make_reranker(settings: Settings) -> Reranker:
    """The configured reranker. It reads its files at the first rerank: most servers do none."""
    configured = settings.rerank
    return open_reranker(
        configured.model, path=configured.path, sha256=configured.sha256, threads=configured.threads
    )


# --- the audit log --------------------------------------------------------------------------------


def open_audit_log(configured: AuditSettings, reports: Reports) -> AuditOutput | None:
    """Open the configured audit log; None if it is off. Raises StartupError."""
    output, reads = configured.output, configured.reads
    if output == OFF:
        return None
    if output == STDOUT:
        return AuditOutput(reads=reads, reports=reports)
    return AuditFile(
        Path(output).expanduser(),
        reads=reads,
        max_bytes=configured.max_bytes,
        files=configured.files,
        reports=reports,
    )


# --- authentication -------------------------------------------------------------------------------


def make_authenticator(settings: Settings) -> Authenticator | None:
    """What verifies credentials; None if the server asks for none. Call it in the loop that serves.

    Raises StartupError.
    """
    if not settings.authenticates:
        return None
    path = settings.auth.keys
    try:
        keys = KeyVerifier(path) if path else None
        return Authenticator(keys, make_token_verifier(settings))
    except FileError as error:
        raise StartupError(f"{error}; `lot-grpc check` shows whether it can be used") from None


def make_token_verifier(settings: Settings) -> TokenVerifier | None:
    """What verifies tokens; None if none are accepted. Raises FileError."""
    configured = settings.oidc
    if not configured.issuer:
        return None
    from lot_grpc.auth.tokens import TokenRules, TokenVerifier

    rules = TokenRules(**configured.model_dump(exclude={"jwks"}))
    return TokenVerifier(rules, make_key_source(settings))


def make_key_source(settings: Settings) -> KeySource:
    """Where the issuer's keys come from. Raises FileError."""
    from lot_grpc.auth.key_set_source import open_source  # takes 0.1 s to import

    return open_source(settings.oidc.jwks)


# --- TLS ------------------------------------------------------------------------------------------


def open_certificates(settings: Settings) -> ReloadedCertificates | None:
    """The certificates of the server, read and checked; None without TLS. Raises StartupError."""
    tls = settings.tls
    if tls.cert is None or tls.key is None:
        return None
    from lot_grpc.tls.certificates import CertificateFiles  # 30 ms that few need
    from lot_grpc.tls.reloading import ReloadedCertificates

    return ReloadedCertificates(CertificateFiles(tls.cert, tls.key, tls.client_ca))
