"""Changes of files that survive a power loss once they return."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

_sync_contents = getattr(os, "fdatasync", os.fsync)  # macOS has no fdatasync


def write_text(file: Path, text: str) -> None:
    """Replace the contents of a file; its entry in the folder is not synced."""
    file.write_text(text)
    sync(file)


def rename(old: Path, new: Path) -> None:
    """Rename within a folder."""
    old.rename(new)
    sync(new.parent)


def remove(file: Path) -> None:
    """Remove a file if it is there."""
    try:
        file.unlink()
    except FileNotFoundError:
        return
    sync(file.parent)


def sync(path: Path) -> None:
    """Sync a file or folder, including what was written through a memory map."""
    _with_descriptor(path, os.fsync)


def sync_data(file: Path) -> None:
    """Like ``sync``, but without metadata that reading does not need, such as timestamps."""
    _with_descriptor(file, _sync_contents)


def _with_descriptor(path: Path, call: Callable[[int], None]) -> None:
    opened = os.open(path, os.O_RDONLY)
    try:
        call(opened)
    finally:
        os.close(opened)
