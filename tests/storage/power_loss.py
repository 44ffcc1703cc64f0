"""A disk that loses power: it keeps what was synced, and of the rest what was written by chance.

Edge's flush is taken to keep the contents of all files of its shard. Names in a folder are kept
once the folder, or the new file itself, was synced by the store.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from lot_grpc.storage import durable, edge_shard

_PAGE = 4096


class Contents(NamedTuple):
    """A file; pages that are not listed are zeros."""

    size: int
    pages: dict[int, bytes]


class PowerLoss:
    """Watches what a store in ``folder`` syncs; ``after`` makes the folder a restart would find."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder = folder
        self._names: dict[str, int] = {}
        self._kept: dict[int, Contents] = {}
        self._listed: dict[str, int] = {}
        self._sync, self._load = durable.sync, edge_shard.load
        monkeypatch.setattr(durable, "sync", self._synced)
        monkeypatch.setattr(durable, "sync_data", self._synced)
        monkeypatch.setattr(edge_shard, "load", self._loaded)
        self.flushes = 0

    def after(self, target: Path, seed: int | None) -> Path:
        """What is left in ``target``.

        Without a seed, that is only what was synced. With one, it is also the names of new files
        and, by chance, new sizes and pages.
        """
        rng = random.Random(seed)
        names = self._names if seed is None else self._listed
        for name, inode in names.items():
            kept = self._kept.get(inode, Contents(0, {}))
            if seed is not None and "/wal/" not in name:
                kept = self._by_chance(name, inode, kept, rng)
            _write(target / name, kept)
        for file in self._folder.glob("lot.*"):  # not synced: the newest are the most demanding
            _write(target / file.name, _read(file))
        return target

    def _by_chance(self, name: str, inode: int, kept: Contents, rng: random.Random) -> Contents:
        live = self._folder / name
        if not live.exists() or live.stat().st_ino != inode:
            return kept
        now = _read(live)
        share = rng.choice((0.0, rng.random(), 1.0))
        pages = {
            page: (now if rng.random() < share else kept).pages.get(page, b"")
            for page in {*now.pages, *kept.pages}
        }
        return Contents(rng.choice((kept.size or now.size, now.size)), pages)

    def _loaded(self, shard: Path) -> Any:
        raw = self._load(shard)
        return _Flushed(raw, shard, self) if shard.parent == self._folder else raw

    def keep_contents(self, shard: Path) -> None:
        """Edge has flushed a shard."""
        self.flushes += 1
        for file in _files(shard):
            self._kept[file.stat().st_ino] = _read(file)

    def _synced(self, path: Path) -> None:
        self._sync(path)
        if not path.is_relative_to(self._folder):
            return
        self._listed = {
            str(file.relative_to(self._folder)): file.stat().st_ino for file in _files(self._folder)
        }
        if path.is_file():
            inode = path.stat().st_ino
            self._kept[inode] = _read(path)
            self._names[str(path.relative_to(self._folder))] = inode
            return
        in_folder = "" if path == self._folder else f"{path.relative_to(self._folder)}/"
        for name in [one for one in self._names if one.rpartition("/")[0] == in_folder[:-1]]:
            del self._names[name]
        for file in path.iterdir():
            if file.is_file():
                self._names[f"{in_folder}{file.name}"] = file.stat().st_ino


class _Flushed:
    """An open shard that tells when it was flushed."""

    def __init__(self, raw: Any, folder: Path, disk: PowerLoss) -> None:
        self._raw = raw
        self._folder = folder
        self._disk = disk

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)

    def flush(self) -> None:
        self._raw.flush()
        self._disk.keep_contents(self._folder)


def _files(folder: Path) -> Iterator[Path]:
    return (file for file in folder.rglob("*") if file.is_file())


def _read(file: Path) -> Contents:
    pages: dict[int, bytes] = {}
    with file.open("rb") as opened:
        size = os.fstat(opened.fileno()).st_size
        at = 0
        while at < size:
            try:
                at = os.lseek(opened.fileno(), at, os.SEEK_DATA)
            except OSError:  # only a hole follows
                break
            opened.seek(at - at % _PAGE)
            page = opened.read(_PAGE)
            if page.strip(b"\0"):
                pages[at // _PAGE] = page
            at += _PAGE - at % _PAGE
    return Contents(size, pages)


def _write(file: Path, contents: Contents) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("wb") as opened:
        for number, page in contents.pages.items():
            opened.seek(number * _PAGE)
            opened.write(page)
        opened.truncate(contents.size)
