"""What ``lot-grpc report`` prints for people."""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lot_grpc.domain.spans import span
from lot_grpc.pb.lot.v1 import performance_pb2 as pb

_WIDTH = 110
"""Where there is no terminal to ask."""

_ARROWS = {
    pb.TREND_DIRECTION_IMPROVING: Text("↑ improving", style="green"),
    pb.TREND_DIRECTION_DECLINING: Text("↓ declining", style="red"),
    pb.TREND_DIRECTION_STABLE: Text("→ stable"),
    pb.TREND_DIRECTION_INSUFFICIENT_DATA: Text("· few", style="dim"),
}


def print_report(report: pb.PerformanceReport, namespace: str) -> None:
    """What is in all, a row for each category, then advice and insights."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=_WIDTH)
    console.print(Text(f"Performance of {namespace}", style="bold"))
    console.print(Text(f"  {_in_all(report)}"))
    if report.trends:
        console.print(_table(report))
    _print_lines(console, "Advice", [one.message for one in report.advice])
    _print_lines(console, "What worked", [one.message for one in report.insights])


def _in_all(report: pb.PerformanceReport) -> str:
    if not report.HasField("success_rate"):
        return "No episode has ended."
    said = (
        f"Ended: {report.total_count:,}; went well: {report.success_count:,} "
        f"({report.success_rate:.1%})"
    )
    if report.HasField("average_duration"):
        said += f"; {span(report.average_duration.ToTimedelta().total_seconds())} on average"
    return f"{said}."


def _table(report: pb.PerformanceReport) -> Table:
    table = Table(box=SIMPLE_HEAD)
    table.add_column("category", overflow="ellipsis", no_wrap=True)
    table.add_column("trend", no_wrap=True)
    table.add_column("success", justify="right")
    table.add_column("95 % interval")
    table.add_column("p", justify="right")
    table.add_column("time", justify="right")
    table.add_column("ended", justify="right")
    table.add_column("best approach", overflow="ellipsis", no_wrap=True)
    for trend in report.trends:
        table.add_row(*_cells(trend))
    return table


def _cells(trend: pb.CategoryTrend) -> tuple[Text, ...]:
    """Names are texts: what callers wrote is no markup."""
    took = trend.average_duration.ToTimedelta().total_seconds()
    best = [f"{one.name} ({one.count})" for one in trend.best_approaches[:1]]
    return (
        Text(trend.category or "(none)"),
        _ARROWS[trend.direction],
        Text(f"{trend.success_rate:.1%} of {trend.sample_count}"),
        Text(f"{trend.success_rate_lower:.1%} to {trend.success_rate_upper:.1%}"),
        Text(
            f"{trend.change_p_value:.2g}" if trend.HasField("change_p_value") else "",
            style="" if trend.change_significant else "dim",
        ),
        Text(span(took) if trend.HasField("average_duration") else ""),
        Text(f"{trend.total_count:,}"),
        Text("".join(best)),
    )


def _print_lines(console: Console, title: str, lines: list[str]) -> None:
    if not lines:
        return
    console.print(Text(title, style="bold"))
    for line in lines:
        console.print(Text(f"  {line}"))
