"""The drills of docs/operations.md, run as they stand."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

from tests.e2e.conftest import Serve
from tests.e2e.process import PATIENCE, ROOT, Ran, environment, run

PAGE = ROOT / "docs" / "operations.md"
ELSEWHERE = "127.0.0.1:50061"


def drill(heading: str) -> str:
    """The commands below a heading."""
    section = PAGE.read_text().split(f"\n### {heading}\n")[1]
    found = re.search(r"^```sh\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    assert found, heading
    return found[1]


def shell(script: str, folder: Path, settings: dict[str, str]) -> Ran:
    """Run commands as an operator would, to the first that fails."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    # What is left in the background if a command fails is ended.
    ending = "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", f"{ending}\n{script}"],
        cwd=folder,
        env={**environment(folder / "lot-data", settings), "PATH": path},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


def test_a_backup_is_made_and_restored(serve: Serve, tmp_path):
    data = tmp_path / "lot-data"
    served = serve(data)
    there = {"LOT_ADDRESS": served.address}
    assert run(data, "seed", settings=there).code == 0
    assert run(data, "seed", "-n", "team-a", settings=there).code == 0
    restored = f"127.0.0.1:{free_port()}"
    script = drill("Exporting, and a restore drill").replace(ELSEWHERE, restored)
    done = shell(f"{script}\necho the last line", tmp_path, there)
    assert done.code == 0, done
    assert done.stdout.endswith("the last line\n")
    assert not (tmp_path / "drill").exists()

    other = script.replace("diff ", f"lot-grpc seed -n more --address {restored}\ndiff ")
    assert other != script
    (tmp_path / "backup.lot").unlink()
    failed = shell(other, tmp_path, there)
    assert failed.code != 0
    assert re.search("^> +more ", failed.stdout, re.MULTILINE)

    assert served.stop() == 0
    done = shell(drill("Copying the folder"), tmp_path, {})
    assert done.code == 0, done
    assert done.stdout.startswith("ready\n")
    assert serve(tmp_path / "copy").stop() == 0
