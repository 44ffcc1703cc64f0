"""docs/other-languages.md as it stands: its Rust and Java built and run, on request."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.e2e.process import ROOT, serve

PAGE = (ROOT / "docs" / "other-languages.md").read_text()
FILES = dict(re.findall(r"^`(\S+)`:\n\n```\w+\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
[PRINTED, _] = re.findall(r"^```text\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
RUST = ["Cargo.toml", "build.rs", "src/main.rs"]
JAVA = ["pom.xml", "src/main/java/Agent.java"]
REQUESTED = os.environ.get("LOT_TEST_LANGUAGES") == "1"


def test_the_page_has_whole_projects_and_names_folders_that_are_there():
    assert set(FILES) == {*RUST, *JAVA}
    assert (ROOT / "proto" / "lot" / "v1").is_dir()
    for name in ("build.rs", "pom.xml"):
        assert "../lot-grpc/proto" in FILES[name]
    for line in re.findall(r"^import (io\.lotgrpc\.v1)\.", FILES[JAVA[1]], re.MULTILINE):
        assert f'java_package = "{line}"' in (ROOT / "proto/lot/v1/pattern.proto").read_text()
    assert "docs/other-languages.md" in (ROOT / "README.md").read_text()


@pytest.mark.exhaustive
@pytest.mark.skipif(not REQUESTED, reason="LOT_TEST_LANGUAGES=1 builds them, from registries")
@pytest.mark.parametrize(
    ("files", "script", "needs"),
    [
        (RUST, "cargo run --quiet", ("cargo", "protoc")),
        (JAVA, re.search(r"^```sh\n(mvn.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[1], ("mvn",)),  # type: ignore[index]
    ],
    ids=["rust", "java"],
)
def test_a_project_of_the_page_runs(
    tmp_path: Path, files: list[str], script: str, needs: tuple[str, ...]
) -> None:
    if lacking := [tool for tool in needs if shutil.which(tool) is None]:
        pytest.skip(f"needs {', '.join(lacking)}")
    (tmp_path / "lot-grpc").symlink_to(ROOT)
    running = serve(tmp_path / "data", tmp_path / "log")
    for name in files:
        file = tmp_path / "agent" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(FILES[name].replace("127.0.0.1:50051", running.address))
    try:
        done = subprocess.run(
            ["sh", "-euc", script],
            cwd=tmp_path / "agent",
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        running.stop()
    printed = done.stdout.replace("\x1b[0m", "")  # which maven leaves
    assert (done.returncode, printed) == (0, PRINTED), done.stderr
