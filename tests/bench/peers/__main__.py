"""Measures lot-grpc over gRPC next to other stores that run inside a Python process.

Each runs in its own process. All get the same model, items, filters and number of clients, and take
turns in each round. The results are reported; none makes the run fail.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import lot_grpc
from lot_grpc.evaluation.dataset import Dataset
from lot_grpc.evaluation.errors import EvalDataError
from lot_grpc.evaluation.loading import load_dataset
from lot_grpc.evaluation.metrics import DEPTH, ndcg
from tests.bench import page, processes
from tests.bench.peers import inputs
from tests.bench.peers.adapters import PEERS
from tests.bench.peers.ours import FLUSHED, OURS, Ours
from tests.bench.peers.table import Measured, markdown

KINDS = ("recall", "store")


class Subject(Protocol):
    """``Ours`` or a worker's client."""

    def do(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Carry out a command of ``tests.bench.peers.worker``."""


class Run:
    """A run over all stores that could be started."""

    def __init__(self, folder: Path, options: Any, dataset: Dataset | None) -> None:
        self._folder = folder
        self._options = options
        self._dataset = dataset
        self._subjects: dict[str, Subject] = {}
        self.measured: dict[str, Measured] = {}
        self.failed: dict[str, str] = {}

    def all(self) -> None:
        options = self._options
        say("preparing items and vectors")
        needed = options.count * 2 * options.rounds
        written = asyncio.run(inputs.write(self._folder, options.items, needed, self._dataset))
        with ExitStack() as stack:
            for name in (OURS, FLUSHED, *PEERS):
                if not options.only or name in (OURS, *options.only.split(",")):
                    self._try(name, partial(self._start, name, stack))
            self._each("check", partial(self._check, written))
            for number in range(options.rounds):
                self._each(f"round {number + 1}", partial(self._round, number))
            self._each("nDCG@10", self._rank)

    def _start(self, name: str, stack: ExitStack) -> None:
        say(f"starting {name}")
        log = self._folder / f"{name}.log"
        started: Any = (
            Ours.started(self._folder, log, self._dataset, flushed=name == FLUSHED)
            if name in (OURS, FLUSHED)
            else worker(name, self._folder, log, self._options.python)
        )
        subject: Subject = stack.enter_context(started)
        self.measured[name] = Measured(name, **subject.do("about"))
        self._subjects[name] = subject
        subject.do("fill", file="items")

    def _check(self, written: inputs.Inputs, name: str) -> None:
        """Check that a peer finds what an exact search finds; ours also ranks by other criteria."""
        answers = self._subjects[name].do("answers", queries=written.checks)["ids"]
        agreement = written.agreement(answers)
        self.measured[name].agreement = agreement
        if name not in (OURS, FLUSHED) and agreement < 0.8:
            raise processes.BenchError(f"finds only {agreement:.0%} of what an exact search finds")

    def _round(self, number: int, name: str) -> None:
        one = self.measured[name]
        for place, clients in enumerate((1, self._options.clients)):
            if clients > 1 and not one.threads:
                continue
            first = (2 * number + place) * self._options.count
            for kind in KINDS if name != FLUSHED else ("store",):
                done = self._subjects[name].do(
                    kind,
                    first=first,
                    count=self._options.count,
                    clients=clients,
                    seconds=self._options.seconds,
                )
                one.rounds[kind, clients > 1].append(done)

    def _rank(self, name: str) -> None:
        dataset, subject = self._dataset, self._subjects[name]
        if not dataset or name == FLUSHED:
            return
        subject.do("fill", file=inputs.EVAL)
        where = {"tenant": inputs.EVAL, "language": "", "success_rate": 0.0}
        queries = dataset.answerable
        limit = DEPTH + max(len(query.exclude) for query in queries)
        texts = [(query.text, where) for query in queries]
        found = subject.do("answers", queries=texts, limit=limit)["ids"]
        rankings = [
            [one for one in ids if one not in query.exclude]
            for query, ids in zip(queries, found, strict=True)
        ]
        scores = [
            ndcg(ranking, query.judged) for query, ranking in zip(queries, rankings, strict=True)
        ]
        self.measured[name].ndcg = sum(scores) / len(scores)

    def _each(self, what: str, do: Callable[[str], None]) -> None:
        say(what)
        for name in list(self._subjects):
            self._try(name, partial(do, name))

    def _try(self, name: str, do: Callable[[], None]) -> None:
        """Report a peer that fails and go on with the others. A failure of ours ends the run."""
        try:
            do()
        except (processes.BenchError, OSError) as error:
            if name == OURS:
                raise
            self.failed[name] = next(reversed(str(error).splitlines()), "")
            self.measured.pop(name, None)
            self._subjects.pop(name, None)
            say(f"{name} failed: {error}")


@contextmanager
def worker(name: str, folder: Path, log: Path, python: str) -> Iterator[Subject]:
    """A peer's process, with its own home folder and with telemetry turned off."""
    quiet = {
        "ANONYMIZED_TELEMETRY": "False",
        "DO_NOT_TRACK": "1",
        "HF_HUB_OFFLINE": "1",
        "HOME": str(folder),
        "MEM0_DIR": str(folder / "mem0"),
        "MEM0_TELEMETRY": "False",
        "ORT_DISABLE_TELEMETRY": "1",
    }
    command = ["-m", "tests.bench.peers.worker", name, str(folder)]
    with processes.worker(name, command, log, python, **quiet) as client:
        yield client


def say(what: str) -> None:
    """Print progress."""
    print(f"… {what}", file=sys.stderr, flush=True)


def _options() -> Any:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.peers", description=__doc__)
    parser.add_argument("--python", default=sys.executable, help="Python of the peers' environment")
    parser.add_argument("--data", type=Path, help="a retrieval data set, as for `lot-grpc eval`")
    parser.add_argument("--queries", type=int, default=200, help="queries of it; 0: all")
    parser.add_argument("--items", type=int, default=5000, help="items a store; at most 10,000")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--count", type=int, default=120, help="calls in each part of a round")
    parser.add_argument("--seconds", type=float, default=1.0, help="time limit of each part")
    parser.add_argument("--clients", type=int, default=8, help="concurrent clients")
    peers = ", ".join(PEERS)
    parser.add_argument("--only", default="", help=f"some of these, separated by commas: {peers}")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--write", action="store_true", help=f"write the tables to {page.NAME}")
    options = parser.parse_args()
    if options.write and options.only:
        parser.error("--write replaces whole tables, so it cannot be combined with --only")
    return options


def main() -> int:
    """Run the benchmark."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # also ends child processes
    options = _options()
    started, load = time.monotonic(), page.load()
    try:
        dataset = load_dataset(options.data).sampled(options.queries) if options.data else None
        with tempfile.TemporaryDirectory(prefix="lot-grpc-peers-") as name:
            run = Run(Path(name), options, dataset)
            run.all()
    except (EvalDataError, processes.BenchError) as error:
        print(f"bench-peers: {error}", file=sys.stderr)
        return 1
    facts = f"{page.machine(load)}; lot-grpc {lot_grpc.__version__}"
    facts += f"; {time.monotonic() - started:.0f} s"
    if options.json:
        shown = {name: one.as_json() for name, one in run.measured.items()}
        print(json.dumps({"measured": shown, "failed": run.failed, "machine": facts}, indent=2))
        return 0
    text = markdown(list(run.measured.values()), run.failed, options, dataset)
    print(f"{text}\n\n{facts}")
    if options.write:
        page.write("peers", f"{facts}.\n\n{text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
