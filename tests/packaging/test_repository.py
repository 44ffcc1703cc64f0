from __future__ import annotations

import os
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from lot_grpc import settings
from lot_grpc.settings import env_name, groups
from lot_grpc.settings_file import load_settings

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
TARGETS = ("run", "test", "check", "proto", "bench", "learn", "demo", "lint", "help")


def requirements() -> list[Requirement]:
    extras = PROJECT["optional-dependencies"]
    return [
        Requirement(text)
        for text in (
            *PROJECT["dependencies"],
            *extras["offline"],
            *extras["grpcurl"],
            *extras["dev"],
        )
    ]


def pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pinned = (line.split("==") for line in lines if line and not line.startswith("#"))
    return {canonicalize_name(name): version for name, version in pinned}


def services() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())[
        "services"
    ]
    return found


def known_variables() -> set[str]:
    return {env_name(name, key) for name, group in groups().items() for key in group.model_fields}


# --- packages ---------------------------------------------------------------------------------


@pytest.mark.parametrize("requirement", requirements(), ids=lambda requirement: requirement.name)
def test_every_dependency_is_pinned_to_a_version_in_its_range(requirement):
    version = pins().get(canonicalize_name(requirement.name))
    assert version is not None, "not in constraints.txt"
    assert requirement.specifier.contains(version)


def test_the_constraints_name_no_index_and_no_file():
    text = (ROOT / "constraints.txt").read_text()
    assert "://" not in text
    assert not re.search(r"^\s*(-|.* @ )", text, re.MULTILINE)


def test_the_extras_are_those_that_the_documents_name():
    assert set(PROJECT["optional-dependencies"]) == {"offline", "grpcurl", "otel", "dev"}
    assert PROJECT["requires-python"] == ">=3.11"


def test_data_files_are_shipped():
    data = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"][
        "package-data"
    ]
    package = ROOT / "lot_grpc"
    files = [
        path.relative_to(package)
        for path in package.rglob("*")
        if path.suffix in (".toml", ".txt", ".env")
    ]
    assert settings.REFERENCE_FILE.relative_to(package) in files
    assert len(files) > 10
    for file in files:
        assert any(file.match(pattern) for pattern in data["lot_grpc"]), file


# --- make and CI ------------------------------------------------------------------------------


def test_make_alone_lists_the_targets():
    told = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    listed = {line.split()[0] for line in told.splitlines()}
    assert listed >= set(TARGETS)


def test_make_refuses_an_old_python_and_says_so(tmp_path):
    old = tmp_path / "python3.9"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    failed = subprocess.run(
        ["make", "setup", f"VENV={tmp_path}/venv", f"PYTHON={old}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert failed.returncode == 2
    assert f"error: PYTHON={old} is not Python 3.11 or later" in failed.stderr
    assert not (tmp_path / "venv").exists()


def test_ci_runs_what_make_check_runs():
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    subprocess.run(["bash", "-n", script], check=True)
    assert "make check" in script.read_text()


# --- containers -------------------------------------------------------------------------------


def test_compose_puts_a_pinned_qdrant_behind_lot_grpc():
    assert set(services()) == {"qdrant", "lot-grpc"}
    assert re.fullmatch(r"qdrant/qdrant:v\d+\.\d+\.\d+", services()["qdrant"]["image"])
    assert services()["lot-grpc"]["depends_on"]["qdrant"]["condition"] == "service_healthy"
    assert all("healthcheck" in service for service in services().values())


def test_compose_publishes_on_loopback_only():
    published = [port for service in services().values() for port in service.get("ports", [])]
    assert published == ["127.0.0.1:50051:50051"]


def test_compose_and_the_image_give_settings_that_can_be_used(monkeypatch):
    image = dict(re.findall(r"\b(LOT_\w+)=(\S+)", (ROOT / "Dockerfile").read_text()))
    given = image | services()["lot-grpc"]["environment"]
    assert set(given) <= known_variables()
    for name in known_variables():
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    read = load_settings()
    assert read.storage.store == "qdrant"
    assert read.server.port == 50051


def test_the_image_does_not_run_as_root():
    text = (ROOT / "Dockerfile").read_text()
    assert re.findall(r"^USER (\w+)", text, re.MULTILINE) == ["lot"]
    assert "VOLUME /data" in text
    assert "HEALTHCHECK" in text


def test_the_image_switches_no_protection_off():
    text = (ROOT / "Dockerfile").read_text()
    commands = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    assert not [line for line in commands if "_ALLOW_" in line]


def test_stopping_the_container_waits_longer_than_the_drain():
    grace = int(services()["lot-grpc"]["stop_grace_period"].removesuffix("s"))
    assert grace > settings.ServerSettings().drain_seconds
