"""Shows that ranking learns: many asks through the real services, and how good they have become.

Stored patterns, memories or episodes work with hidden chances; an ask succeeds if the one that
comes first is of the query's template and its coin falls so, and the outcome is recorded. What is
told is the expected share of successes on the queries that are asked and on those that never are
(docs/learning.md).
Exit code 1 if a target is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from rich.console import Console

from lot_grpc.cli.progress import ProgressDisplay
from lot_grpc.cli.start import begin
from lot_grpc.domain.errors import LotError
from lot_grpc.evaluation.errors import EvalDataError
from lot_grpc.evaluation.runs import check_writable, write_text
from tests.learn import fleet, leaving_out, picture, report, tables
from tests.learn.kinds import KINDS, Kind
from tests.learn.measuring import Measuring, Report, Wanted
from tests.learn.served import Pools, opened, read_pools
from tests.learn.tasks import TaskSet, carried_set, read_set
from tests.learn.worlds import Halving

ASKS, SEEDS = 15_000, tuple(range(11, 19))
"""One draw is several points off the mean. The settings were tuned on other draws than these."""
DOCUMENTS = 1_500
MOST_ASKS, MOST_SEEDS, MOST_RUNS = 1_000_000, 100, 10_000


def _options(given: list[str] | None) -> Any:
    parser = argparse.ArgumentParser(
        prog="python -m tests.learn",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--asks", type=_asks, default=ASKS, help=f"{ASKS:,} by default")
    parser.add_argument("--seeds", type=_seeds, default=SEEDS, help="11-18 by default; or 11,12")
    parser.add_argument(
        "--set",
        type=_set,
        action="append",
        dest="sets",
        metavar="FOLDER[=FIELD]",
        help="folder with a retrieval set, and the field that narrows each recall; "
        "any number of them; else a small one of our own",
    )
    parser.add_argument(
        "--kind",
        choices=[kind.name for kind in KINDS],
        action="append",
        dest="kinds",
        help="what the documents are stored as; any number of them; all, one after the other, by "
        "default",
    )
    parser.add_argument(
        "--halve",
        type=Halving,
        choices=list(Halving),
        help="how the queries never asked are chosen; both ways, one after the other, by default",
    )
    parser.add_argument(
        "--served",
        action="store_true",
        help="every ask through the services, which takes hours over large sets; else by the "
        "formulas of ranking, over what the services find",
    )
    parser.add_argument(
        "--documents",
        type=int,
        default=DOCUMENTS,
        metavar="N",
        help=f"take no more of a set: those that answer a query, then others; {DOCUMENTS:,} by "
        "default, 0 is all",
    )
    parser.add_argument(
        "--leave-one-out",
        action="store_true",
        help="fit the numbers of ranking on all sets but one, in turn, and tell how the one left "
        "out fares; two sets at least",
    )
    parser.add_argument(
        "--holdout",
        type=_runs,
        nargs="?",
        const=fleet.RUNS,
        metavar="RUNS",
        help="simulate fleets of agents with a holdout, and tell in how many runs its interval "
        f"covers the true gain; {fleet.RUNS} runs by default",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument(
        "--picture", type=Path, help="draw the first run into this SVG file as well"
    )
    return parser.parse_args(given)


def _set(given: str) -> tuple[Path, str]:
    folder, _, field = given.partition("=")
    return Path(folder), field


def _asks(given: str) -> int:
    asks = int(given)
    if not 2 <= asks <= MOST_ASKS:
        raise argparse.ArgumentTypeError(f"must be between 2 and {MOST_ASKS:,}")
    return asks


def _runs(given: str) -> int:
    runs = int(given)
    if not 1 <= runs <= MOST_RUNS:
        raise argparse.ArgumentTypeError(f"must be between 1 and {MOST_RUNS:,}")
    return runs


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
        sets = [read_set(folder, field, options.documents) for folder, field in options.sets or ()]
        if options.leave_one_out:
            return _leave_one_out(sets, options.asks, options.seeds)
        if options.holdout:
            return _holdout(sets or [carried_set()], options.holdout)
        how = options.asks, options.seeds, not options.served
        halvings = [options.halve] if options.halve else list(Halving)
        wanted = [Wanted(*how, halving, margins=bool(options.picture)) for halving in halvings]
        with ProcessPoolExecutor(mp_context=get_context("spawn")) as workers:
            done: list[Report] = []
            for tasks in sets or [carried_set()]:
                kinds = [one for one in KINDS if one.name in (options.kinds or (one.name,))]
                measured = asyncio.run(_measure(tasks, kinds, wanted, workers))
                done += measured
                if not options.json:
                    tables.show(measured, Console())
        if options.picture:
            write_text(options.picture, picture.draw(done[0]))
    except (EvalDataError, LotError) as error:
        print(f"learn: {error}", file=sys.stderr)
        return 2
    if options.json:
        print(tables.as_json(done))
    else:
        Console().print(tables.targets_table(done))
    return exit_code(done)


def _leave_one_out(sets: Sequence[TaskSet], asks: int, seeds: Sequence[int]) -> int:
    """Exit code 1 if a set that was left out misses a target."""
    if len(sets) < 2:
        raise EvalDataError("--leave-one-out needs --set twice or more: one set is left out")
    searched = [(tasks, asyncio.run(_search(tasks))) for tasks in sets]
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as workers:
        done = list(leaving_out.leave_out(searched, asks, seeds, workers))
    Console().print(tables.left_out_table(done))
    return int(min(one.reached.margin for one in done) < 0)


def _holdout(sets: Sequence[TaskSet], runs: int) -> int:
    """Exit code 1 if the interval covers the true gain in too few runs."""
    searched = [(tasks, asyncio.run(_search(tasks))) for tasks in sets]
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as workers:
        done = [fleet.simulated(*one, workers, runs) for one in searched]
    Console().print(tables.holdout_table(done))
    return int(not all(one.enough for one in done))


async def _search(tasks: TaskSet) -> Pools:
    with (
        tempfile.TemporaryDirectory(prefix="lot-grpc-learn-") as name,
        ProgressDisplay() as progress,
    ):
        async with opened(begin(None), Path(name), progress) as serving:
            return await read_pools(serving, tasks, progress)


def exit_code(done: Sequence[Report]) -> int:
    """0 if all that BALANCED has to reach was reached on every set, however halved."""
    return 0 if all(one.met for each in done for one in report.targets(each)) else 1


async def _measure(
    tasks: TaskSet, kinds: Sequence[Kind], wanted: Sequence[Wanted], workers: Executor
) -> list[Report]:
    """A set stored as each of the kinds, one after the other."""
    settings, reports = begin(None), []
    with (
        tempfile.TemporaryDirectory(prefix="lot-grpc-learn-") as name,
        ProgressDisplay() as progress,
    ):
        async with opened(settings, Path(name), progress) as serving:
            for kind in kinds:
                stored = replace(tasks, kind=kind)
                pools = await read_pools(serving, stored, progress)
                measuring = Measuring(serving, stored, pools, progress, workers)
                reports += [await measuring.run(one) for one in wanted]
    return reports


if __name__ == "__main__":
    # As Ctrl-C, so that a `kill` leaves no folder either.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main())
