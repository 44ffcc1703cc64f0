"""A run as tables, or as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table

from tests.learn.fleet import AGENTS, SHARE, Fleet
from tests.learn.leaving_out import LeftOut
from tests.learn.measuring import EARLY, NOT_SERVED, Report, Wanted
from tests.learn.report import figures, margins, targets
from tests.learn.worlds import mean


def as_json(reports: Sequence[Report]) -> str:
    """All of it, for programs."""
    runs = [_run(report) for report in reports]
    return json.dumps({"runs": runs}, indent=2, ensure_ascii=False)


def _run(report: Report) -> dict[str, Any]:
    return {
        "set": report.tasks.name,
        "kind": report.tasks.kind.name,
        "stored": len(report.tasks.stored),
        "queries": len(report.tasks.queries),
        "halved_by": report.wanted.halving,
        "asks": report.wanted.asks,
        "seeds": report.wanted.seeds,
        "formulas_alone": report.wanted.formulas,
        "seconds": round(report.seconds),
        "settings": asdict(report.weights),
        "rankings": [asdict(row) for row in figures(report)],
        "margins": [asdict(row) for row in margins(report)],
        "targets": [asdict(target) for target in targets(report)],
        "measured": [asdict(one) for one in report.measured],
    }


def show(reports: Sequence[Report], console: Console) -> None:
    """What was measured."""
    for report in reports:
        console.print(_rankings_table(report))
        if report.wanted.asks >= min(EARLY):
            console.print(_early_table(report))
        if report.measured[0].margins:
            console.print(_gates_table(report))


def _rankings_table(report: Report) -> Table:
    wanted, weights = report.wanted, report.weights
    table = _table(
        f"Expected share of successes after {wanted.asks:,} asks: {report.tasks.name}, "
        f"{len(report.tasks.stored):,} {report.tasks.kind}, {len(report.tasks.queries):,} queries, "
        f"halved by {wanted.halving}",
        ("ranking", "asked", "of the way", "never asked", "gain", "after the change"),
        f"{_how(wanted)}, {_seeds(wanted.seeds)}. margin {weights.reorder_margin:g}, "
        f"weight {weights.learned:g}, kernel width "
        f"{weights.kernel_width:g}, kept {weights.fading.decay:g}. {report.seconds:,.0f} seconds.",
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
        "BALANCED by its margin",
        ("margin", *("of the way", "gain, never asked") * 2),
        "By the formulas of ranking, over what the services find. On the right what was "
        "learned decides alone among what the margin lets through.",
    )
    for row in margins(report):
        table.add_row(
            "none" if row.margin >= 1 else f"{row.margin:g}",
            f"{row.way:.1%}",
            f"{row.gain:+.3f}",
            f"{row.free_way:.1%}",
            f"{row.free_gain:+.3f}",
        )
    return table


def targets_table(reports: Sequence[Report]) -> Table:
    """What BALANCED had to reach, and did."""
    table = Table(title="BALANCED has to reach")
    for heading in ("set", "kind", "halved by", "what", "target", "reached", ""):
        table.add_column(heading)
    for report in reports:
        for one in targets(report):
            verdict = "[green]met[/]" if one.met else "[red]missed[/]"
            halving = report.wanted.halving
            named = report.tasks.name, report.tasks.kind.name, halving
            table.add_row(*named, one.what, one.wanted, one.reached, verdict)
        table.add_section()
    return table


def left_out_table(done: Sequence[LeftOut]) -> Table:
    """What each set reaches with the numbers that the others chose, and with those served."""
    headings = ("left out", "neutral", "hits before", "width", "kept", "way, gain, again", "served")
    table = _table("BALANCED with a set left out", headings, "Halved as is worse for the set.")
    for one in done:
        chosen = one.chosen
        numbers = chosen.neutral, chosen.expected_tried, chosen.kernel_width, chosen.fading.decay
        reached = [
            f"{it.way:.1%}, {it.gain:+.3f}, {it.again:.1%}" for it in (one.reached, one.served)
        ]
        table.add_row(one.name, *(f"{number:g}" for number in numbers), *reached)
    return table


def holdout_table(done: Sequence[Fleet]) -> Table:
    """How the intervals compare with the true gains."""
    headings = ("set", "runs", "requests each", "true gain", "measured", "width", "covered")
    table = _table(
        "Holdout: does the 95 % interval cover the true gain?",
        headings,
        f"{SHARE:.0%} of the requests of {AGENTS} agents are ranked without what was learned.",
    )
    for one in done:
        gains = [run.measured for run in one.runs]
        table.add_row(
            one.name,
            f"{len(one.runs):,}",
            f"{one.requests:,}",
            f"{mean([run.true for run in one.runs]):+.3f}",
            f"{mean([it.estimate for it in gains]):+.3f}",
            f"{mean([it.upper - it.lower for it in gains]):.3f}",
            f"{one.covered:,} ({one.covered / len(one.runs):.1%})",
        )
    return table


def _how(wanted: Wanted) -> str:
    if wanted.formulas:
        return "By the formulas of ranking, over what the services find"
    alone = " and ".join(NOT_SERVED)
    return f"Through the services, but {alone}, which are by the formulas alone"


def _seeds(seeds: Sequence[int]) -> str:
    if len(seeds) == 1:
        return f"seed {seeds[0]}"
    return f"mean of seeds {', '.join(map(str, seeds))}"
