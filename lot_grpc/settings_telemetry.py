"""Settings of metrics and traces."""

from __future__ import annotations

import re
from contextlib import suppress
from importlib.util import find_spec

from pydantic import Field, field_validator

from lot_grpc.addresses import is_loopback, split_address
from lot_grpc.settings_types import Group, Share


class MetricsSettings(Group):
    """Where Prometheus scrapes the metrics."""

    env_prefix = "LOT_METRICS_"

    address: str = ""
    allow_non_loopback: bool = False

    @field_validator("address")
    @classmethod
    def _is_an_address(cls, value: str) -> str:
        if value:
            split_address(value)
        return value

    @property
    def host_and_port(self) -> tuple[str, int] | None:
        """The address; None: metrics are not served."""
        return split_address(self.address) if self.address else None


class OtelSettings(Group):
    """The OpenTelemetry collector that traces and metrics are sent to."""

    env_prefix = "LOT_OTEL_"

    endpoint: str = ""
    sample_ratio: Share = 1.0
    metrics_seconds: float = Field(default=60.0, ge=0, le=86_400, allow_inf_nan=False)
    contents: bool = False

    @field_validator("endpoint")
    @classmethod
    def _is_a_url(cls, value: str) -> str:
        if value and not re.fullmatch(r"https?://[^\s@?#/]+:[0-9]+/?", value):
            raise ValueError("should be http:// or https:// with host and port, and no more")
        return value


def telemetry_contradictions(metrics: MetricsSettings, otel: OtelSettings) -> list[str]:
    """Errors that no single value shows. One sentence each, saying what to change."""
    found = []
    served = metrics.host_and_port
    if served and not is_loopback(served[0]) and not metrics.allow_non_loopback:
        found.append(
            f"LOT_METRICS_ADDRESS={metrics.address} is reachable from other machines, and metrics "
            "are served to whoever asks; bind 127.0.0.1, or set "
            "LOT_METRICS_ALLOW_NON_LOOPBACK=true if the network around it is closed"
        )
    if otel.contents and not otel.endpoint:
        found.append(
            "LOT_OTEL_CONTENTS=true needs a collector; set LOT_OTEL_ENDPOINT, or remove it"
        )
    return found


def missing_extra(otel: OtelSettings) -> str:
    """What to install for the collector; empty if nothing is missing."""
    if not otel.endpoint:
        return ""
    with suppress(ModuleNotFoundError):  # not even the packages around it
        if find_spec("opentelemetry.exporter.otlp.proto.grpc") and find_spec("opentelemetry.sdk"):
            return ""
    return (
        "LOT_OTEL_ENDPOINT is set, but OpenTelemetry is not installed; run "
        '`pip install "lot-grpc[otel]"`, or remove it'
    )
