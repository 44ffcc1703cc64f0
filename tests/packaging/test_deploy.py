"""The files in deploy/ fit the schemas of what reads them, the settings, and each other."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import yaml  # type: ignore[import-untyped]

from lot_grpc.settings import ServerSettings
from tests.packaging.test_repository import ROOT, known_variables

UNIT = ROOT / "deploy" / "systemd" / "lot-grpc.service"
MANIFESTS = sorted((ROOT / "deploy" / "kubernetes").glob("*.yaml"))
OLDEST, NEWEST = "1.30", "1.37"
"""Versions of Kubernetes that the manifests are checked against."""


def documents() -> list[dict[str, Any]]:
    return [one for path in MANIFESTS for one in yaml.safe_load_all(path.read_text())]


def manifest(kind: str) -> dict[str, Any]:
    [found] = [one for one in documents() if one["kind"] == kind]
    return found


def pod() -> dict[str, Any]:
    spec: dict[str, Any] = manifest("StatefulSet")["spec"]["template"]["spec"]
    return spec


def server() -> dict[str, Any]:
    [container] = pod()["containers"]
    return dict(container)


# --- Kubernetes -------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.name)
def test_a_manifest_fits_the_schema(path: Path, version: str):
    for one in yaml.safe_load_all(path.read_text()):
        kubernetes_validate.validate(one, version, strict=True)


def test_a_manifest_with_a_wrong_field_would_be_noticed():
    broken = manifest("StatefulSet")
    broken["spec"]["replica"] = 1
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(broken, NEWEST, strict=True)


def test_the_parts_select_each_other():
    labels = manifest("StatefulSet")["spec"]["template"]["metadata"]["labels"]
    assert manifest("StatefulSet")["spec"]["selector"]["matchLabels"] == labels
    assert manifest("StatefulSet")["spec"]["serviceName"] == manifest("Service")["metadata"]["name"]
    assert manifest("Service")["spec"]["selector"] == labels
    assert manifest("NetworkPolicy")["spec"]["podSelector"]["matchLabels"] == labels
    [port] = server()["ports"]
    assert manifest("Service")["spec"]["ports"][0]["targetPort"] == port["name"]
    assert manifest("NetworkPolicy")["spec"]["ingress"][0]["ports"][0]["port"] == port["name"]


def test_every_variable_is_a_setting_and_switches_no_protection_off():
    given = {one["name"]: one["value"] for one in server()["env"]}
    assert set(given) <= known_variables() | {"LOT_AUTH_KEYS"}
    assert {"LOT_AUTH_KEYS", "LOT_TLS_CERT", "LOT_TLS_KEY"} <= set(given)
    assert not any("ALLOW" in name for name in given)
    mounts = tuple(mount["mountPath"] for mount in server()["volumeMounts"])
    paths = [value for value in given.values() if value.startswith("/")]
    assert all(path.startswith(mounts) for path in paths)
    assert not pod()["enableServiceLinks"]  # LOT_GRPC_SERVICE_HOST is no setting


def test_pods_have_no_privileges():
    assert pod()["securityContext"]["runAsNonRoot"]
    assert pod()["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not pod()["automountServiceAccountToken"]
    for container in (*pod()["containers"], *pod()["initContainers"]):
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }


def test_pods_run_as_the_user_of_the_image():
    [user] = re.findall(r"--uid (\d+)", (ROOT / "Dockerfile").read_text())
    assert pod()["securityContext"]["runAsUser"] == int(user)
    assert pod()["securityContext"]["fsGroup"] == int(user)


def test_a_pod_has_longer_to_stop_than_the_drain():
    assert pod()["terminationGracePeriodSeconds"] > ServerSettings().drain_seconds


# --- systemd ----------------------------------------------------------------------------------


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_the_unit_is_valid_and_has_few_privileges(tmp_path):
    unit = tmp_path / UNIT.name
    # It looks whether the program is there.
    unit.write_text(UNIT.read_text().replace("/opt/lot-grpc/bin/lot-grpc", sys.executable))
    verified = subprocess.run(
        ["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False
    )
    assert (verified.returncode, verified.stdout + verified.stderr) == (0, "")
    rated = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--threshold=20", unit],
        capture_output=True,
        text=True,
        check=False,
    )
    assert rated.returncode == 0, rated.stdout[-500:]


def test_the_unit_gives_settings_that_can_be_used_and_time_to_stop():
    text = UNIT.read_text()
    assert set(re.findall(r"(?<![\w$])(LOT_[A-Z_]+)=", text)) <= known_variables()
    [seconds] = re.findall(r"^TimeoutStopSec=(\d+)$", text, re.MULTILINE)
    assert int(seconds) > ServerSettings().drain_seconds
