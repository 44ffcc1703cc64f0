"""What ``lot-grpc eval`` prints for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from lot_grpc.domain.counting import counted
from lot_grpc.evaluation.bootstrap import Estimate
from lot_grpc.evaluation.metrics import METRICS, NDCG
from lot_grpc.evaluation.results import Result
from lot_grpc.evaluation.runs import Comparison

_WIDTH = 110
"""Where there is no terminal to ask."""

_HEADS = {"ndcg@10": "nDCG@10", "mrr@10": "MRR@10", "recall@5": "recall@5", "hit@1": "hit@1"}


def print_result(result: Result, *, groups: bool) -> None:
    """A row for each leg, the best of each metric in bold; then what else is to be known."""
    console = _console()
    table = _table(result.measured.dataset.name, "leg", "p50 ms")
    best = _best(result.legs)
    for leg, metrics in result.legs.items():
        table.add_row(leg, *_cells(metrics, leg, best), f"{result.p50_ms[leg]:.1f}")
    console.print(table)
    for line in _lines(result):
        console.print(f"  {line}", markup=False, highlight=False)
    if groups and result.groups:
        _print_groups(console, result)
    console.print()


def print_comparison(comparison: Comparison, path: Path | None) -> None:
    """This run minus the earlier one, a row for each leg and metric."""
    console = _console()
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


def _console() -> Console:
    console = Console()
    return console if console.is_terminal else Console(width=_WIDTH)


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


def _cells(metrics: Mapping[str, Estimate], leg: str, best: Mapping[str, float]) -> Sequence[str]:
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
    asked = counted(len(dataset.answerable), "query")
    if result.unanswerable:
        asked += f" ({result.unanswerable:,} more have no relevant document and are left out)"
    narrowed = f"; filter {dataset.filter_field}" if dataset.filter_field else ""
    lines = [
        f"{counted(len(dataset.documents), 'document')}, {asked}{narrowed}; {_settings(result)}"
    ]
    if result.blank_documents:
        lines.append(
            f"not saved, since without text: {counted(result.blank_documents, 'document')}"
        )
    if measured.truncated_documents or measured.truncated_queries:
        lines.append(
            "longer than the model reads: "
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
            table.add_row(f"{name}, {leg}", *_cells(metrics, leg, best), f"{group.queries:,}")
        table.add_section()
    console.print(table)
