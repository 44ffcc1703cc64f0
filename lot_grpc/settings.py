"""All settings, as one tree. Read once, by ``app`` and the command line; nothing else reads them.

A value comes from the environment (``LOT_*``), else from the settings file, else it is the
default. The file ``settings.reference.toml`` beside this one explains each; a test keeps the two
equal.
"""

from __future__ import annotations

import ipaddress
import math
import os
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    StringConstraints,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

MIB = 2**20

REFERENCE_FILE = Path(__file__).with_name("settings.reference.toml")
"""Every setting with its default, commented. A valid settings file itself."""


def _group(prefix: str) -> SettingsConfigDict:
    return SettingsConfigDict(
        env_prefix=prefix,
        env_ignore_empty=True,
        extra="forbid",
        frozen=True,
        str_strip_whitespace=True,
    )


def _empty_is_none(value: object) -> object:
    return None if value == "" else value


OptionalPath = Annotated[
    Annotated[Path, AfterValidator(Path.expanduser)] | None, BeforeValidator(_empty_is_none)
]
OptionalSecret = Annotated[SecretStr | None, BeforeValidator(_empty_is_none)]


def _listed(value: object) -> object:
    """A list as an environment variable gives it: with commas."""
    if not isinstance(value, str):
        return value
    return [part.strip() for part in value.split(",") if part.strip()]


Namespace = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$")]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class ServerSettings(BaseSettings):
    """Where the server listens and how it stops."""

    model_config = _group("LOT_")

    address: str = "127.0.0.1:50051"
    allow_non_loopback: bool = False
    drain_seconds: Seconds = 10.0

    @field_validator("address")
    @classmethod
    def _is_an_address(cls, value: str) -> str:
        host, port = split_address(value)
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    @property
    def host(self) -> str:
        """Host without brackets."""
        return split_address(self.address)[0]

    @property
    def port(self) -> int:
        """Port; 0 lets the system choose a free one."""
        return split_address(self.address)[1]


class LimitSettings(BaseSettings):
    """What one caller, and all callers together, may ask for."""

    model_config = _group("LOT_")

    max_message_bytes: int = Field(default=16 * MIB, ge=64 * 1024, le=2**31 - 1)
    max_concurrent_calls: int = Field(default=256, ge=1)
    max_streams: int = Field(default=512, ge=1)
    max_connections: int = Field(default=1000, ge=1, le=100_000)
    max_request_bytes: int = Field(default=256 * MIB, ge=64 * 1024)
    max_receive_seconds: float = Field(default=20.0, gt=0, allow_inf_nan=False)
    max_call_seconds: Seconds = 60.0
    max_batch_items: int = Field(default=500, ge=1, le=500)


class StorageSettings(BaseSettings):
    """Which store, and how the embedded one treats its folder."""

    model_config = _group("LOT_")

    store: Literal["edge", "qdrant"] = "edge"
    data_dir: Annotated[Path, AfterValidator(Path.expanduser)] = Path("lot-data")
    sync: Literal["off", "always"] = "off"
    min_free_bytes: int = Field(default=400 * MIB, ge=0)
    maintenance: Literal["auto", "off"] = "auto"

    @field_validator("data_dir", mode="before")
    @classmethod
    def _is_named(cls, value: object) -> object:
        if value == "":
            raise ValueError("needs the name of a folder")
        return value


class QdrantSettings(BaseSettings):
    """The Qdrant server, for ``store = "qdrant"``."""

    model_config = _group("LOT_QDRANT_")

    url: str = Field(default="", pattern=r"^(https?://[^\s@]+)?$")
    api_key: OptionalSecret = None
    prefix: str = Field(default="lot_", pattern=r"^[A-Za-z0-9_-]{0,64}$")


class EmbeddingSettings(BaseSettings):
    """The embedding model, who runs it, and where its files are."""

    model_config = _group("LOT_EMBEDDING_")

    provider: Literal["fastembed", "openai"] = "fastembed"
    model: str = Field(default="BAAI/bge-small-en-v1.5", min_length=1)
    path: OptionalPath = None
    sha256: str = Field(default="", pattern=r"^([0-9a-f]{64})?$")
    cache_dir: OptionalPath = None
    download: bool = True
    threads: int = Field(default=0, ge=0, le=256)
    cache_entries: int = Field(default=10_000, ge=0)


