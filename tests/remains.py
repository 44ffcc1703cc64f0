"""Looks for what was erased in all bytes of a folder."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path


def files_with(folder: Path, found: Iterable[bytes]) -> list[str]:
    """The files below a folder that contain any of these bytes."""
    looked_for = list(found)
    return sorted(
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and any(one in data for data in _written(path) for one in looked_for)
    )


def _written(path: Path) -> Iterator[bytes]:
    """The parts of a file that are not holes: Edge's files have gigabytes of them."""
    with path.open("rb") as file:
        size, end = path.stat().st_size, 0
        while end < size:
            try:
                start = os.lseek(file.fileno(), end, os.SEEK_DATA)
            except OSError:  # nothing but a hole follows
                return
            end = os.lseek(file.fileno(), start, os.SEEK_HOLE)
            file.seek(start)
            yield file.read(end - start)
