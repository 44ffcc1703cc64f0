"""The client for threads is generated from the one for asyncio."""

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[1] / "generate_sync.py"


@pytest.fixture(scope="module")
def generator() -> Any:
    spec = importlib.util.spec_from_file_location("generate_sync", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_sync_client_is_what_the_async_one_says():
    command = [sys.executable, str(SCRIPT), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_every_drift_is_found_and_repaired(generator: Any, tmp_path: Path):
    source, target = tmp_path / "_async", tmp_path / "_sync"
    source.mkdir()
    target.mkdir()
    for name in ("admin.py", "client.py"):
        shutil.copy(generator.PACKAGE / "_async" / name, source)
    edited, missing, stale = target / "admin.py", target / "client.py", target / "removed.py"
    text = (generator.PACKAGE / "_sync" / "admin.py").read_text()
    edited.write_text(text.replace("compact", "pack"))
    stale.touch()

    assert generator.differences(source, target, write=True) == [stale, edited, missing]
    assert edited.read_text() == text
    assert missing.exists()
    assert not stale.exists()
    assert generator.differences(source, target, write=False) == []


def test_no_rule_is_left_over_and_nothing_of_asyncio_remains(generator: Any):
    sources = (generator.PACKAGE / "_async").glob("*.py")
    texts = [path.read_text() for path in sources if path.name not in generator.BY_HAND]

    for rule in generator.RULES:
        assert any(re.search(rule, text) for text in texts), rule
    for text in texts:
        assert not re.search(r"\b(async|await|asyncio|aio|Async\w+)\b", generator.translated(text))
