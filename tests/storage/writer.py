"""A process that writes until it is killed: ``python -m tests.storage.writer FOLDER``.

Prints the number of each record once its write was acknowledged.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
from pathlib import Path

from lot_grpc.storage.edge import EdgeStore
from tests.contract.clock import FixedClock
from tests.storage.samples import SPEC, sample


async def write(folder: Path) -> None:
    store = EdgeStore(folder, FixedClock(), min_free_bytes=0)
    await store.ensure_collections([SPEC])
    for n in itertools.count():
        await store.insert(SPEC.name, [sample(n)])
        sys.stdout.write(f"{n}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(write(Path(sys.argv[1])))
