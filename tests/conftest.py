"""Where the tests keep their files, and what is quicker in tests than in service."""

from __future__ import annotations

import os
import re
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from lot_grpc.server import refusals

_RAM_DISK = Path("/dev/shm")
_NEEDED_BYTES = 12 * 2**30
"""An embedded store takes up to 1.4 GB there, since files that a disk keeps sparse are whole; each
process that runs tests has one or two."""


def _free_memory() -> int:
    try:
        found = re.search(
            r"^MemAvailable: +(\d+) kB", Path("/proc/meminfo").read_text(), re.MULTILINE
        )
    except OSError:
        return 0
    return int(found[1]) * 1024 if found else 0


def _free_bytes(folder: Path) -> int:
    return shutil.disk_usage(folder).free if folder.is_dir() else 0


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Keep temporary files in memory where there is room; ``PYTEST_DEBUG_TEMPROOT`` overrides it.

    An embedded store syncs thousands of times while it is made, which takes seconds on a disk. The
    process is what these tests kill, never the machine, so no proof rests on the disk.
    """
    exhaustive = not config.option.markexpr
    examples = 300 if exhaustive else 25
    # Slow is no failure. Only a run of all cases draws new examples, so that a change is not blamed
    # for an old fault.
    settings.register_profile(
        "lot", deadline=None, max_examples=examples, derandomize=not exhaustive
    )
    settings.load_profile("lot")
    os.environ.pop("COLUMNS", None)  # of whoever runs the tests; it sets the width of tables
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # each process would compile the product anew
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell's job in the background
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if min(_free_memory(), _free_bytes(_RAM_DISK)) > _NEEDED_BYTES:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_RAM_DISK))


@pytest.fixture
def tmp_path(tmp_path: Path) -> Iterator[Path]:
    """The folder of a test, gone with it: those of all would not fit into memory."""
    yield tmp_path
    shutil.rmtree(tmp_path, ignore_errors=True)


@pytest.fixture(scope="module")
def module_path(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder of a module's tests, gone with the last of them."""
    path = tmp_path_factory.mktemp("module")
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(autouse=True)
def refuse_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refusals are not held back for as long as they are in service."""
    monkeypatch.setattr(refusals, "SHORTEST_SECONDS", 0.0)
    monkeypatch.setattr(refusals, "LONGEST_SECONDS", 0.0)
