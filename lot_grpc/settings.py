"""All settings, as one tree. Read once, by ``app`` and the command line; nothing else reads them.

A value comes from the environment (``LOT_*``), else from the settings file, else it is the default,
which is defined next to what it configures. The file ``settings.reference.toml`` in this folder
explains each; a test checks that it, and the defaults in the documents, agree with this module.
"""

from __future__ import annotations

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

from lot_grpc.addresses import normal_address, split_address
from lot_grpc.audit_log import OFF
from lot_grpc.domain.change import DEFAULT_KEEP_SECONDS, DEFAULT_POLL_SECONDS
from lot_grpc.domain.distillation import DEFAULT_GROUP_SIZE, DEFAULT_SIMILARITY
from lot_grpc.domain.episode import DEFAULT_ABANDON_HOURS
from lot_grpc.domain.ids import DEFAULT_NAMESPACE
from lot_grpc.domain.pattern import DEFAULT_MERGE_SIMILARITY
from lot_grpc.domain.ranking import RankingWeights
from lot_grpc.domain.recommendation import DEFAULT_WEIGHTS
from lot_grpc.domain.reranking import DEFAULT_CANDIDATES, DEFAULT_SECONDS
from lot_grpc.embedding.catalog import DEFAULT_CACHE_ENTRIES, DEFAULT_MODEL, DEFAULT_RERANKER
from lot_grpc.embedding.endpoint_options import EndpointOptions
from lot_grpc.server.limits import Limits
from lot_grpc.settings_auth import AuthSettings, OidcSettings
from lot_grpc.settings_checks import contradictions
from lot_grpc.settings_limits import PrincipalLimitSettings, QuotaSettings
from lot_grpc.settings_telemetry import MetricsSettings, OtelSettings
from lot_grpc.settings_tls import TlsSettings
from lot_grpc.settings_types import (
    Group,
    Namespace,
    OptionalPath,
    OptionalSecret,
    Seconds,
    Share,
    listed,
)
from lot_grpc.storage.space import DEFAULT_MIN_FREE_BYTES

MIB = 2**20
DAY = 24 * 3600.0

_LIMITS = Limits()
_ENDPOINT = EndpointOptions()
_RANKING = RankingWeights()

REFERENCE_FILE = Path(__file__).with_name("settings.reference.toml")
"""Every setting with its default, commented. A valid settings file itself."""


class ServerSettings(Group):
    """Where the server listens, and how it stops."""

    address: str = "127.0.0.1:50051"
    allow_plaintext: bool = False
    allow_anonymous: bool = False
    health: bool = True
    reflection: bool = True
    drain_seconds: Seconds = 10.0

    @field_validator("address")
    @classmethod
    def _is_an_address(cls, value: str) -> str:
        return normal_address(value)

    @property
    def host(self) -> str:
        """Host without brackets."""
        return split_address(self.address)[0]

    @property
    def port(self) -> int:
        """Port; 0 lets the system choose a free one."""
        return split_address(self.address)[1]


class LimitSettings(Group):
    """Limits for one caller, and for all callers together."""

    max_message_bytes: int = Field(default=_LIMITS.max_message_bytes, ge=64 * 1024, le=2**31 - 1)
    max_concurrent_calls: int = Field(default=_LIMITS.max_concurrent_calls, ge=1)
    max_streams: int = Field(default=_LIMITS.max_streams, ge=1)
    max_connections: int = Field(default=_LIMITS.max_connections, ge=1, le=100_000)
    max_request_bytes: int = Field(default=_LIMITS.max_request_bytes, ge=64 * 1024)
    max_receive_seconds: float = Field(
        default=_LIMITS.max_receive_seconds, gt=0, allow_inf_nan=False
    )
    max_call_seconds: Seconds = _LIMITS.max_call_seconds
    max_batch_items: int = Field(default=500, ge=1, le=500)


class StorageSettings(Group):
    """The store, and how the embedded one uses its folder."""

    store: Literal["edge", "qdrant"] = "edge"
    data_dir: Annotated[Path, AfterValidator(Path.expanduser)] = Path("lot-data")
    sync: Literal["off", "always"] = "off"
    min_free_bytes: int = Field(default=DEFAULT_MIN_FREE_BYTES, ge=0)
    maintenance: Literal["auto", "off"] = "auto"

    @field_validator("data_dir", mode="before")
    @classmethod
    def _is_named(cls, value: object) -> object:
        if value == "":
            raise ValueError("needs the name of a folder")
        return value


