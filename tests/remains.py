"""Looks for what was erased in all bytes of a folder."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

_ZERO_PAGE = bytes(4096)
"""Longer than anything that is looked for."""


def files_with(folder: Path, found: Iterable[bytes]) -> list[str]:
    """The files below a folder that contain any of these bytes."""
    return files_by_name(folder, {"": found})[""]


def files_by_name(folder: Path, found: Mapping[str, Iterable[bytes]]) -> dict[str, list[str]]:
    """Likewise for several at once, by a name of each."""
    looked_for = {name: list(each) for name, each in found.items()}
    files: dict[str, list[str]] = {name: [] for name in looked_for}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        parts = list(_written(path))
        for name, each in looked_for.items():
            if any(one in part for part in parts for one in each):
                files[name].append(str(path.relative_to(folder)))
    return files


def _written(path: Path) -> Iterator[bytes]:
    """The parts of a file that are neither holes nor zeros: Edge's files have gigabytes of them.

    The search would take long for vectors there, most of whose bytes are zeros too.
    """
    with path.open("rb") as file:
        size, end = path.stat().st_size, 0
        while end < size:
            try:
                start = os.lseek(file.fileno(), end, os.SEEK_DATA)
            except OSError:  # nothing but a hole follows
                return
            end = os.lseek(file.fileno(), start, os.SEEK_HOLE)
            file.seek(start)
            yield from _without_zero_pages(file.read(end - start))


def _without_zero_pages(data: bytes) -> Iterator[bytes]:
    """The parts between pages of nothing but zeros, each with the bytes next to it."""
    start = at = 0
    while (at := data.find(_ZERO_PAGE, at)) != -1:
        yield data[start : at + len(_ZERO_PAGE)]
        at += len(_ZERO_PAGE)
        while data.startswith(_ZERO_PAGE, at):
            at += len(_ZERO_PAGE)
        start = at - len(_ZERO_PAGE)
    yield data[start:]
