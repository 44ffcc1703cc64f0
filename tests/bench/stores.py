"""Filled stores, made once and kept in the temporary folder; each server gets a copy."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import json
import os
import resource
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lot_grpc
from lot_grpc.clock import SystemClock
from lot_grpc.domain.ids import point_id
from lot_grpc.domain.pattern import search_text
from lot_grpc.embedding.fastembed import FastembedEmbedder, open_fastembed
from lot_grpc.ports import IdIn, Record
from lot_grpc.services.records.collections import PATTERNS, SCHEMA_VERSION
from lot_grpc.services.resources import REGISTRY
from lot_grpc.services.store_metadata import open_store
from lot_grpc.storage.edge import EdgeStore
from lot_grpc.storage.edge_maintenance import compact_in_child
from tests.bench import data, knowledge, processes

Say = Callable[[str], None]

BUILD_NAME = "bench.build.json"

_SCALE = "scale-"
_CHUNK = 1024
_BLOCK = 1 << 20
_OLD_SECONDS = 24 * 3600
_USING_SECONDS = 1800
_EMBEDDED = 10_000
"""So many vectors are really made, and kept; more are mixed from them, which takes no minutes."""


def filled(count: int, *, compacted: bool, say: Say) -> Path:
    """A store with ``count`` patterns, made unless there is one already. Not to be written to."""
    name = f"{count}{'-compacted' if compacted else ''}-{_recipe()}"
    folder = _cache() / name
    if folder.is_dir():
        return folder
    _drop_old()
    new = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=_cache()))
    try:
        if compacted:
            sparse_copy(filled(count, compacted=False, say=say), new)
            say(f"compacting {count:,} patterns, once (a minute or two at 100,000)")
            asyncio.run(_compact(new))
        else:
            say(f"writing {count:,} patterns, once")
            asyncio.run(_fill(new, count, every_collection=True))
        new.rename(folder)
    finally:
        shutil.rmtree(new, ignore_errors=True)
    return folder


def knowing(count: int, *, say: Say) -> Path:
    """The same with all else that a store knows (``knowledge``), made unless there is one."""
    folder = _cache() / f"{count}-knowing-{_recipe()}"
    if folder.is_dir():
        return folder
    new = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=_cache()))
    try:
        sparse_copy(filled(count, compacted=False, say=say), new)
        say("writing episodes, memories and error solutions, once")
        asyncio.run(_know(new))
        new.rename(folder)
    finally:
        shutil.rmtree(new, ignore_errors=True)
    return folder


def used(count: int, outcomes: int, *, say: Say) -> Path:
    """The same after so many outcomes (``used``), made unless there is one already."""
    folder = _cache() / f"{count}-used-{outcomes}-{_recipe()}"
    if folder.is_dir():
        return folder
    new = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=_cache()))
    try:
        sparse_copy(filled(count, compacted=False, say=say), new)
        say(f"recording {outcomes:,} outcomes, once (minutes)")
        processes.run("tests.bench.used", str(new), str(outcomes), seconds=_USING_SECONDS)
        new.rename(folder)
    finally:
        shutil.rmtree(new, ignore_errors=True)
    return folder


def scaled(count: int, *, compacted: bool, say: Say) -> Path:
    """A store of ``count`` patterns for ``scale``, created unless it exists.

    It is created in a folder ending in ``.part``. A compaction that is interrupted is resumed by
    the next run. The name of the store depends only on the form of a stored pattern and its
    collection, so it can be reused after other changes to the product. ``BUILD_NAME`` in it has the
    time and memory that creating it took.
    """
    name = f"{_SCALE}{count}{'-compacted' if compacted else ''}-{_shape()}"
    folder = _cache() / name
    if folder.is_dir():
        return folder
    written = scaled(count, compacted=False, say=say) if compacted else None
    new = folder.with_name(f"{name}.part")
    whose = resource.RUSAGE_SELF if written is None else resource.RUSAGE_CHILDREN
    started, cpu = time.monotonic(), _cpu_seconds(whose)
    if written is None:
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir()
        say(f"writing {count:,} patterns, once (8 minutes for each million)")
        asyncio.run(_fill(new, count, every_collection=False))
    else:
        if not new.is_dir():
            sparse_copy(written, new)
        say(f"compacting {count:,} patterns, once (long for a million)")
        asyncio.run(_compact(new))
    build = {
        "seconds": time.monotonic() - started,
        "cpu_seconds": _cpu_seconds(whose) - cpu,
        "peak_bytes": resource.getrusage(whose).ru_maxrss * 1024,
        "load": os.getloadavg()[0],
    }
    (new / BUILD_NAME).write_text(json.dumps(build))
    new.rename(folder)
    return folder


def remove(store: Path) -> None:
    """Remove a copy."""
    shutil.rmtree(store, ignore_errors=True)


def sparse_copy(source: Path, target: Path) -> Path:
    """Copy a store. Edge's logs are sparse, 32 MB each: holes are kept."""
    shutil.copytree(source, target, copy_function=_copy_file, dirs_exist_ok=True)
    return target


