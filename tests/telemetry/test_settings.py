"""What is configured but not installed is said, with what to install."""

from __future__ import annotations

import pytest

from lot_grpc import settings_telemetry
from lot_grpc.settings_telemetry import OtelSettings, missing_extra


@pytest.mark.parametrize("nothing", [None, ModuleNotFoundError("opentelemetry")])
def test_a_collector_without_the_extra_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, nothing: Exception | None
) -> None:
    def absent(_: str) -> None:
        if nothing is not None:
            raise nothing

    otel = OtelSettings(endpoint="http://127.0.0.1:4317")
    assert missing_extra(otel) == ""
    monkeypatch.setattr(settings_telemetry, "find_spec", absent)
    assert 'pip install "lot-grpc[otel]"' in missing_extra(otel)
    assert missing_extra(OtelSettings()) == ""
