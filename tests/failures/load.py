"""What AnalyzeFailures costs on the embedded store with the default model, and what others feel.

    python -m tests.failures.load [FAILURES] [EVENTS]

5,000 failed episodes with 20 events each; then one that fetches an episode every 10 ms.
"""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from lot_grpc.embedding.fastembed import open_fastembed
from lot_grpc.storage.edge import EdgeStore
from tests.contract.clock import FixedClock
from tests.failures.causes import DEVELOPMENT
from tests.failures.fourth import FOURTH
from tests.failures.made import planted, told
from tests.failures.running import analyze
from tests.failures.second import SECOND
from tests.failures.third import THIRD
from tests.services.world import NS, World, open_world

CAUSES = {**DEVELOPMENT, **SECOND, **THIRD, **FOURTH}


async def fetching(world: World, waited: list[float]) -> None:
    chance = random.Random(1)
    while True:
        began = time.perf_counter()
        await world.services.episodes.episodes.get(NS, f"e-{chance.randrange(100):04}")
        waited.append(time.perf_counter() - began)
        await asyncio.sleep(0.01)


def p99(waited: list[float]) -> float:
    return sorted(waited)[int(len(waited) * 0.99)] * 1000


async def main(count: int, events: int) -> None:
    embedder = await open_fastembed()
    with tempfile.TemporaryDirectory() as folder:
        store = EdgeStore(Path(folder) / "data", FixedClock(), min_free_bytes=0)
        world = await open_world(store, embedder=embedder)
        each = count // len(CAUSES)
        made = planted(
            CAUSES, seed=1, each=each, silent=count - each * len(CAUSES), good=count // 5
        )
        for one in made:
            quiet = [told("note", note="step")] * (events - len(one.draft.events))
            draft = replace(one.draft, events=(*quiet, *one.draft.events))
            await world.services.episodes.creator.record(NS, draft)
        quietly: list[float] = []
        beside = asyncio.create_task(fetching(world, quietly))
        await asyncio.sleep(2)
        beside.cancel()
        for _ in range(2):
            waited: list[float] = []
            beside = asyncio.create_task(fetching(world, waited))
            began = time.perf_counter()
            analysis = await analyze(world)
            took = time.perf_counter() - began
            beside.cancel()
            print(
                f"{analysis.analyzed_count} failures, {analysis.signature_count} signatures, "
                f"{analysis.group_count} groups: {took:.1f} s; another's p99 "
                f"{p99(waited):.1f} ms, alone {p99(quietly):.1f} ms"
            )
        await store.close()
    await embedder.close()


if __name__ == "__main__":
    asyncio.run(main(*(int(one) for one in (sys.argv[1:] or ("5000", "20")))))
