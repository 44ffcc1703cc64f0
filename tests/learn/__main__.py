"""Shows that ranking learns: many asks through the real services, and how good they have become.

Stored patterns work with hidden chances; an ask succeeds if the pattern that comes first is of the
query's template and its coin falls so, and the outcome is recorded. What is told is the expected
share of successes on the queries that are asked and on those that never are (docs/learning.md).
Exit code 1 if a target is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from lot_grpc.cli.progress import ProgressDisplay
from lot_grpc.cli.start import begin
from lot_grpc.domain.errors import LotError
from lot_grpc.evaluation.errors import EvalDataError
from lot_grpc.evaluation.runs import check_writable, write_text
from tests.learn import picture, report, tables
from tests.learn.measuring import Measuring, Report, Wanted
from tests.learn.served import opened
from tests.learn.tasks import TaskSet, carried_set, read_set

ASKS, SEEDS = 15_000, (11,)
"""The settings were tuned on other draws than these."""
MOST_ASKS, MOST_SEEDS = 1_000_000, 100


def _options(given: list[str] | None) -> Any:
    parser = argparse.ArgumentParser(
        prog="python -m tests.learn",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--asks", type=_asks, default=ASKS, help=f"{ASKS:,} by default")
    parser.add_argument("--seeds", type=_seeds, default=SEEDS, help="11 by default; 11,12 or 11-13")
    parser.add_argument(
        "--set", type=Path, help="folder with a retrieval set; else a small one of our own"
    )
    parser.add_argument(
        "--formulas",
        action="store_true",
        help="by the formulas alone, over the pools that are searched: many seeds in minutes",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--picture", type=Path, help="draw it into this SVG file as well")
    return parser.parse_args(given)


def _asks(given: str) -> int:
    asks = int(given)
    if not 2 <= asks <= MOST_ASKS:
        raise argparse.ArgumentTypeError(f"must be between 2 and {MOST_ASKS:,}")
    return asks


def _seeds(given: str) -> tuple[int, ...]:
    seeds: dict[int, None] = {}
    for part in given.split(","):
        first, _, last = part.partition("-")
        wanted = range(int(first), int(last or first) + 1)
        if not wanted or len(wanted) + len(seeds) > MOST_SEEDS:
            raise argparse.ArgumentTypeError(f"names 1 to {MOST_SEEDS}, the lower one first")
        seeds.update(dict.fromkeys(wanted))
    return tuple(seeds)


def main(given: list[str] | None = None) -> int:
    """Run it."""
    options = _options(given)
    try:
        if options.picture:
            check_writable(options.picture)  # before the work, not after it
        tasks = read_set(options.set) if options.set else carried_set()
        started = time.monotonic()
        done = asyncio.run(_measure(tasks, Wanted(options.asks, options.seeds, options.formulas)))
        done = replace(done, seconds=time.monotonic() - started)
        if options.picture:
            write_text(options.picture, picture.draw(done))
    except (EvalDataError, LotError) as error:
        print(f"learn: {error}", file=sys.stderr)
        return 2
    if options.json:
        print(tables.as_json(done))
    else:
        tables.show(done, Console())
    return exit_code(done)


def exit_code(done: Report) -> int:
    """0 if all that BALANCED has to reach was reached."""
    return 0 if all(one.met for one in report.targets(done)) else 1


async def _measure(tasks: TaskSet, wanted: Wanted) -> Report:
    settings = begin(None)
    with (
        tempfile.TemporaryDirectory(prefix="lot-grpc-learn-") as name,
        ProgressDisplay() as progress,
    ):
        async with opened(settings, Path(name), progress) as serving:
            return await Measuring(serving, tasks, wanted, progress).run()


if __name__ == "__main__":
    # As Ctrl-C, so that a `kill` leaves no folder either.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main())
