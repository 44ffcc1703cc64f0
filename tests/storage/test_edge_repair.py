"""A shard that died while a vector was added or dropped opens, with all else as it was."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import qdrant_edge as edge

from lot_grpc.domain.errors import StartupError
from lot_grpc.ports import CollectionSpec, HasVector, Record, SearchQuery
from lot_grpc.storage.edge import EdgeStore
from tests.contract.clock import FixedClock
from tests.contract.generated import uid

SPEC = CollectionSpec("things", dense={"text": 4}, sparse=("bm25",))
NEW = CollectionSpec("things", dense={"text-1": 3})


def changed(file: Path, change: Callable[[dict[str, Any]], object]) -> None:
    content = json.loads(file.read_text())
    change(content)
    file.write_text(json.dumps(content))


async def left(folder: Path, *, dropped: bool) -> None:
    """A closed store that has (had) the new vector in a half of its records."""
    store = EdgeStore(folder, FixedClock(), min_free_bytes=0)
    await store.ensure_collections([SPEC])
    made = [Record(uid(n), "a", {"n": n}, {"text": [n, 1, 0, 0]}) for n in range(9)]
    await store.put("things", made)
    await store.extend(NEW)
    if dropped:
        vectors = [Record(uid(n), "a", {}, {"text-1": [0.0, 1.0, n]}) for n in range(4)]
        await store.set_vectors("things", vectors)
        await store.flush()
        await store.drop_vectors("things", ["text-1"])
    await store.close()


async def check(folder: Path) -> None:
    """All but the new vector is there, and that can be made again."""
    store = EdgeStore(folder, FixedClock(), min_free_bytes=0)
    await store.ensure_collections([SPEC])
    there = await store.scroll("things", "a", (), limit=99, vectors=True)
    assert {one.id: set(one.vectors) for one in there} == {uid(n): {"text"} for n in range(9)}
    [hits] = (await store.search("things", "a", [SearchQuery("text", [1, 0, 0, 0], 1)])).hits
    assert list(hits) == [uid(8)]
    await store.extend(NEW)
    assert await store.count("things", "a", [HasVector("text-1")]) == 0
    await store.set_vectors("things", [Record(uid(5), "a", {}, {"text-1": [1, 0, 0]})])
    await store.close()
    again = EdgeStore(folder, FixedClock(), min_free_bytes=0)
    await again.ensure_collections([SPEC.extended(NEW)])
    assert await again.count("things", "a", [HasVector("text-1")]) == 1
    await again.close()


async def test_one_that_was_adding_a_vector(tmp_path: Path) -> None:
    await left(tmp_path, dropped=False)
    config = tmp_path / "things" / "edge_config.json"
    changed(config, lambda content: content["vectors"].pop("text-1"))
    with pytest.raises(Exception, match="Incompatible configs"):
        edge.EdgeShard.load(str(config.parent))
    await check(tmp_path)


async def test_one_that_was_dropping_a_vector(tmp_path: Path) -> None:
    await left(tmp_path, dropped=True)
    config = tmp_path / "things" / "edge_config.json"
    params = {"size": 3, "distance": "Cosine"}
    changed(config, lambda content: content["vectors"].update({"text-1": params}))
    with pytest.raises(Exception, match="Incompatible configs"):
        edge.EdgeShard.load(str(config.parent))
    await check(tmp_path)


async def test_one_that_is_damaged_otherwise_is_left_alone(tmp_path: Path) -> None:
    await left(tmp_path, dropped=False)
    config = tmp_path / "things" / "edge_config.json"
    changed(config, lambda content: content["vectors"]["text"].update({"size": 5}))
    before = config.read_text()
    with pytest.raises(StartupError, match="cannot be opened"):
        await check(tmp_path)
    assert config.read_text() == before
