"""What the store has, without a server: ``python -m tests.soak.offline FOLDER`` prints it."""

from __future__ import annotations

import asyncio
import json
import sys
from collections import defaultdict
from pathlib import Path

from lot_grpc.clock import SystemClock
from lot_grpc.services.records.collections import EVENTS
from lot_grpc.services.resources import REGISTRY
from lot_grpc.storage.edge import EdgeStore
from tests.e2e.crash_checks import check_store

_DIMENSIONS = 384
_ALL = 5_000_000


async def events(folder: Path) -> dict[str, list[int]]:
    """Sequences of each episode.

    Raises:
        AssertionError: counters do not equal their facts, or a fact is not settled.
    """
    await check_store(folder)
    store = EdgeStore(folder, SystemClock())
    try:
        await store.ensure_collections(REGISTRY.collection_specs(_DIMENSIONS))
        keys = ("episode_id", "sequence")
        found: dict[str, list[int]] = defaultdict(list)
        for record in await store.scroll(EVENTS, None, [], limit=_ALL, payload=keys):
            found[record.payload["episode_id"]].append(record.payload["sequence"])
        return found
    finally:
        await store.close()


if __name__ == "__main__":
    print(json.dumps(asyncio.run(events(Path(sys.argv[1])))))
