"""The Python in the pages, and the quickstarts, run against a real server as they stand."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.conftest import API_KEY, Secured
from tests.e2e.process import PATIENCE, ROOT, Served

ADDRESS = "127.0.0.1:50051"
CLIENT = ROOT / "clients" / "python"
PAGES = [
    ROOT / "README.md",
    CLIENT / "README.md",
    ROOT / "docs" / "learning.md",
    ROOT / "docs" / "memories.md",
]


def snippets() -> list[tuple[str, str]]:
    found = []
    for page in PAGES:
        blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
        assert blocks, f"no Python in {page}"
        found += [(f"{page.parent.name}/{page.name}-{n}", block) for n, block in enumerate(blocks)]
    return found


def run_python(running: Served, *arguments: str, folder: Path | None = None) -> str:
    environment = {
        **os.environ,
        "PYTHONPATH": str(CLIENT / "src"),
        "LOT_ADDRESS": running.address,
        "LOT_CLIENT_API_KEY": API_KEY,
    }
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env=environment,
        cwd=folder,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "snippet", [code for _, code in snippets()], ids=[n for n, _ in snippets()]
)
def test_the_python_of_a_page_runs_as_it_stands(
    snippet: str, request: pytest.FixtureRequest
) -> None:
    assert ADDRESS in snippet
    if "Tls(" in snippet:
        secured: Secured = request.getfixturevalue("secured")
        server, folder = secured.served, secured.folder
    else:
        server, folder = request.getfixturevalue("running"), None
    run_python(server, "-c", snippet.replace(ADDRESS, server.address), folder=folder)


def test_the_readme_shows_what_its_python_prints(running: Served) -> None:
    page = (ROOT / "README.md").read_text()
    blocks = re.findall(
        r"^```python\n(.*?)^```\n\n```text\n(.*?)^```$", page, re.MULTILINE | re.DOTALL
    )
    [(code, shown)] = blocks
    code = code.replace(f'"{ADDRESS}"', f'"{running.address}", namespace="readme"')
    printed = run_python(running, "-c", code)
    assert re.fullmatch(".+".join(map(re.escape, shown.split("…"))), printed.rstrip() + "\n"), (
        printed
    )


def test_the_quickstart_runs_and_says_what_it_learned(running: Served) -> None:
    said = run_python(running, str(CLIENT / "examples" / "quickstart.py"))
    assert "used 1 times" in said or "used 2 times" in said
    assert "has 2 events" in said


def test_the_recorder_records_what_its_example_does(running: Served) -> None:
    said = run_python(running, str(CLIENT / "examples" / "record_episode.py"), "--steps", "20")
    assert "40 events are stored while the episode is still running" in said
    assert "ended with 40 events" in said
    assert "failed with BuildError: no space left" in said
    assert "its last event is 'error'" in said


def test_the_learning_loop_shows_that_the_gain_is_no_luck(running: Served) -> None:
    sizes = ["--agents", "4", "--days", "5", "--per-day", "20"]
    said = run_python(running, str(CLIENT / "examples" / "learning_loop.py"), *sizes)
    days = re.findall(r"^ +(\d)   +(\d+)% ± *\d+  #+ +(\d+)% ± *\d+ +\d+%$", said, re.MULTILINE)
    assert [day for day, _, _ in days] == ["1", "2", "3", "4", "5"]
    [gain] = re.findall(r"Gain in the second half: \+(\d+) points \(standard error (\d+);", said)
    assert int(gain[0]) > 2 * int(gain[1])
    assert max(map(len, said.splitlines())) <= 110


def test_every_page_with_code_is_run() -> None:
    """A page that gains Python has to be named above."""
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *CLIENT.glob("*.md")]
    # Longer fences hold texts that are shown, with whatever is in them.
    shown = re.compile(r"^(`{4,})[^`]*$.*?^\1$", re.MULTILINE | re.DOTALL)
    with_python = {page for page in pages if "```python" in shown.sub("", page.read_text())}
    assert with_python == set(PAGES)
