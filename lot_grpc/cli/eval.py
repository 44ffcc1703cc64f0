"""``lot-grpc eval``: measure recall on retrieval sets."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from lot_grpc.cli.eval_tables import print_comparison, print_result
from lot_grpc.cli.progress import ProgressDisplay
from lot_grpc.cli.start import begin
from lot_grpc.evaluation import as_error_solution, as_pattern
from lot_grpc.evaluation.as_error_solution import are_errors
from lot_grpc.evaluation.dataset import Dataset
from lot_grpc.evaluation.errors import EvalDataError
from lot_grpc.evaluation.loading import load_dataset
from lot_grpc.evaluation.measuring import measure
from lot_grpc.evaluation.picture import draw
from lot_grpc.evaluation.results import Result, difference_json, result_json, result_of
from lot_grpc.evaluation.runs import (
    Comparison,
    SavedRun,
    check_comparable,
    check_writable,
    compare,
    read_run,
    save_run,
    write_text,
)
from lot_grpc.evaluation.searcher import LEGS, RERANK, Searcher
from lot_grpc.settings import Settings

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Wanted:
    """The options. ``filters``: FIELD for all sets or SET=FIELD; ``queries`` 0: all."""

    data: tuple[Path, ...]
    filters: tuple[str, ...] = ()
    rerank: bool = False
    queries: int = 0
    groups: bool = False
    save: Path | None = None
    compare: Path | None = None
    picture: Path | None = None


def run(config: Path | None, wanted: Wanted, *, as_json: bool) -> None:
    """Measure and print.

    Raises:
        SettingsError: The settings cannot be used.
        EvalDataError: A set, or a file that was named, cannot be used.
        LotError: The model or the store failed.
    """
    settings = begin(config)
    earlier = read_run(wanted.compare) if wanted.compare else None
    for path in (wanted.save, wanted.picture):
        if path:
            check_writable(path)  # before the work, not after it
    datasets = load_all(wanted)
    if earlier:
        for dataset in datasets:
            check_comparable(dataset, earlier)
    # As Ctrl-C, so that a `kill` leaves no folder either.
    signal.signal(signal.SIGTERM, _interrupt)
    shown = sys.stderr.isatty() and not as_json
    with ProgressDisplay() if shown else nullcontext(_silent) as progress:
        results = [_measured(settings, one, wanted, progress) for one in datasets]
    _tell(results, earlier, wanted, as_json=as_json)
    if wanted.save:
        save_run(wanted.save, results)
    if wanted.picture:
        write_text(wanted.picture, draw(results))


def _interrupt(*_: object) -> None:
    """Also where Ctrl-C is ignored, as in the background of a script."""
    raise KeyboardInterrupt


def _silent(task: str, done: int, total: int) -> None:
    """No progress to show."""


# --- sets -------------------------------------------------------------------------------------


def load_all(wanted: Wanted) -> list[Dataset]:
    """Read the sets, each under a name of its own.

    Raises:
        EvalDataError: One is not a set, is named twice, or is not there for its filter.
    """
    names = _names(wanted.data)
    filters = _filters(wanted.filters, set(names.values()))
    datasets = []
    for folder, name in names.items():
        field = filters.get(name, filters.get("", ""))
        dataset = load_dataset(folder, field, name).sampled(wanted.queries)
        of_errors = are_errors(dataset.documents)
        (as_error_solution if of_errors else as_pattern).check_fits(dataset)
        datasets.append(dataset)
    return datasets


def _names(folders: Sequence[Path]) -> dict[Path, str]:
    """The folder's name; where two are called alike, the path as it was given."""
    called = [folder.resolve().name for folder in folders]
    names = {}
    for folder, name in zip(folders, called, strict=True):
        if folder in names:
            raise EvalDataError(f"--data {folder} is given twice; leave one out")
        names[folder] = name if called.count(name) == 1 else str(folder)
    return names


def _filters(given: Sequence[str], names: set[str]) -> dict[str, str]:
    """Filter field by set; under the empty name the one for all."""
    filters: dict[str, str] = {}
    for one in given:
        name, equals, field = one.rpartition("=")
        if not field or (equals and name not in names):
            raise EvalDataError(
                f"--filter {one}: must be FIELD or SET=FIELD, with SET one of "
                f"{', '.join(sorted(names))}"
            )
        if filters.setdefault(name, field) != field:
            raise EvalDataError(
                f"--filter {one}: there is another one for {name or 'all sets'}; a set has one "
                "filter field"
            )
    return filters


# --- measuring --------------------------------------------------------------------------------


def _measured(settings: Settings, dataset: Dataset, wanted: Wanted, progress: Progress) -> Result:
    """Each set has a store of its own: BM25 counts words over all that a store holds."""
    with tempfile.TemporaryDirectory(prefix="lot-eval-") as folder:
        return asyncio.run(_measure(settings, dataset, wanted, progress, Path(folder)))


async def _measure(
    settings: Settings, dataset: Dataset, wanted: Wanted, progress: Progress, folder: Path
) -> Result:
    from lot_grpc.bootstrap import throwaway
    from lot_grpc.evaluation.through_service import ErrorSearcher, PatternSearcher

    of_errors = are_errors(dataset.documents)
    legs = (*LEGS, RERANK) if wanted.rerank and not of_errors else LEGS
    async with throwaway(settings, folder, progress) as services:
        kind = ErrorSearcher if of_errors else PatternSearcher
        searcher: Searcher = kind(services, dataset.filter_field)
        measured = await measure(dataset, searcher, legs, progress)
        contract = services.admin.contract
    return result_of(
        measured,
        {
            "saved_as": "error solutions" if of_errors else "patterns",
            "model": contract.model,
            "dimensions": contract.dimensions,
            "model_sha256": contract.model_sha256,
            "tokenizer": contract.tokenizer,
            "query_prefix": contract.query_prefix,
            "ranking": settings.ranking.model_dump(),
        },
    )


# --- telling ----------------------------------------------------------------------------------


def _tell(
    results: Sequence[Result], earlier: SavedRun | None, wanted: Wanted, *, as_json: bool
) -> None:
    comparisons = [compare(result, earlier) for result in results] if earlier else []
    if as_json:
        told = [result_json(result) for result in results]
        for one, comparison in zip(told, comparisons, strict=False):
            one["compared"] = _comparison_json(comparison, earlier)
        typer.echo(json.dumps(told[0] if len(told) == 1 else {"sets": told}, indent=2))
        return
    for result in results:
        print_result(result, groups=wanted.groups)
    for comparison in comparisons:
        print_comparison(comparison, wanted.compare)


def _comparison_json(comparison: Comparison, earlier: SavedRun | None) -> Mapping[str, Any]:
    differences = {
        leg: {metric: difference_json(one) for metric, one in metrics.items()}
        for leg, metrics in comparison.legs.items()
    }
    path = str(earlier.path) if earlier else ""
    return {"with": path, "notes": list(comparison.notes), **differences}