class OpenAISettings(BaseSettings):
    """The OpenAI-compatible endpoint, for ``provider = "openai"``."""

    model_config = _group("LOT_OPENAI_")

    base_url: str = Field(default="https://api.openai.com/v1", pattern=r"^https?://[^\s@?#]+$")
    api_key: OptionalSecret = Field(default=None, json_schema_extra={"environment_only": True})
    dimensions: int = Field(default=0, ge=0, le=65_536)
    batch_size: int = Field(default=64, ge=1, le=2048)
    max_concurrent_requests: int = Field(default=4, ge=1, le=256)
    timeout_seconds: float = Field(default=30.0, gt=0, allow_inf_nan=False)
    retries: int = Field(default=2, ge=0, le=20)
    query_prefix: Annotated[str, StringConstraints(strip_whitespace=False)] = ""
    max_tokens: int = Field(default=8192, ge=32)

    @field_validator("api_key")
    @classmethod
    def _or_the_usual_one(cls, value: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        """``OPENAI_API_KEY`` counts for OpenAI's own hosts: it is nobody else's to see."""
        usual = os.environ.get("OPENAI_API_KEY", "").strip()
        if value is not None or not usual or not _is_openai(info.data.get("base_url", "")):
            return value
        return SecretStr(usual)


def _is_openai(url: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme == "https" and f".{parts.hostname}".endswith(".openai.com")


class RerankSettings(BaseSettings):
    """The model that ``rerank`` asks, where its files are, and how much it may do."""

    model_config = _group("LOT_RERANK_")

    model: str = Field(default="cross-encoder/ms-marco-MiniLM-L-12-v2", min_length=1)
    path: OptionalPath = None
    sha256: str = Field(default="", pattern=r"^([0-9a-f]{64})?$")
    candidates: int = Field(default=10, ge=1, le=100)
    seconds: Seconds = 2.0
    threads: int = Field(default=0, ge=0, le=256)


class ReindexSettings(BaseSettings):
    """Where the files of the model are that Reindex goes to."""

    model_config = _group("LOT_REINDEX_")

    path: OptionalPath = None
    sha256: str = Field(default="", pattern=r"^([0-9a-f]{64})?$")


class RankingSettings(BaseSettings):
    """How far what was learned may move a hit."""

    model_config = _group("LOT_RANKING_")

    gate: Share = 0.15
    learned_weight: Share = 0.2
    kernel_width: float = Field(default=0.06, gt=0, le=10)
    half_life_days: float = Field(default=180.0, ge=0, le=36_500)
    decay: float = Field(default=0.93, gt=0, le=1)


class RecommendationSettings(BaseSettings):
    """What makes an episode similar to a task: shares of the structural score."""

    model_config = _group("LOT_RECOMMENDATION_")

    category_weight: Share = 0.4
    task_type_weight: Share = 0.3
    complexity_weight: Share = 0.2
    text_weight: Share = 0.1


class SeedSettings(BaseSettings):
    """The knowledge that is stored when the server starts, and own packs of it."""

    model_config = _group("LOT_SEED_")

    on_start: bool = False
    namespaces: Annotated[tuple[Namespace, ...], NoDecode, BeforeValidator(_listed)] = ("default",)
    packs: Annotated[
        tuple[Annotated[Path, AfterValidator(Path.expanduser)], ...],
        NoDecode,
        BeforeValidator(_listed),
    ] = ()


class DedupeSettings(BaseSettings):
    """When a save with ``dedupe`` SEMANTIC is merged."""

    model_config = _group("LOT_DEDUPE_")

    similarity: Share = 0.95


class DistillSettings(BaseSettings):
    """How patterns are distilled, and how often by itself."""

    model_config = _group("LOT_DISTILL_")

    interval_minutes: float = Field(default=0.0, ge=0, le=525_600, allow_inf_nan=False)
    similarity: Share = 0.85
    min_group_size: int = Field(default=3, ge=2, le=10_000)


class ChangeSettings(BaseSettings):
    """How changes are told to those who watch."""

    model_config = _group("LOT_CHANGES_")

    keep_days: float = Field(default=7.0, gt=0, le=3650, allow_inf_nan=False)
    poll_seconds: float = Field(default=0.5, ge=0.05, le=60, allow_inf_nan=False)


class EpisodeSettings(BaseSettings):
    """When an episode without an end is given up."""

    model_config = _group("LOT_EPISODES_")

    abandon_after_hours: float = Field(default=24.0, ge=0, le=876_000, allow_inf_nan=False)


class StreamSettings(BaseSettings):
    """How streams of events are kept."""

    model_config = _group("LOT_STREAMS_")

    idle_seconds: Seconds = 900.0


class LogSettings(BaseSettings):
    """What is logged, and how."""

    model_config = _group("LOT_LOG_")

    level: Annotated[
        Literal["debug", "info", "warning", "error"],
        BeforeValidator(lambda value: value.lower() if isinstance(value, str) else value),
    ] = "info"
    format: Literal["auto", "json", "console"] = "auto"


class Settings(BaseModel):
    """The whole tree. Immutable; use ``settings_file.load_settings`` to read one."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    server: ServerSettings = Field(default_factory=ServerSettings)
    limits: LimitSettings = Field(default_factory=LimitSettings)
    storage: StorageSettings = Field(default_factory=StorageSettings)
    qdrant: QdrantSettings = Field(default_factory=QdrantSettings)
    embedding: EmbeddingSettings = Field(default_factory=EmbeddingSettings)
    openai: OpenAISettings = Field(default_factory=OpenAISettings)
    rerank: RerankSettings = Field(default_factory=RerankSettings)
    reindex: ReindexSettings = Field(default_factory=ReindexSettings)
    ranking: RankingSettings = Field(default_factory=RankingSettings)
    recommendation: RecommendationSettings = Field(default_factory=RecommendationSettings)
    seed: SeedSettings = Field(default_factory=SeedSettings)
    dedupe: DedupeSettings = Field(default_factory=DedupeSettings)
    distill: DistillSettings = Field(default_factory=DistillSettings)
    changes: ChangeSettings = Field(default_factory=ChangeSettings)
    episodes: EpisodeSettings = Field(default_factory=EpisodeSettings)
    streams: StreamSettings = Field(default_factory=StreamSettings)
    log: LogSettings = Field(default_factory=LogSettings)

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> Self:
        if problems := list(_contradictions(self)):
            raise ValueError("\n".join(problems))
        return self


def _contradictions(settings: Settings) -> list[str]:
    """What no single value shows to be wrong. One sentence each, saying what to change."""
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
    return found + _provider_contradictions(settings) + _weight_contradictions(settings)


def _provider_contradictions(settings: Settings) -> list[str]:
    embedding, endpoint = settings.embedding, settings.openai
    local = embedding.path is not None or bool(embedding.sha256)
    if embedding.provider == "openai" and local:
        return [
            "LOT_EMBEDDING_PATH or LOT_EMBEDDING_SHA256 is set, but LOT_EMBEDDING_PROVIDER=openai "
            "has no model files; remove them, or the provider"
        ]
    elsewhere = endpoint.base_url != OpenAISettings.model_fields["base_url"].default
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
    names = ", ".join(env_name("recommendation", key) for key in weights)
    return [f"the weights {names} add up to {total:g}; they must add up to 1"]


def split_address(address: str) -> tuple[str, int]:
    """Host (without brackets) and port of ``host:port`` or ``[v6]:port``.

    Raises:
        ValueError: It is neither.
    """
    host, colon, port = address.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ValueError("an IPv6 host needs brackets, as in [::1]:50051")
    if not colon or not host or any(letter.isspace() for letter in host):
        raise ValueError("should be host:port, as in 127.0.0.1:50051")
    if not (port.isascii() and port.isdigit() and int(port) <= 65535):
        raise ValueError(f"port {port!r} should be a number from 0 to 65535")
    return host, int(port)


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches ``host``. A name other than localhost counts as not."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def groups() -> dict[str, type[BaseSettings]]:
    """The groups of the tree by name, in the order of the reference file."""
    found: dict[str, type[BaseSettings]] = {}
    for name, field in Settings.model_fields.items():
        kind: Any = field.annotation
        found[name] = kind
    return found


def env_name(group: str, key: str) -> str:
    """Name of the environment variable for a setting, as in ``LOT_DATA_DIR``."""
    return f"{groups()[group].model_config['env_prefix']}{key}".upper()
