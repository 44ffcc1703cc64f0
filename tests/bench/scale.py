"""Measures how recalls, memory, disk and opening of the embedded store grow with its patterns.

    python -m tests.bench.scale [PATTERNS ...] [--write]

Each size is measured as written and compacted. The stores are created once and kept in the
temporary folder, which should be on a disk: on tmpfs their files take memory. A million patterns
take 10 minutes to write, longer to compact, 25 GB of disk and over 10 GB of memory. Queries are
distinct, so each recall includes embedding its query. Prints Markdown.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lot_grpc.clock import SystemClock
from lot_grpc.services.resources import REGISTRY
from lot_grpc.storage.edge import EdgeStore
from lot_grpc.storage.space import used_bytes
from tests.bench import data, page, processes, stores
from tests.bench.report import median, percentile

SIZES = (10_000, 100_000, 1_000_000)
_CALLS = 300
_WARM_UP = 30
_FIRST = 5_000_000
_MIB = 2**20
_KNEE = 2.0
"""The knee is where the p50 of recalls has grown by more than this factor."""


@dataclass(frozen=True)
class Row:
    """The figures of one store. ``times``: seconds of its recalls, by filter."""

    patterns: int
    compacted: bool
    times: dict[str, list[float]]
    anonymous_bytes: int
    file_bytes: int
    disk_bytes: int
    open_seconds: float
    build: dict[str, float]

    @property
    def usual(self) -> float:
        """The p50 with the filter of ``make bench``."""
        return median(self.times["eighth"])


def measure(
    sizes: Sequence[int], say: stores.Say, compacted_at_most: int = SIZES[-1]
) -> Iterator[Row]:
    """A row for each size as written, and one for it compacted, up to ``compacted_at_most``."""
    with tempfile.TemporaryDirectory(prefix="lot-grpc-scale-") as name:
        folder = Path(name)
        with processes.client(folder / "client.log") as client:
            for count in sizes:
                for compacted in (False, True)[: 1 + (count <= compacted_at_most)]:
                    made = stores.scaled(count, compacted=compacted, say=say)
                    say(f"recalls over {count:,}{', compacted' if compacted else ''}")
                    store = stores.sparse_copy(made, folder / "store")
                    yield _row(count, compacted, store, client, folder / "server.log")
                    stores.remove(store)


def _row(count: int, compacted: bool, store: Path, client: processes.Client, log: Path) -> Row:
    opening = processes.run("tests.bench.scale", "--open", str(store))
    times: dict[str, list[float]] = {}
    with processes.real_server(store, log, LOT_MAINTENANCE="off") as server:
        for place, share in enumerate(data.SHARES):
            first = _FIRST + 10_000 * place
            for number, calls in ((first - _WARM_UP, _WARM_UP), (first, _CALLS)):
                done = client.do(
                    "calls",
                    address=server.address,
                    kind=f"recall:{share}",
                    first=number,
                    count=calls,
                )
                times[share] = done["times"]
        row = Row(
            count,
            compacted,
            times,
            server.anonymous_bytes,
            server.file_bytes,
            used_bytes(store),
            opening["seconds"],
            json.loads((store / stores.BUILD_NAME).read_text()),
        )
        client.do("forget", address=server.address)
    return row


def markdown(rows: Sequence[Row]) -> str:
    """The table, followed by where the knee is."""
    head = (
        "patterns",
        "store",
        *(f"recall, {what}: p50, p99" for what in data.SHARES.values()),
        "memory: own, mapped",
        "disk",
        "open",
        "created in",
    )
    lines: list[Sequence[str]] = [head, ["---"] * len(head), *map(_cells, rows)]
    table = "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
    knees = (
        f"{how}, {_knee(some)}."
        for how, compacted in (("As written", False), ("Compacted", True))
        if (some := [row for row in rows if row.compacted == compacted])
    )
    return f"{table}\n{' '.join(knees)}\n"


def _cells(row: Row) -> list[str]:
    recalls = (
        f"{1000 * median(times):.1f}, {1000 * percentile(times, 0.99):.1f} ms"
        for times in row.times.values()
    )
    return [
        f"{row.patterns:,}",
        "compacted" if row.compacted else "as written",
        *recalls,
        f"{row.anonymous_bytes / _MIB:,.0f}, {row.file_bytes / _MIB:,.0f} MiB",
        f"{row.disk_bytes / _MIB:,.0f} MiB",
        f"{row.open_seconds:.1f} s",
        f"{row.build['seconds']:,.0f} s",
    ]


def _knee(rows: Sequence[Row]) -> str:
    for row in rows[1:]:
        if row.usual > _KNEE * rows[0].usual:
            return (
                f"the knee is below {row.patterns:,}: there a recall with a filter takes "
                f"{row.usual / rows[0].usual:.1f} times as long as at {rows[0].patterns:,}"
            )
    return f"there is no knee up to {rows[-1].patterns:,}"


async def _open(folder: Path) -> float:
    started = time.perf_counter()
    store = EdgeStore(folder, SystemClock())
    await store.ensure_collections(REGISTRY.collection_specs(data.DIMENSIONS))
    seconds = time.perf_counter() - started
    await store.close()
    return seconds


def _options() -> Any:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.scale", description=__doc__)
    parser.add_argument("patterns", type=int, nargs="*", default=SIZES, help="sizes to measure")
    parser.add_argument(
        "--compact-at-most",
        type=int,
        default=SIZES[-1],
        metavar="PATTERNS",
        help="measure larger stores only as written, since compacting a million takes long",
    )
    parser.add_argument("--write", action="store_true", help=f"write the table to {page.NAME}")
    parser.add_argument("--open", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> int:
    """Run the benchmark."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # also ends child processes
    options = _options()
    if options.open:
        print(json.dumps({"seconds": asyncio.run(_open(options.open))}))
        return 0

    def say(what: str) -> None:
        print(f"… {what}", file=sys.stderr, flush=True)

    load = page.load()
    rows = []
    try:
        for row in measure(sorted(options.patterns), say, options.compact_at_most):
            rows.append(row)
            say(" | ".join(_cells(row)))  # a later size may fail after an hour
    except processes.BenchError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    text = markdown(rows)
    print(text, end="")
    if options.write:
        page.write("scale", f"{page.machine(load)}.\n\n{text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
