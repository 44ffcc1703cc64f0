"""Settings that contradict each other."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from lot_grpc.addresses import is_loopback
from lot_grpc.embedding.endpoint_options import EndpointOptions
from lot_grpc.settings_telemetry import telemetry_contradictions

if TYPE_CHECKING:
    from lot_grpc.settings import Settings


def contradictions(settings: Settings) -> list[str]:
    """Errors that no single value shows. One sentence each, saying what to change."""
    server, storage, qdrant = settings.server, settings.storage, settings.qdrant
    found: list[str] = []
    if not is_loopback(server.host) and not server.allow_non_loopback:
        found.append(
            f"LOT_ADDRESS={server.address} is reachable from other machines, and calls are neither "
            "encrypted nor authenticated; bind 127.0.0.1, or set LOT_ALLOW_NON_LOOPBACK=true "
            "if the network around it is closed"
        )
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
        *_provider_contradictions(settings),
        *_weight_contradictions(settings),
        *telemetry_contradictions(settings.metrics, settings.otel),
    ]


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
