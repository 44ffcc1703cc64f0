"""A run as tables, or as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from rich.console import Console
from rich.table import Table

from tests.learn.measuring import EARLY, Report, Wanted
from tests.learn.report import figures, gates, targets


def as_json(report: Report) -> str:
    """All of it, for programs."""
    told = {
        "set": report.tasks.name,
        "patterns": len(report.tasks.stored),
        "queries": len(report.tasks.queries),
        "asks": report.wanted.asks,
        "seeds": report.wanted.seeds,
        "formulas_alone": report.wanted.formulas,
        "seconds": round(report.seconds),
        "settings": asdict(report.weights),
        "rankings": [asdict(row) for row in figures(report)],
        "gates": [asdict(row) for row in gates(report)],
        "targets": [asdict(target) for target in targets(report)],
        "measured": [asdict(one) for one in report.measured],
    }
    return json.dumps(told, indent=2, ensure_ascii=False)


def show(report: Report, console: Console) -> None:
    """The tables."""
    console.print(_rankings_table(report))
    if report.wanted.asks >= min(EARLY):
        console.print(_early_table(report))
    console.print(_gates_table(report))
    console.print(_targets_table(report))


def _rankings_table(report: Report) -> Table:
    wanted, weights = report.wanted, report.weights
    table = _table(
        f"Expected share of successes after {wanted.asks:,} asks: {report.tasks.name}, "
        f"{len(report.tasks.stored):,} patterns, {len(report.tasks.queries):,} queries",
        ("ranking", "asked", "of the way", "never asked", "gain", "after the change"),
        f"{_how(wanted)}, {_seeds(wanted.seeds)}. gate {weights.gate:g}, "
        f"weight {weights.learned:g}, kernel width "
        f"{weights.kernel_width:g}, kept {weights.fading.kept:g}. {report.seconds:,.0f} seconds.",
    )
    for row in figures(report):
        table.add_row(
            row.name,
            f"{row.asked:.3f}",
            f"{row.way:.1%}",
            f"{row.never:.3f}",
            f"{row.gain:+.3f}",
            "" if row.again is None else f"{row.again:.1%}",
        )
    return table


def _early_table(report: Report) -> Table:
    measured = [asks for asks in EARLY if asks <= report.wanted.asks]
    headings = [f"{asks} asks, {kind}" for asks in measured for kind in ("asked", "never asked")]
    table = _table("Above RELEVANCE, early", ("ranking", *headings), "")
    for row in figures(report):
        if row.early:
            gains = [gain for asks in measured for gain in row.early[asks]]
            table.add_row(row.name, *(f"{gain:+.3f}" for gain in gains))
    return table


def _table(title: str, headings: Sequence[str], caption: str) -> Table:
    """The first column names a row, the others hold numbers."""
    table = Table(title=title, caption=caption or None)
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="right" if place else "left", no_wrap=not place)
    return table


def _gates_table(report: Report) -> Table:
    table = _table(
        "BALANCED by its gate",
        ("gate", *("of the way", "gain, never asked") * 2),
        "By the formulas alone, over the pools that the services search. On the right what was "
        "learned decides alone among what the gate lets through.",
    )
    for row in gates(report):
        table.add_row(
            "none" if row.gate >= 1 else f"{row.gate:g}",
            f"{row.way:.1%}",
            f"{row.gain:+.3f}",
            f"{row.free_way:.1%}",
            f"{row.free_gain:+.3f}",
        )
    return table


def _targets_table(report: Report) -> Table:
    table = Table(title="BALANCED has to reach")
    for heading in ("what", "target", "reached", ""):
        table.add_column(heading)
    for one in targets(report):
        verdict = "[green]met[/]" if one.met else "[red]missed[/]"
        table.add_row(one.what, one.wanted, one.reached, verdict)
    return table


def _how(wanted: Wanted) -> str:
    if wanted.formulas:
        return "By the formulas alone, over the pools that the services search"
    return "Through the services, but for the Beta mean, which is by the formulas alone"


def _seeds(seeds: Sequence[int]) -> str:
    if len(seeds) == 1:
        return f"seed {seeds[0]}"
    return f"mean of seeds {', '.join(map(str, seeds))}"