def _copy_file(source: str, target: str) -> None:
    with Path(source).open("rb") as read, Path(target).open("wb") as write:
        while block := read.read(_BLOCK):
            if block.count(0) == len(block):
                write.seek(len(block), os.SEEK_CUR)
            else:
                write.write(block)
        write.truncate(read.tell())


def _cache() -> Path:
    folder = Path(tempfile.gettempdir()) / f"lot-grpc-bench-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def _drop_old() -> None:
    """Remove what other versions made more than a day ago."""
    for entry in _cache().iterdir():
        if entry.name.startswith(_SCALE):
            continue  # too expensive to create again
        if entry.is_dir() and time.time() - entry.stat().st_mtime > _OLD_SECONDS:
            shutil.rmtree(entry, ignore_errors=True)


def _recipe() -> str:
    """Changes with whatever shapes a stored pattern."""
    package = Path(lot_grpc.__file__).parent
    parts = [Path(data.__file__), package / "domain/ids.py", package / "storage/edge_shard.py"]
    parts += [package / f"storage/edge_{name}.py" for name in ("create", "schema")]
    parts += [package / "services/store_metadata.py"]
    parts += [package / "domain/pattern.py", package / "domain/search_text.py"]
    parts += [package / "domain/context_stats.py", Path(data.__file__).with_name("used.py")]
    parts += [Path(knowledge.__file__)]
    for folder in ("ports", "services/records", "embedding", "lexical"):
        parts += sorted((package / folder).glob("*.py"))
    text = b"".join(part.read_bytes() for part in parts)
    return hashlib.sha256(text + version("qdrant-edge-py").encode()).hexdigest()[:12]


def _cpu_seconds(whose: int) -> float:
    used = resource.getrusage(whose)
    return used.ru_utime + used.ru_stime


def _shape() -> str:
    """A hash that changes with the patterns of ``scaled`` and their indexes."""
    makers: list[Any] = [data.sentence, data.content, data.records, data.mixed]
    spec = next(s for s in REGISTRY.collection_specs(data.DIMENSIONS) if s.name == PATTERNS)
    known = [SCHEMA_VERSION, version("qdrant-edge-py"), spec, *map(inspect.getsource, makers)]
    return hashlib.sha256(repr(known).encode()).hexdigest()[:12]


async def _fill(folder: Path, count: int, *, every_collection: bool) -> None:
    embedder = await open_fastembed()
    store = EdgeStore(folder, SystemClock())
    try:
        await open_store(store, REGISTRY, embedder.contract)
        if every_collection:  # as in an older store; the bare server opens some directly
            for spec in REGISTRY.collection_specs(data.DIMENSIONS):
                record = Record(point_id(data.NAMESPACE, "bench"), data.NAMESPACE, {})
                await store.put(spec.name, [record])
                await store.delete(spec.name, data.NAMESPACE, [IdIn((record.id,))])
        known = await _vectors(embedder)
        for chunk in _chunks(data.records(data.mixed(known, count))):
            await store.put(PATTERNS, chunk)
    finally:
        await store.close()
        await embedder.close()


async def _know(folder: Path) -> None:
    embedder = await open_fastembed()
    store = EdgeStore(folder, SystemClock())
    try:
        await open_store(store, REGISTRY, embedder.contract)
        for collection, records in knowledge.records(await _vectors(embedder)):
            for chunk in _chunks(iter(records)):
                await store.put(collection, chunk)
    finally:
        await store.close()
        await embedder.close()


async def _vectors(embedder: FastembedEmbedder) -> NDArray[np.float32]:
    """The vectors of the first patterns, made once (about 20 s)."""
    texts = [search_text(data.content(number)).text for number in range(_EMBEDDED)]
    key = hashlib.sha256(repr((embedder.contract, texts)).encode()).hexdigest()
    file = _cache() / f"vectors-{key[:12]}.npy"
    if file.exists():
        loaded: NDArray[np.float32] = np.load(file)
        return loaded
    made = [one.vector for one in await embedder.embed_documents(texts)]
    vectors = np.asarray(made, np.float32)
    new = file.with_suffix(f".{os.getpid()}.npy")
    np.save(new, vectors)
    new.rename(file)
    return vectors


def _chunks(records: Iterator[Record]) -> Iterator[list[Record]]:
    while chunk := list(islice(records, _CHUNK)):
        yield chunk


async def _compact(folder: Path) -> None:
    async for _ in compact_in_child(folder):
        pass
