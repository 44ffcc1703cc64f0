from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from lot_grpc.domain.errors import StartupError
from lot_grpc.ports import CollectionSpec, Range, Record, SearchQuery
from lot_grpc.storage import edge_maintenance
from lot_grpc.storage.edge import EdgeStore
from lot_grpc.storage.edge_maintenance import ShardCompaction, compact_in_child, needs_compaction
from lot_grpc.storage.space import used_bytes
from tests.contract.clock import FixedClock
from tests.storage.samples import SPEC, sample, sample_id

MODULE = "lot_grpc.storage.edge_maintenance"


async def filled(folder: Path, clock: FixedClock, count: int) -> EdgeStore:
    store = EdgeStore(folder, clock, min_free_bytes=0)
    await store.ensure_collections([SPEC, CollectionSpec("log")])
    await store.put("log", [Record(sample_id(0), "a", {})])
    rng = random.Random(1)
    await store.put(
        SPEC.name,
        [
            Record(
                sample_id(n),
                "a",
                {"n": n, "body": "x" * 200},
                {"text": [rng.gauss(0, 1) for _ in range(4)]},
            )
            for n in range(count)
        ],
    )
    return store


async def test_the_child_compacts_and_everything_is_still_there(
    folder: Path, clock: FixedClock
) -> None:
    store = await filled(folder, clock, 3000)
    await store.delete(SPEC.name, "a", [Range("n", lt=1500)])
    await store.close()
    done = [one async for one in compact_in_child(folder)]
    assert [one.collection for one in done] == ["log", SPEC.name]
    assert [one.points for one in done] == [1, 1500]
    assert [one.changed for one in done] == [True, True]
    again = EdgeStore(folder, clock, min_free_bytes=0)
    await again.ensure_collections([SPEC])
    assert await again.count(SPEC.name, "a") == 1500
    query = SearchQuery("text", [1.0, 0.0, 0.0, 0.0], 5, [Range("n", gte=2000)])
    [hits] = (await again.search(SPEC.name, "a", [query])).hits
    scores = [round(score, 4) for score in hits.values()]
    assert scores == sorted(scores, reverse=True)
    assert await again.insert(SPEC.name, [sample(10**6)]) == {sample_id(10**6)}
    await again.close()


async def test_the_child_takes_only_the_named_collections_and_speaks_json(
    folder: Path, clock: FixedClock
) -> None:
    await (await filled(folder, clock, 10)).close()
    command = [sys.executable, "-m", MODULE, str(folder), "log"]
    output = subprocess.run(command, check=True, capture_output=True, text=True)
    [line] = output.stdout.splitlines()
    assert ShardCompaction(**json.loads(line)).collection == "log"
    assert output.stderr == ""


async def test_the_child_says_who_holds_the_folder(folder: Path, clock: FixedClock) -> None:
    store = await filled(folder, clock, 1)
    with pytest.raises(StartupError, match="in use by process"):
        _ = [one async for one in compact_in_child(folder)]
    await store.close()


async def test_only_what_grew_since_the_last_time_needs_compaction(
    folder: Path, clock: FixedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert needs_compaction(folder) == []
    await (await filled(folder, clock, 2000)).close()
    assert needs_compaction(folder) == [], "96 MiB are not reached"
    small = used_bytes(folder / "log", without="wal")
    monkeypatch.setattr(edge_maintenance, "_GROWTH_BYTES", small)
    assert needs_compaction(folder) == [SPEC.name]
    _ = [one async for one in compact_in_child(folder)]
    assert needs_compaction(folder) == []
    store = await filled(folder, clock, 0)
    # 24 MiB: where files are in memory, Edge's 50 MiB of holes take space once they are read.
    big = {"b": random.Random(0).randbytes(2**13).hex()}
    await store.put(SPEC.name, [Record(sample_id(-n), "a", big) for n in range(1, 1537)])
    await store.close()
    assert needs_compaction(folder) == [SPEC.name]
    (folder / edge_maintenance.STATE_NAME).write_text("garbage")
    assert SPEC.name in needs_compaction(folder)
