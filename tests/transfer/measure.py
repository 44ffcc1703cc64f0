"""Moves a whole store: export, import into an empty one, export again; killed in between as well.

    python -m tests.transfer.measure --things 50000 --events 200000 [--vectors] [--kill]

The servers are ``lot-grpc serve`` on loopback with the embedded store, the files are written and
read by ``lot-grpc export`` and ``lot-grpc import``. Prints rates and the largest memory,
and fails if the two exports differ in anything but their header.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lot_grpc.cli.transfer_file import read_messages
from lot_grpc.pb.lot.v1 import transfer_pb2 as pb
from tests.e2e.forked import Forked
from tests.e2e.process import PATIENCE, ROOT, Served, environment, serve
from tests.transfer.filling import Filling

_ANONYMOUS = re.compile(r"^RssAnon:\s+(\d+) kB", re.MULTILINE)


@dataclass(frozen=True)
class Moved:
    """A command that has ended well.

    ``peaks``: the most memory that the command and the server had meanwhile, in MiB, and what the
    server had before. Mapped files do not count.
    """

    told: dict[str, object]
    seconds: float
    peaks: tuple[float, float, float]


def memory(pid: int) -> float:
    """The resident memory of a process without mapped files, in MiB; 0 once it is gone."""
    try:
        found = _ANONYMOUS.search(Path(f"/proc/{pid}/status").read_text())
    except OSError:
        return 0.0
    return int(found[1]) / 1024 if found else 0.0


def begun(served: Served, *arguments: str) -> Forked:
    """A command of ``lot-grpc`` on a server."""
    called = (*arguments, "--address", served.address, "--json")
    return Forked(called, env=environment(served.data), cwd=ROOT)


def moved(served: Served, *arguments: str) -> Moved:
    """Run a command to its end, which must be a good one."""
    started = time.perf_counter()
    before = memory(served.process.pid)
    process = begun(served, *arguments)
    commands, servers = [0.0], [before]

    def watch() -> None:
        while process.poll() is None:
            commands.append(memory(process.pid))
            servers.append(memory(served.process.pid))
            time.sleep(0.05)

    change_watcher = threading.Thread(target=watch)
    change_watcher.start()
    stdout, stderr = process.communicate(PATIENCE)
    change_watcher.join()
    if process.returncode:
        raise AssertionError(f"{' '.join(arguments)}: {stdout}{stderr}")
    seconds = time.perf_counter() - started
    return Moved(json.loads(stdout), seconds, (max(commands), max(servers), before))


def contents(file: Path) -> Iterator[bytes]:
    """What two exports of the same content have in common: all records, in order."""
    with file.open("rb") as opened:
        for message in read_messages(opened, str(file)):
            for record in message.records:
                yield _plain(record)


def _plain(record: pb.ExportRecord) -> bytes:
    raw: bytes = record.SerializeToString(deterministic=True)
    return raw


def same(one: Path, other: Path) -> int:
    """How many records two files have, which must be the same ones."""
    count = 0
    for a, b in zip(contents(one), contents(other), strict=True):
        if a != b:
            raise AssertionError(
                f"record {count} differs:\n{pb.ExportRecord.FromString(a)}\n"
                f"{pb.ExportRecord.FromString(b)}"
            )
        count += 1
    return count


@contextmanager
def serving(folder: Path, name: str) -> Iterator[Served]:
    """A server on a folder of its own, ended with the block."""
    served = serve(folder / name, folder / f"{name}.log", {"LOT_MAINTENANCE": "off"})
    try:
        yield served
    finally:
        if served.process.poll() is None:
            served.stop()


def say(what: str, done: Moved, records: int) -> None:
    """A line of the table."""
    print(
        f"{what:28}{done.seconds:8.1f} s{records / done.seconds:10,.0f} records/s"
        f"{done.peaks[0]:8.0f} MiB command{done.peaks[1]:8.0f} MiB server"
        f" ({done.peaks[2]:.0f} before)",
        flush=True,
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--things", type=int, default=50_000)
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--vectors", action="store_true", help="let vectors come along")
    parser.add_argument("--kill", action="store_true", help="kill both ends half-way as well")
    parser.add_argument("--folder", type=Path, help="keep the files there")
    wanted = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as made:
        folder = wanted.folder or Path(made)
        folder.mkdir(parents=True, exist_ok=True)
        measure(folder, wanted.things, wanted.events, vectors=wanted.vectors, kill=wanted.kill)


def measure(folder: Path, things: int, events: int, *, vectors: bool, kill: bool) -> None:
    """All of it, in a folder."""
    from tests.transfer.killing import kill_exports, kill_imports

    first, second = folder / "first.lot", folder / "second.lot"
    options = ["--vectors"] if vectors else []
    with serving(folder, "source") as source:
        started = time.perf_counter()
        Filling(source.address, things, events).fill()
        print(f"filled in {time.perf_counter() - started:.0f} s", flush=True)
        done = moved(source, "export", str(first), *options)
        records = sum(1 for _ in contents(first))
        print(f"{records:,} records: {done.told['record_counts']}", flush=True)
        say("export", done, records)
        print(f"{first.stat().st_size / 2**20:.1f} MiB in the file", flush=True)
        if kill:
            kill_exports(folder, source, first, options)
    with serving(folder, "target") as target:
        say("import", moved(target, "import", str(first)), records)
        say("import again", moved(target, "import", str(first)), records)
        say("export again", moved(target, "export", str(second), *options), records)
        print(f"the same {same(first, second):,} records", flush=True)
    if kill:
        kill_imports(folder, first, options)


if __name__ == "__main__":
    main()