class QdrantSettings(Group):
    """The Qdrant server, for ``store = "qdrant"``."""

    env_prefix = "LOT_QDRANT_"

    url: str = Field(default="", pattern=r"^(https?://[^\s@]+)?$")
    api_key: OptionalSecret = None
    prefix: str = Field(default="lot_", pattern=r"^[A-Za-z0-9_-]{0,64}$")


class EmbeddingSettings(Group):
    """The embedding model, its provider, and where its files are."""

    env_prefix = "LOT_EMBEDDING_"

    provider: Literal["fastembed", "openai"] = "fastembed"
    model: str = Field(default=DEFAULT_MODEL, min_length=1)
    path: OptionalPath = None
    sha256: str = Field(default="", pattern=r"^([0-9a-f]{64})?$")
    cache_dir: OptionalPath = None
    download: bool = True
    threads: int = Field(default=0, ge=0, le=256)
    cache_entries: int = Field(default=DEFAULT_CACHE_ENTRIES, ge=0)


class OpenAISettings(Group):
    """The OpenAI-compatible endpoint, for ``provider = "openai"``."""

    env_prefix = "LOT_OPENAI_"

    base_url: str = Field(default=_ENDPOINT.base_url, pattern=r"^https?://[^\s@?#]+$")
    api_key: OptionalSecret = Field(default=None, json_schema_extra={"environment_only": True})
    dimensions: int = Field(default=_ENDPOINT.dimensions, ge=0, le=65_536)
    batch_size: int = Field(default=_ENDPOINT.batch_size, ge=1, le=2048)
    max_concurrent_requests: int = Field(default=_ENDPOINT.max_concurrent_requests, ge=1, le=256)
    timeout_seconds: float = Field(default=_ENDPOINT.timeout_seconds, gt=0, allow_inf_nan=False)
    retries: int = Field(default=_ENDPOINT.retries, ge=0, le=20)
    query_prefix: Annotated[str, StringConstraints(strip_whitespace=False)] = _ENDPOINT.query_prefix
    max_tokens: int = Field(default=_ENDPOINT.max_tokens, ge=32)

    @field_validator("api_key")
    @classmethod
    def _or_the_usual_one(cls, value: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        """Use ``OPENAI_API_KEY`` for OpenAI's own hosts only: no other host may see it."""
        usual = os.environ.get("OPENAI_API_KEY", "").strip()
        if value is not None or not usual or not _is_openai(info.data.get("base_url", "")):
            return value
        return SecretStr(usual)


def _is_openai(url: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme == "https" and f".{parts.hostname}".endswith(".openai.com")


class RerankSettings(Group):
    """The model for ``rerank``, where its files are, and its limits."""

    env_prefix = "LOT_RERANK_"

    model: str = Field(default=DEFAULT_RERANKER, min_length=1)
    path: OptionalPath = None
    sha256: str = Field(default="", pattern=r"^([0-9a-f]{64})?$")
    candidates: int = Field(default=DEFAULT_CANDIDATES, ge=1, le=100)
    seconds: Seconds = DEFAULT_SECONDS
    threads: int = Field(default=0, ge=0, le=256)


class ReindexSettings(Group):
    """Where the files of Reindex's target model are."""

    env_prefix = "LOT_REINDEX_"

    path: OptionalPath = None
    sha256: str = Field(default="", pattern=r"^([0-9a-f]{64})?$")


class RankingSettings(Group):
    """How far learning may move a hit."""

    env_prefix = "LOT_RANKING_"

    reorder_margin: Share = _RANKING.reorder_margin
    learned_weight: Share = _RANKING.learned
    kernel_width: float = Field(default=_RANKING.kernel_width, gt=0, le=10)
    half_life_days: float = Field(default=_RANKING.fading.half_life / DAY, ge=0, le=36_500)
    decay: float = Field(default=_RANKING.fading.decay, gt=0, le=1)


class RecommendationSettings(Group):
    """What makes an episode similar to a task: shares of the structural score."""

    env_prefix = "LOT_RECOMMENDATION_"

    category_weight: Share = DEFAULT_WEIGHTS.category
    task_type_weight: Share = DEFAULT_WEIGHTS.task_type
    complexity_weight: Share = DEFAULT_WEIGHTS.complexity
    text_weight: Share = DEFAULT_WEIGHTS.text


class SeedSettings(Group):
    """The knowledge to store when the server starts, and custom packs."""

    env_prefix = "LOT_SEED_"

    on_start: bool = False
    namespaces: Annotated[tuple[Namespace, ...], BeforeValidator(listed)] = (DEFAULT_NAMESPACE,)
    packs: Annotated[
        tuple[Annotated[Path, AfterValidator(Path.expanduser)], ...],
        BeforeValidator(listed),
    ] = ()


class DedupeSettings(Group):
    """When a save with ``dedupe`` SEMANTIC is merged."""

    env_prefix = "LOT_DEDUPE_"

    similarity: Share = DEFAULT_MERGE_SIMILARITY


class DistillSettings(Group):
    """How patterns are distilled, and how often automatically."""

    env_prefix = "LOT_DISTILL_"

    interval_minutes: float = Field(default=0.0, ge=0, le=525_600, allow_inf_nan=False)
    similarity: Share = DEFAULT_SIMILARITY
    min_group_size: int = Field(default=DEFAULT_GROUP_SIZE, ge=2, le=10_000)


class ChangeSettings(Group):
    """How changes are published to watchers."""

    env_prefix = "LOT_CHANGES_"

    keep_days: float = Field(default=DEFAULT_KEEP_SECONDS / DAY, gt=0, le=3650, allow_inf_nan=False)
    poll_seconds: float = Field(default=DEFAULT_POLL_SECONDS, ge=0.05, le=60, allow_inf_nan=False)


class EpisodeSettings(Group):
    """When an episode without an end is abandoned."""

    env_prefix = "LOT_EPISODES_"

    abandon_after_hours: float = Field(
        default=DEFAULT_ABANDON_HOURS, ge=0, le=876_000, allow_inf_nan=False
    )


class StreamSettings(Group):
    """Limits of streams of events."""

    env_prefix = "LOT_STREAMS_"

    idle_seconds: Seconds = _LIMITS.stream_idle_seconds


class LogSettings(Group):
    """What is logged, and how."""

    env_prefix = "LOT_LOG_"

    level: Annotated[
        Literal["debug", "info", "warning", "error"],
        BeforeValidator(lambda value: value.lower() if isinstance(value, str) else value),
    ] = "info"
    format: Literal["auto", "json", "console"] = "auto"


class AuditSettings(Group):
    """Where the audit log is written, and what of it is kept."""

    env_prefix = "LOT_AUDIT_"
    env_main = "output"

    output: str = Field(default=OFF, min_length=1)
    reads: bool = False
    max_bytes: int = Field(default=64 * MIB, ge=64 * 1024)
    files: int = Field(default=10, ge=1, le=1000)


class RedactSettings(Group):
    """Whether secrets are taken out of what is stored, and by which rules."""

    env_prefix = "LOT_REDACT_"
    env_main = "enabled"

    enabled: bool = False
    rules: Annotated[
        tuple[Annotated[Path, AfterValidator(Path.expanduser)], ...],
        BeforeValidator(listed),
    ] = ()
    rules_off: Annotated[tuple[str, ...], BeforeValidator(listed)] = ()


class Settings(BaseModel):
    """The whole tree. Immutable; use ``settings_file.load_settings`` to read one."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    server: ServerSettings = Field(default_factory=ServerSettings)
    auth: AuthSettings = Field(default_factory=AuthSettings)
    oidc: OidcSettings = Field(default_factory=OidcSettings)
    tls: TlsSettings = Field(default_factory=TlsSettings)
    limits: LimitSettings = Field(default_factory=LimitSettings)
    principal_limits: PrincipalLimitSettings = Field(default_factory=PrincipalLimitSettings)
    quotas: QuotaSettings = Field(default_factory=QuotaSettings)
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
    redact: RedactSettings = Field(default_factory=RedactSettings)
    log: LogSettings = Field(default_factory=LogSettings)
    audit: AuditSettings = Field(default_factory=AuditSettings)
    metrics: MetricsSettings = Field(default_factory=MetricsSettings)
    otel: OtelSettings = Field(default_factory=OtelSettings)

    @property
    def observed(self) -> bool:
        """Whether metrics or traces go anywhere."""
        return bool(self.metrics.address or self.otel.endpoint)

    @property
    def authenticates(self) -> bool:
        """Whether callers must say who they are."""
        return self.auth.keys is not None or bool(self.oidc.issuer)

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> Self:
        if problems := contradictions(self):
            raise ValueError("\n".join(problems))
        return self


def groups() -> dict[str, type[Group]]:
    """The groups of the tree by name, in the order of the reference file."""
    found: dict[str, type[Group]] = {}
    for name, field in Settings.model_fields.items():
        kind: Any = field.annotation
        found[name] = kind
    return found


def env_name(group: str, key: str) -> str:
    """Name of the environment variable for a setting, as in ``LOT_DATA_DIR``."""
    kind = groups()[group]
    name = kind.env_prefix.rstrip("_") if key == kind.env_main else f"{kind.env_prefix}{key}"
    return name.upper()
