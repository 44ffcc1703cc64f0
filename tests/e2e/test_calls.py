"""The tests of each call, once more against the process with its real store and model."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.e2e.process import ROOT

SOME = ("patterns_recall", "episodes_stream", "admin")
ALL = ("patterns*", "episodes*", "memories", "admin", "bad_input")
TESTS = ROOT / "tests" / "server"


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    "files",
    [pytest.param(SOME, id="some"), pytest.param(ALL, id="all", marks=pytest.mark.exhaustive)],
)
def test_calls_answer_alike_with_the_real_store_and_model(running, files):
    ran = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
            *(str(file) for name in files for file in TESTS.glob(f"test_{name}.py")),
            *("--target", running.address),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-1000:]
    assert " passed" in ran.stdout
