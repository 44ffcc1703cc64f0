"""Where the tests keep their files."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import settings

_RAM_DISK = Path("/dev/shm")
_NEEDED_BYTES = 8 * 2**30
"""An empty embedded store takes 1.4 GB there: files that a disk keeps sparse are whole."""


@pytest.hookimpl(tryfirst=True)
def pytest_configure() -> None:
    """Keep temporary files in memory where there is room; ``PYTEST_DEBUG_TEMPROOT`` overrides it.

    An embedded store syncs thousands of times while it is made, which takes seconds on a disk. The
    process is what these tests kill, never the machine, so no proof rests on the disk.
    """
    settings.register_profile("any machine", deadline=None)  # a slow one is no failure
    settings.load_profile("any machine")
    if _RAM_DISK.is_dir() and shutil.disk_usage(_RAM_DISK).free > _NEEDED_BYTES:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_RAM_DISK))
