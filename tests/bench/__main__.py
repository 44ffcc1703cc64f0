"""Measures lot-grpc against a bare server, both in one run, and prints a table.

Benchmarks are reported, not gated: the exit code is 0 unless something fails.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lot_grpc.storage.edge_shard import RECENT_BYTES
from lot_grpc.storage.space import used_bytes
from tests.bench import data, figures, guards, memories, page, processes, report, stores
from tests.bench.agent_figures import AgentBench, idle
from tests.bench.figures import NORMAL, QUICK, Bench
from tests.bench.report import Figure, Report, median, milliseconds
from tests.bench.rerank import CANDIDATES
from tests.bench.used import QUERIES

SMALL, LARGE = 10_000, 100_000
OUTCOMES = 100_000
_STARTS = 3
_RECALLS = 200
_RERANKS = 20
_VECTOR_BYTES = 4 * data.DIMENSIONS
_MIB = 2**20


class Run:
    """One run: its folder, its client, what it found."""

    def __init__(self, folder: Path, client: processes.Client, options: Any) -> None:
        self._folder = folder
        self._client = client
        self._options = options
        self._sizes = QUICK if options.quick else NORMAL
        self._copies = 0
        self.figures: list[Figure] = []

    def say(self, what: str) -> None:
        """Progress, for whoever waits."""
        if not self._options.json:
            print(f"… {what}", file=sys.stderr, flush=True)

    def parts(self) -> dict[str, float]:
        """The parts by themselves."""
        self.say("the parts, in one process")
        store = self._copy(stores.filled(SMALL, compacted=False, say=self.say))
        count = self._sizes.single
        found: dict[str, float] = processes.run("tests.bench.parts", str(store), str(count))
        return found

    def calls(self) -> None:
        """Everything that is compared call by call."""
        template = stores.filled(SMALL, compacted=False, say=self.say)
        with (
            # Compacting one at its start and not the other would compare stores, not servers.
            self._real(self._copy(template), LOT_MAINTENANCE="off") as real,
            processes.bare_server(self._copy(template), self._log("bare")) as bare,
        ):
            bench = Bench(self._client, real, bare, self._sizes)
            bench.check()
            steps: list[tuple[str, Callable[[], Figure | list[Figure]]]] = [
                ("recall, one client", bench.recall_one),
                ("recall, 16 clients", bench.recall_many),
                ("recall, repeated queries", bench.recall_repeated),
                ("save", bench.save),
                ("save in batches", bench.batch),
                ("events", bench.events),
                ("replay", bench.replay),
                ("outcomes", bench.outcomes),
            ]
            for name, measure in steps:
                if self._options.only and self._options.only not in name:
                    continue
                self.say(name)
                found = measure()
                self.figures += found if isinstance(found, list) else [found]

    def agents(self) -> None:
        """Two hundred streams at once, and what one that says nothing takes."""
        self.say("agents")
        template = stores.filled(SMALL, compacted=False, say=self.say)
        with (
            self._real(self._copy(template), LOT_MAINTENANCE="off") as real,
            processes.bare_server(self._copy(template), self._log("bare")) as bare,
        ):
            bench = AgentBench(self._client, real, bare, quick=self._options.quick)
            self.figures += bench.figures()
        self.say("idle streams")
        with self._real(self._folder / "idle") as server:
            self.figures.append(idle(self._client, server))

    def rerank(self) -> None:
        """The cross-encoder by itself, and what it adds to a recall."""
        self.say("rerank")
        alone = processes.run("tests.bench.rerank", str(5 * self._sizes.rounds))
        self.figures.append(figures.rerank(alone, CANDIDATES))
        self.say("recall with rerank")
        store = self._copy(stores.filled(SMALL, compacted=False, say=self.say))
        found: dict[str, list[float]] = {"recall": [], "rerank": []}
        with self._real(store, LOT_MAINTENANCE="off") as server:
            for number in range(-1, self._sizes.rounds):
                for place, (kind, taken) in enumerate(found.items()):
                    # No query twice: the second time its vector would come from the cache.
                    first = 4_000_000 + 10_000 * (2 * number + place)
                    times = self._calls(server, kind, _RERANKS, first)
                    if number >= 0:  # else it warms up
                        taken += times
        self.figures.append(figures.recall_reranked(**found))

    def context(self) -> None:
        """The context of a task, against a recall of patterns alone on the same store."""
        store = self._copy(stores.knowing(SMALL, say=self.say))
        self.say("context")
        kinds = ("recall", "context", "context of an error")
        p50: dict[str, list[float]] = {kind: [] for kind in kinds}
        with self._real(store, LOT_MAINTENANCE="off") as server:
            for number in range(-1, 2 * self._sizes.rounds):
                for place, kind in enumerate(kinds):
                    # No query twice: the second time its vector would come from the cache.
                    first = 6_000_000 + 10_000 * (3 * number + place)
                    times = self._calls(server, kind, self._sizes.single, first)
                    if number >= 0:  # else it warms up
                        p50[kind].append(median(times))
        self.figures += figures.context(p50)

    def memories(self) -> None:
        """Long memories, and recalls while they are indexed."""
        store = self._copy(stores.filled(SMALL, compacted=False, say=self.say))
        self.say("memories")
        with self._real(store, LOT_MAINTENANCE="off") as server:
            self.figures += memories.measure(self._client, server, QUICK.rounds)

    def used(self) -> None:
        """Recall after many outcomes, against recall where nothing was learned."""
        fresh = stores.filled(SMALL, compacted=False, say=self.say)
        busy = stores.used(SMALL, OUTCOMES, say=self.say)
        self.say("recall after outcomes")
        p50: list[list[float]] = [[], []]
        with (
            self._real(self._copy(fresh), LOT_MAINTENANCE="off") as none,
            self._real(self._copy(busy), LOT_MAINTENANCE="off") as many,
        ):
            for number in range(-1, min(2 * self._sizes.rounds, QUERIES // self._sizes.single)):
                # Of the queries that the outcomes were on, none twice.
                first = max(number, 0) * self._sizes.single
                for server, found in ((none, p50[0]), (many, p50[1])):
                    if number < 0:  # it warms up
                        self._recalls(server, self._sizes.single, 2_000_000)
                    else:
                        found.append(self._recalls(server, self._sizes.single, first))
        ratio = median([b / a for a, b in zip(*p50, strict=True)])
        beside = f"{milliseconds(median(p50[1]))}, {milliseconds(median(p50[0]))} without any"
        name = f"RecallPatterns, one client, after {OUTCOMES:,} outcomes"
        values = {"ratio": ratio, "p50": p50}
        self.figures.append(Figure(name, f"{ratio:.2f} x", "≤ 1.3", ratio <= 1.3, beside, values))

    def guarded(self) -> None:
        """Calls with keys and metrics, against a server with neither."""
        template = stores.filled(SMALL, compacted=False, say=self.say)
        self.say("keys and metrics")
        settings, key = guards.settings(self._folder)
        with (
            self._real(self._copy(template), LOT_MAINTENANCE="off") as plain,
            self._real(self._copy(template), LOT_MAINTENANCE="off", **settings) as guarded,
        ):
            self.figures += guards.measure(self._client, plain, guarded, key, self._sizes)

    def empty(self) -> int:
        """Measure start, memory and disk without data; return the resident bytes."""
        self.say("start, empty")
        seconds, resident, disk = [], 0, 0
        for number in range(_STARTS):
            with self._real(self._folder / f"empty-{number}") as server:
                seconds.append(server.start_seconds)
                self._recalls(server, 20)
                resident = server.resident_bytes
                disk = used_bytes(self._folder / f"empty-{number}")
        self._start("empty", median(seconds), 3)
        met = resident <= 350 * _MIB
        values = {"resident_bytes": resident}
        shown = f"{resident / _MIB:.0f} MB"
        self.figures.append(Figure("memory, empty", shown, "≤ 350 MB", met, values=values))
        values = {"disk_bytes": disk}
        shown, met = f"{disk / _MIB:.1f} MiB", disk <= 64 * _MIB
        beside = "blocks in use while the store is open, without holes"
        self.figures.append(Figure("disk, empty", shown, "≤ 64 MiB", met, beside, values))
        return resident

    def start(self) -> None:
        """Start to ready, against a process that only loads the model and opens the same store."""
        template = stores.filled(SMALL, compacted=False, say=self.say)
        for what, store in (
            ("empty", self._folder / "start-empty"),
            (f"{SMALL:,} patterns", self._copy(template)),
        ):
            self.say(f"start against its parts, {what}")
            ready, parts = [], []
            for number in range(-1, 2 * self._sizes.rounds):
                with self._real(store, LOT_MAINTENANCE="off") as server:
                    seconds = server.start_seconds
                opening = processes.opening_seconds(store, self._log("opening"))
                if number >= 0:  # else it makes the store and fills the caches
                    ready.append(seconds)
                    parts.append(opening)
            self.figures.append(figures.start(what, ready, parts))

    def large(self, empty_bytes: int) -> None:
        """Start and memory with 100,000 patterns."""
        compacted = self._options.full
        template = stores.filled(LARGE, compacted=compacted, say=self.say)
        store = self._copy(template)
        self.say(f"start, {LARGE:,} patterns")
        seconds, resident, own, files = [], 0, 0, 0
        for _ in range(_STARTS):
            with self._real(store, LOT_MAINTENANCE="off") as server:
                seconds.append(server.start_seconds)
                self._recalls(server, _RECALLS)
                resident = server.resident_bytes
                own, files = server.anonymous_bytes, server.file_bytes
        self._start(f"{LARGE:,} patterns", median(seconds), 6)
        payload = data.mean_payload_bytes(1000)
        beyond = (resident - empty_bytes) / LARGE - _VECTOR_BYTES - payload
        self.figures.append(
            Figure(
                f"memory a pattern, at {LARGE:,}",
                f"{beyond:,.0f} bytes beyond vector and payload",
                "≤ 3,072",
                beyond <= 3072,
                f"{resident / _MIB:.0f} MB in all: {own / _MIB:.0f} own, of which up to "
                f"{RECENT_BYTES / _MIB:.0f} cached records, and {files / _MIB:.0f} mapped files; "
                f"vector {_VECTOR_BYTES}, payload {payload:.0f} bytes",
                {
                    "bytes_beyond": beyond,
                    "resident_bytes": resident,
                    "anonymous_bytes": own,
                    "file_bytes": files,
                    "payload_bytes": payload,
                },
            )
        )

    def growth(self) -> None:
        """Filtered recall over 10,000 and over 100,000, both compacted."""
        templates = [stores.filled(n, compacted=True, say=self.say) for n in (SMALL, LARGE)]
        self.say("recall as memories grow")
        with (
            self._real(self._copy(templates[0])) as small,
            self._real(self._copy(templates[1]), LOT_MAINTENANCE="off") as large,
        ):
            p50: list[list[float]] = [[], []]
            for number in range(2 * self._sizes.rounds):
                first = 3_000_000 + number * 10_000
                for server, found in ((small, p50[0]), (large, p50[1])):
                    found.append(self._recalls(server, self._sizes.single, first))
        ratio = median([b / a for a, b in zip(*p50, strict=True)])
        beside = f"{milliseconds(median(p50[1]))} at {LARGE:,}, "
        beside += f"{milliseconds(median(p50[0]))} at {SMALL:,}"
        name = "RecallPatterns, one client, 100,000 against 10,000"
        values = {"ratio": ratio, "p50": p50}
        self.figures.append(Figure(name, f"{ratio:.2f} x", "≤ 2", ratio <= 2, beside, values))

    # --- inside ---------------------------------------------------------------------------------

    def _start(self, what: str, seconds: float, target: float) -> None:
        name, shown = f"start to ready, {what}", f"{seconds:.2f} s"
        values = {"seconds": seconds}
        met = seconds <= target
        self.figures.append(Figure(name, shown, f"≤ {target:g} s", met, values=values))

    def _recalls(self, server: processes.Server, count: int, first: int = 2_000_000) -> float:
        """Recalls that all are distinct; their median in seconds."""
        return median(self._calls(server, "recall", count, first))

    def _calls(self, server: processes.Server, kind: str, count: int, first: int) -> list[float]:
        done = self._client.do("calls", address=server.address, kind=kind, first=first, count=count)
        times: list[float] = done["times"]
        return times

    def _copy(self, template: Path) -> Path:
        self._copies += 1
        return stores.sparse_copy(template, self._folder / f"store-{self._copies}")

    def _log(self, name: str) -> Path:
        return self._folder / f"{name}-{time.monotonic_ns()}.log"

    @contextmanager
    def _real(self, store: Path, **settings: str) -> Iterator[processes.Server]:
        with processes.real_server(store, self._log("real"), **settings) as server:
            try:
                yield server
            finally:
                self._client.do("forget", address=server.address)


ALONE = ("rerank", "context", "used", "agents", "memories", "guarded", "start", "memory")
"""Values of ``--only`` that name a comparison with servers of its own."""


def _options() -> Any:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="less of each, under two minutes")
    parser.add_argument(
        "--full",
        action="store_true",
        help="also 100,000 patterns, compacted, and 100,000 outcomes (minutes, once)",
    )
    parser.add_argument(
        "--only",
        default="",
        help="just the comparisons with this in their name, or `rerank`, `context`, `used`, "
        "`agents`, `memories`, `guarded`, `start`, `memory`",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--write", action="store_true", help=f"write the tables to {page.NAME}")
    options = parser.parse_args()
    if options.write and options.only:
        parser.error("--write replaces whole tables, so it cannot be combined with --only")
    return options


def main() -> int:
    """Run it."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that children are ended too
    options = _options()
    load = page.load()
    machine = {"cores": os.cpu_count(), "load at start": round(load, 1)}
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="lot-grpc-bench-") as name:
        folder = Path(name)
        try:
            with processes.client(folder / "client.log") as client:
                run = Run(folder, client, options)
                parts = {} if options.only else run.parts()
                if not options.only or options.only in "rerank":
                    run.rerank()
                if not options.only or options.only == "context":
                    run.context()
                if options.only not in ALONE:
                    run.calls()
                if not options.only or options.only == "agents":
                    run.agents()
                if not options.only or options.only == "memories":
                    run.memories()
                if not options.only or options.only == "guarded":
                    run.guarded()
                if options.only == "used" or (options.full and not options.only):
                    run.used()
                if not options.only or options.only == "start":
                    run.start()
                if not options.only or options.only == "memory":
                    empty_bytes = run.empty()
                    if not options.quick:
                        run.large(empty_bytes)
                if options.full and not options.only:
                    run.growth()
        except processes.BenchError as error:
            print(f"bench: {error}", file=sys.stderr)
            return 1
    machine["load at end"] = round(os.getloadavg()[0], 1)
    machine["seconds"] = round(time.monotonic() - started)
    done = Report(run.figures, parts, machine)
    if options.json:
        print(report.as_json(done))
    else:
        report.show(done)
    if options.write:
        how = ", --quick" if options.quick else ", --full" if options.full else ""
        facts = f"{page.machine(load)}; {machine['seconds']} s{how}."
        page.write("bench", f"{facts}\n\n{report.as_markdown(done)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
