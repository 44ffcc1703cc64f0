"""Runs saved in a file, and the comparison of a new run with one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lot_grpc.evaluation.bootstrap import Estimate, estimates
from lot_grpc.evaluation.dataset import Dataset
from lot_grpc.evaluation.errors import EvalDataError, wrong
from lot_grpc.evaluation.measuring import PerQuery
from lot_grpc.evaluation.metrics import METRICS
from lot_grpc.evaluation.results import Result

_FORMAT = 1
_MARK = "lot_grpc_eval"


@dataclass(frozen=True, slots=True)
class SavedSet:
    """A set of an earlier run. ``per_query`` maps leg → query id → metric."""

    fingerprints: Mapping[str, str]
    filter_field: str
    per_query: Mapping[str, PerQuery]


@dataclass(frozen=True, slots=True)
class SavedRun:
    """An earlier run: its sets by name."""

    path: Path
    sets: Mapping[str, SavedSet]


@dataclass(frozen=True, slots=True)
class Comparison:
    """This run minus an earlier one, for a set: leg → metric → difference."""

    data: str
    legs: Mapping[str, Mapping[str, Estimate]]
    notes: tuple[str, ...] = ()


def save_run(path: Path, results: Sequence[Result]) -> None:
    """Write a run, for ``read_run``.

    Raises:
        EvalDataError: The file cannot be written.
    """
    sets = [
        {
            "data": result.measured.dataset.name,
            "filter": result.measured.dataset.filter_field,
            "settings": dict(result.settings),
            "fingerprints": result.measured.dataset.fingerprints(),
            "per_query": result.measured.per_query,
        }
        for result in results
    ]
    write_text(path, json.dumps({_MARK: _FORMAT, "sets": sets}) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a file. Raises EvalDataError, with the reason, if that fails."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise wrong(path, 0, f"cannot be written: {error.strerror or error}") from None


def check_writable(path: Path) -> None:
    """Raise EvalDataError if the folder of a file does not exist."""
    if path.is_dir():
        raise wrong(path, 0, "is a folder; give a file")
    if not path.absolute().parent.is_dir():
        raise wrong(path, 0, "cannot be written: its folder does not exist; create it first")


def read_run(path: Path) -> SavedRun:
    """Read a run that ``save_run`` wrote.

    Raises:
        EvalDataError: It cannot be read, or is not a saved run.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise wrong(path, 0, f"cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise wrong(
            path, 0, f"is not JSON ({error}); --compare takes a file that --save wrote"
        ) from None
    if not isinstance(document, dict) or document.get(_MARK) != _FORMAT:
        raise wrong(
            path, 0, "was not saved by this version; --compare takes a file that --save wrote"
        )
    try:
        return SavedRun(path, {one["data"]: _saved_set(one) for one in document["sets"]})
    except (KeyError, TypeError, ValueError, AttributeError):
        raise wrong(path, 0, "is damaged; measure again with --save") from None


def _saved_set(document: Mapping[str, Any]) -> SavedSet:
    per_query = {
        leg: {key: {name: float(one[name]) for name in METRICS} for key, one in queries.items()}
        for leg, queries in document["per_query"].items()
    }
    return SavedSet(dict(document["fingerprints"]), str(document["filter"]), per_query)


def check_comparable(dataset: Dataset, earlier: SavedRun) -> None:
    """Raise EvalDataError unless the earlier run measured the same set. Call before measuring."""
    saved = earlier.sets.get(dataset.name)
    if saved is None:
        there = ", ".join(sorted(earlier.sets)) or "none"
        raise wrong(earlier.path, 0, f"has no set {dataset.name}; its sets are: {there}")
    mine = dataset.fingerprints()
    for part in ("queries", "documents"):
        if saved.fingerprints.get(part) != mine[part]:
            raise EvalDataError(
                f"{earlier.path}: that run had different {part} of {dataset.name}, so the two "
                "cannot be compared; measure both with the same set and the same --queries"
            )
    requested = {query.id for query in dataset.answerable}
    if any(set(queries) != requested for queries in saved.per_query.values()):
        raise wrong(earlier.path, 0, "is damaged; measure again with --save")


def compare(result: Result, earlier: SavedRun) -> Comparison:
    """This run minus the earlier one, for each leg that both have, paired by query.

    Raises:
        EvalDataError: They did not measure the same set.
    """
    dataset = result.measured.dataset
    check_comparable(dataset, earlier)
    saved = earlier.sets[dataset.name]
    queries = dataset.answerable
    keys = [
        (leg, metric)
        for leg in result.measured.legs
        if leg in saved.per_query
        for metric in METRICS
    ]
    columns = []
    for leg, metric in keys:
        before = [saved.per_query[leg][query.id][metric] for query in queries]
        now = result.measured.column(leg, metric, queries)
        columns.append([new - old for new, old in zip(now, before, strict=True)])
    legs: dict[str, dict[str, Estimate]] = {}
    for (leg, metric), estimate in zip(keys, estimates(columns) if keys else [], strict=True):
        legs.setdefault(leg, {})[metric] = estimate
    return Comparison(dataset.name, legs, _notes(result, saved))


def _notes(result: Result, saved: SavedSet) -> tuple[str, ...]:
    mine, before = set(result.measured.legs), set(saved.per_query)
    notes = [f"{leg} is in only one of the runs" for leg in sorted(mine ^ before)]
    if result.measured.dataset.filter_field != saved.filter_field:
        notes.append(
            f"the earlier run had {saved.filter_field or 'no filter'}, "
            f"this one has {result.measured.dataset.filter_field or 'no filter'}"
        )
    return tuple(notes)
