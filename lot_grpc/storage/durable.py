"""Changes of files that survive a power loss once they return."""

from __future__ import annotations

import os
from pathlib import Path


def write_text(file: Path, text: str) -> None:
    """Replace the contents of a file; its entry in the folder is not synced."""
    file.write_text(text)
    _sync(file)


def rename(old: Path, new: Path) -> None:
    """Rename within a folder."""
    old.rename(new)
    _sync(new.parent)


def remove(file: Path) -> None:
    """Remove a file if it is there."""
    try:
        file.unlink()
    except FileNotFoundError:
        return
    _sync(file.parent)


def _sync(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
