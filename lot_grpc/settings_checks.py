"""Settings that contradict each other."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from lot_grpc.addresses import is_loopback
from lot_grpc.embedding.endpoint_options import EndpointOptions
from lot_grpc.settings_telemetry import telemetry_contradictions
from lot_grpc.settings_tls import tls_contradictions

if TYPE_CHECKING:
    from lot_grpc.settings import Settings


def contradictions(settings: Settings) -> list[str]:
    """Errors that no single value shows. One sentence each, saying what to change."""
    server, storage, qdrant = settings.server, settings.storage, settings.qdrant
    found: list[str] = []
    found += _exposures(settings) + tls_contradictions(settings.tls, server.address)
    limits = settings.limits
    if limits.max_request_bytes < limits.max_message_bytes:
        found.append(
            f"LOT_MAX_REQUEST_BYTES={limits.max_request_bytes} is below the largest request; set "
            f"it to LOT_MAX_MESSAGE_BYTES={limits.max_message_bytes} or more"
        )
    if storage.store == "qdrant" and not qdrant.url:
        found.append("LOT_STORE=qdrant needs LOT_QDRANT_URL")
    if storage.store == "edge" and (qdrant.url or qdrant.api_key):
        found.append(
            "LOT_QDRANT_URL or LOT_QDRANT_API_KEY is set, but LOT_STORE=edge stores everything in "
            "a local folder; set LOT_STORE=qdrant, or remove them"
        )
    if storage.store == "qdrant" and storage.sync == "always":
        found.append(
            "LOT_SYNC=always is only for LOT_STORE=edge; a Qdrant server syncs by its own "
            "settings. Remove it"
        )
    if settings.seed.on_start and not settings.seed.namespaces:
        found.append(
            "LOT_SEED_ON_START=true needs a namespace to store into; set LOT_SEED_NAMESPACES, or "
            "remove LOT_SEED_ON_START"
        )
    return [
        *found,
        *_oidc_contradictions(settings),
        *_provider_contradictions(settings),
        *_weight_contradictions(settings),
        *telemetry_contradictions(settings.metrics, settings.otel),
    ]


def _oidc_contradictions(settings: Settings) -> list[str]:
    oidc = settings.oidc
    needed = {
        "LOT_OIDC_ISSUER": oidc.issuer,
        "LOT_OIDC_AUDIENCE": oidc.audience,
        "LOT_OIDC_JWKS": oidc.jwks,
    }
    missing = [name for name, value in needed.items() if not value]
    if missing and oidc != type(oidc)():
        return [f"tokens of an OIDC provider also need {' and '.join(missing)}"]
    url = urlsplit(oidc.jwks)
    if url.scheme == "http" and not is_loopback(url.hostname or ""):
        return [
            f"LOT_OIDC_JWKS={oidc.jwks} is not encrypted, so others could substitute their own "
            "keys; use https (http is only accepted to this machine)"
        ]
    return []


def _exposures(settings: Settings) -> list[str]:
    """What is open to other machines without having been allowed by name."""
    server, found = settings.server, []
    if is_loopback(server.host):
        return []
    reached = f"LOT_ADDRESS={server.address} is reachable from other machines, and"
    if not settings.tls.enabled and not server.allow_plaintext:
        found.append(
            f"{reached} calls are not encrypted; bind 127.0.0.1, set LOT_TLS_CERT and LOT_TLS_KEY, "
            "or set LOT_ALLOW_PLAINTEXT=true if nobody can listen on the network path"
        )
    identified = settings.authenticates or settings.tls.requires_certificates
    if not identified and not server.allow_anonymous:
        found.append(
            f"{reached} whoever reaches it may read and write everything; bind 127.0.0.1, set "
            "LOT_AUTH_KEYS (`lot-grpc keys create` creates the file), or set "
            "LOT_ALLOW_ANONYMOUS=true if everyone on that network may"
        )
    return found


def _provider_contradictions(settings: Settings) -> list[str]:
    embedding, endpoint = settings.embedding, settings.openai
    local = embedding.path is not None or bool(embedding.sha256)
    if embedding.provider == "openai" and local:
        return [
            "LOT_EMBEDDING_PATH or LOT_EMBEDDING_SHA256 is set, but LOT_EMBEDDING_PROVIDER=openai "
            "has no model files; remove them, or the provider"
        ]
    elsewhere = endpoint.base_url != EndpointOptions().base_url
    if embedding.provider == "fastembed" and elsewhere:
        return [
            "LOT_OPENAI_BASE_URL is set, but LOT_EMBEDDING_PROVIDER=fastembed embeds on this "
            "machine; set LOT_EMBEDDING_PROVIDER=openai, or remove it"
        ]
    return []


def _weight_contradictions(settings: Settings) -> list[str]:
    weights: dict[str, float] = settings.recommendation.model_dump()
    if math.isclose(total := math.fsum(weights.values()), 1.0, abs_tol=1e-9):
        return []
    prefix = settings.recommendation.env_prefix
    names = ", ".join(f"{prefix}{key}".upper() for key in weights)
    return [f"the weights {names} add up to {total:g}; they must add up to 1"]
