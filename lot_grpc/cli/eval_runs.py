"""The sets of an evaluation: reading them, measuring on one, and printing the results."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from lot_grpc.cli.tables import screen
from lot_grpc.domain.counting import counted
from lot_grpc.evaluation import as_error_solution, as_pattern
from lot_grpc.evaluation.as_error_solution import are_errors
from lot_grpc.evaluation.bootstrap import Estimate
from lot_grpc.evaluation.dataset import Dataset
from lot_grpc.evaluation.errors import EvalDataError
from lot_grpc.evaluation.loading import load_dataset
from lot_grpc.evaluation.measuring import measure
from lot_grpc.evaluation.metrics import METRICS, NDCG
from lot_grpc.evaluation.results import Result, result_of
from lot_grpc.evaluation.runs import Comparison
from lot_grpc.evaluation.searcher import LEGS, RERANK, Searcher
from lot_grpc.settings import Settings

Progress = Callable[[str, int, int], None]


def load_sets(folders: Sequence[Path], filters: Sequence[str], queries: int) -> list[Dataset]:
    """Read the sets, each with a unique name.

    Args:
        folders: One per set.
        filters: FIELD for all sets, or SET=FIELD.
        queries: How many to use; 0: all.

    Raises:
        EvalDataError: A folder is not a set, is given twice, or lacks what its filter needs.
    """
    names = _names(folders)
    fields = _filters(filters, set(names.values()))
    datasets = []
    for folder, name in names.items():
        field = fields.get(name, fields.get("", ""))
        dataset = load_dataset(folder, field, name).sampled(queries)
        of_errors = are_errors(dataset.documents)
        (as_error_solution if of_errors else as_pattern).check_fits(dataset)
        datasets.append(dataset)
    return datasets


def _names(folders: Sequence[Path]) -> dict[Path, str]:
    """The folder's name; if two have the same, the path as given."""
    basenames = [folder.resolve().name for folder in folders]
    names = {}
    for folder, name in zip(folders, basenames, strict=True):
        if folder in names:
            raise EvalDataError(f"--data {folder} is given twice; remove one")
        names[folder] = name if basenames.count(name) == 1 else str(folder)
    return names


def _filters(given: Sequence[str], names: set[str]) -> dict[str, str]:
    """Filter fields by set; the empty name is for all sets."""
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
                f"--filter {one}: {name or 'all sets'} already has a filter field; a set can have "
                "only one"
            )
    return filters


def measured(settings: Settings, dataset: Dataset, progress: Progress, *, rerank: bool) -> Result:
    """Measure on one set, in its own store: BM25 counts words over everything in a store."""
    with tempfile.TemporaryDirectory(prefix="lot-eval-") as folder:
        return asyncio.run(_measure(settings, dataset, progress, Path(folder), rerank=rerank))


async def _measure(
    settings: Settings, dataset: Dataset, progress: Progress, folder: Path, *, rerank: bool
) -> Result:
    from lot_grpc.bootstrap import throwaway
    from lot_grpc.evaluation.through_service import ErrorSearcher, PatternSearcher

    of_errors = are_errors(dataset.documents)
    legs = (*LEGS, RERANK) if rerank and not of_errors else LEGS
    async with throwaway(settings, folder, progress) as services:
        kind = ErrorSearcher if of_errors else PatternSearcher
        searcher: Searcher = kind(services, dataset.filter_field)
        found = await measure(dataset, searcher, legs, progress)
        contract = services.admin.contract
    return result_of(
        found,
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


_HEADS = {"ndcg@10": "nDCG@10", "mrr@10": "MRR@10", "recall@5": "recall@5", "hit@1": "hit@1"}


def print_result(result: Result, *, groups: bool) -> None:
    """Print a row for each leg, the best of each metric in bold; then notes."""
    console = screen()
    table = _table(result.measured.dataset.name, "leg", "p50 ms")
    best = _best(result.legs)
    for leg, metrics in result.legs.items():
        table.add_row(leg, *_row(metrics, leg, best), f"{result.p50_ms[leg]:.1f}")
    console.print(table)
    for line in _lines(result):
        console.print(f"  {line}", markup=False, highlight=False)
    if groups and result.groups:
        _print_groups(console, result)
    console.print()


def print_comparison(comparison: Comparison, path: Path | None) -> None:
    """Print this run minus the earlier one, a row for each leg and metric."""
    console = screen()
    table = Table(
        title=f"{comparison.data}: this run against {path}", title_justify="left", box=SIMPLE_HEAD
    )
    for head in ("leg", "metric"):
        table.add_column(head)
    for head in ("difference", "95 % interval"):
        table.add_column(head, justify="right")
    table.add_column("shows")
    for leg, metrics in comparison.legs.items():
        for metric, one in metrics.items():
            table.add_row(leg, _HEADS[metric], f"{one.mean:+.3f}", _signed(one), one.verdict.value)
    console.print(table)
    for note in comparison.notes:
        console.print(f"  {note}", markup=False, highlight=False)


def _table(title: str, first: str, last: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    table.add_column(first)
    for metric in METRICS:
        table.add_column(_HEADS[metric], justify="right")
        if metric == NDCG:
            table.add_column("95 % interval", justify="right")
    table.add_column(last, justify="right")
    return table


def _best(legs: Mapping[str, Mapping[str, Estimate]]) -> dict[str, float]:
    return {
        metric: max(round(metrics[metric].mean, 3) for metrics in legs.values())
        for metric in METRICS
    }


def _row(metrics: Mapping[str, Estimate], leg: str, best: Mapping[str, float]) -> Sequence[str]:
    cells = []
    for metric in METRICS:
        one = metrics[metric]
        text = f"{one.mean:.3f}"
        cells.append(f"[bold]{text}[/bold]" if round(one.mean, 3) == best[metric] else text)
        if metric == NDCG:
            cells.append(f"{one.low:.3f} to {one.high:.3f}")
    return cells


def _lines(result: Result) -> list[str]:
    dataset, measured = result.measured.dataset, result.measured
    queries = counted(len(dataset.answerable), "query")
    if result.unanswerable:
        queries += f" ({result.unanswerable:,} more have no relevant document and are omitted)"
    narrowed = f"; filter {dataset.filter_field}" if dataset.filter_field else ""
    lines = [
        f"{counted(len(dataset.documents), 'document')}, {queries}{narrowed}; {_settings(result)}"
    ]
    if result.blank_documents:
        lines.append(f"not saved, for lack of text: {counted(result.blank_documents, 'document')}")
    if measured.truncated_documents or measured.truncated_queries:
        lines.append(
            "longer than what the model reads: "
            f"{counted(measured.truncated_documents, 'document')} and "
            f"{counted(measured.truncated_queries, 'query')}"
        )
    if gain := result.gain.get(NDCG):
        one = gain.estimate
        lines.append(
            f"hybrid against {gain.than}, its better leg: nDCG@10 {one.mean:+.3f} "
            f"({_signed(one)}), {one.verdict.value}"
        )
    return lines


def _settings(result: Result) -> str:
    saved_as = result.settings.get("saved_as", "patterns")
    return f"saved as {saved_as}; model {result.settings.get('model', 'unknown')}"


def _signed(one: Estimate) -> str:
    return f"{one.low:+.3f} to {one.high:+.3f}"


def _print_groups(console: Console, result: Result) -> None:
    table = _table("by kind of query", "kind, leg", "queries")
    for name, group in result.groups.items():
        best = _best(group.legs)
        for leg, metrics in group.legs.items():
            table.add_row(f"{name}, {leg}", *_row(metrics, leg, best), f"{group.queries:,}")
        table.add_section()
    console.print(table)
