from __future__ import annotations

import sys
from pathlib import Path

import pytest

from lot_grpc.ports import Equals
from lot_grpc.storage.edge import EdgeStore
from lot_grpc.storage.mapped import release_indexes
from tests.contract.clock import FixedClock
from tests.storage.samples import SPEC, sample

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists the maps")


def resident_index_bytes(folder: Path) -> int:
    resident, ours = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        first, *rest = line.split()
        if first.endswith(":"):
            resident += int(rest[0]) * 1024 if ours and first == "Rss:" else 0
        else:
            ours = line.endswith(".dat") and f" {folder}/" in line and "/payload_index/" in line
    return resident


async def test_opening_leaves_no_index_page_resident(
    store: EdgeStore, folder: Path, clock: FixedClock
) -> None:
    await store.put(SPEC.name, [sample(n) for n in range(1000)])
    await store.close()
    again = EdgeStore(folder, clock, min_free_bytes=0)
    await again.ensure_collections([SPEC])
    assert resident_index_bytes(folder) < 2**20  # one index alone has 3 MiB
    assert await again.count(SPEC.name, "a", [Equals("n", 7)]) == 1
    await again.close()


async def test_what_was_written_and_not_flushed_stays(
    store: EdgeStore, folder: Path, clock: FixedClock
) -> None:
    await store.put(SPEC.name, [sample(n) for n in range(1000)])
    release_indexes(folder, [SPEC.name])
    await store.put(SPEC.name, [sample(n) for n in range(1000, 2000)])
    release_indexes(folder, [SPEC.name])
    await store.close()
    again = EdgeStore(folder, clock, min_free_bytes=0)
    await again.ensure_collections([SPEC])
    for n in range(0, 2000, 97):
        assert await again.count(SPEC.name, "a", [Equals("n", n)]) == 1
    await again.close()
