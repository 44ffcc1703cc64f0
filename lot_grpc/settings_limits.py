"""Settings that limit single principals and namespaces."""

from __future__ import annotations

from pydantic import Field

from lot_grpc.settings_types import Group


class PrincipalLimitSettings(Group):
    """How much one principal may call; 0 means no limit."""

    env_prefix = "LOT_PRINCIPAL_"

    calls_per_second: float = Field(default=0.0, ge=0, le=1e6, allow_inf_nan=False)
    burst: int = Field(default=0, ge=0, le=1_000_000)
    concurrent_calls: int = Field(default=0, ge=0, le=1_000_000)
    streams: int = Field(default=0, ge=0, le=1_000_000)


class QuotaSettings(Group):
    """How much a namespace may hold if its policy sets no quota; 0 means no limit."""

    env_prefix = "LOT_QUOTA_"

    records: int = Field(default=0, ge=0, le=2**63 - 1)
    bytes: int = Field(default=0, ge=0, le=2**63 - 1)
