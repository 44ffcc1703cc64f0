"""What ``lot-grpc report`` prints for people."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from lot_grpc.cli.screen import screen
from lot_grpc.cli.tables import Column, print_table
from lot_grpc.cli.texts import clean, one_line
from lot_grpc.domain.spans import span
from lot_grpc.pb.lot.v1 import performance_pb2 as pb

_ARROWS = {
    pb.TREND_DIRECTION_IMPROVING: Text("↑ improving", style="green"),
    pb.TREND_DIRECTION_DECLINING: Text("↓ declining", style="red"),
    pb.TREND_DIRECTION_STABLE: Text("→ stable"),
    pb.TREND_DIRECTION_INSUFFICIENT_DATA: Text("· few", style="dim"),
}


def print_report(report: pb.PerformanceReport, namespace: str) -> None:
    """What is in all, a row for each category, then advice and insights."""
    console = screen()
    console.print(Text(f"Performance of {one_line(namespace)}", style="bold"))
    console.print(Text(f"  {_in_all(report)}"))
    if report.trends:
        print_table(console, _COLUMNS, report.trends, "best approach")
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


def _time(trend: pb.CategoryTrend) -> str:
    if not trend.HasField("average_duration"):
        return ""
    return span(trend.average_duration.ToTimedelta().total_seconds())


def _p_value(trend: pb.CategoryTrend) -> Text:
    told = f"{trend.change_p_value:.2g}" if trend.HasField("change_p_value") else ""
    return Text(told, style="" if trend.change_significant else "dim")


_COLUMNS = (
    Column[pb.CategoryTrend]("category", lambda one: one_line(one.category) or "(none)"),
    Column[pb.CategoryTrend]("trend", lambda one: _ARROWS[one.direction]),
    Column[pb.CategoryTrend](
        "success", lambda one: f"{one.success_rate:.1%} of {one.sample_count}", numeric=True
    ),
    Column[pb.CategoryTrend](
        "95 % interval",
        lambda one: f"{one.success_rate_lower:.1%} to {one.success_rate_upper:.1%}",
        3,
    ),
    Column[pb.CategoryTrend]("p", _p_value, 1, numeric=True),
    Column[pb.CategoryTrend]("time", _time, 2, numeric=True),
    Column[pb.CategoryTrend]("ended", lambda one: f"{one.total_count:,}", 4, numeric=True),
    Column[pb.CategoryTrend]("best approach", lambda one: _best(one)),
)


def _best(trend: pb.CategoryTrend) -> str:
    return "".join(f"{one_line(one.name)} ({one.count})" for one in trend.best_approaches[:1])


def _print_lines(console: Console, title: str, lines: list[str]) -> None:
    if not lines:
        return
    console.print(Text(title, style="bold"))
    for line in lines:
        console.print(Text(f"  {clean(line)}"))
