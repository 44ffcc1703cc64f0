from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
from typer.testing import CliRunner

from tests.cli.scripted import Fake


@pytest.fixture(autouse=True)
def no_settings_around(monkeypatch):
    """Whoever runs the tests may have LOT_* of their own."""
    for name in list(os.environ):
        if name.upper().startswith("LOT_"):
            monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.captureWarnings(capture=False)
    structlog.reset_defaults()


@pytest.fixture
def runner() -> CliRunner:
    return CliRunner()


@pytest.fixture
def fake() -> Iterator[Fake]:
    server = Fake()
    yield server
    server.stop()


@pytest.fixture
def key_file(tmp_path: Path, monkeypatch) -> Path:
    """Where the settings have the key file; it is not there yet."""
    found = tmp_path / "keys.json"
    monkeypatch.setenv("LOT_AUTH_KEYS", str(found))
    return found
