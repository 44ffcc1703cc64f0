"""Figures, and how they are shown."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from rich.console import Console
from rich.table import Table

from tests.bench import page


@dataclass(frozen=True)
class Figure:
    """A measured thing. ``met`` is None where there is no target."""

    what: str
    measured: str
    target: str = ""
    met: bool | None = None
    beside: str = ""
    values: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Report:
    """All of a run."""

    figures: list[Figure]
    parts: dict[str, float]
    machine: dict[str, Any]


def percentile(times: Sequence[float], share: float) -> float:
    """The value below which ``share`` of them lie."""
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.2f} ms"


def as_json(report: Report) -> str:
    return json.dumps(asdict(report), indent=2)


def as_markdown(report: Report) -> str:
    """The tables, for a page."""
    verdict = {None: "", True: "met", False: "**missed**"}
    rows = [
        (one.what, one.measured, one.target, verdict[one.met], one.beside) for one in report.figures
    ]
    text = page.table(("what", "measured", "target", "", "details"), rows)
    if report.parts:
        parts = [f"{value:.3f} ms" for value in report.parts.values()]
        text += "\n\nThe parts, in one process, one at a time:\n\n"
        text += page.table(list(report.parts), [parts])
    return text


def show(report: Report) -> None:
    """The tables, on standard output."""
    console = Console()
    machine = ", ".join(f"{name} {value}" for name, value in report.machine.items())
    table = Table(title="lot-grpc against a bare server", caption=machine)
    for heading in ("what", "measured", "target", "", "details"):
        table.add_column(heading, overflow="fold")
    for one in report.figures:
        verdict = {None: "", True: "[green]met[/]", False: "[red]missed[/]"}[one.met]
        table.add_row(one.what, one.measured, one.target, verdict, one.beside)
    console.print(table)
    if report.parts:
        parts = Table(title="the parts, in one process, one at a time")
        for name in report.parts:
            parts.add_column(name)
        parts.add_row(*(f"{value:.3f} ms" for value in report.parts.values()))
        console.print(parts)
