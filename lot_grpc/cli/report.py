"""``lot-grpc report``: how well tasks are going."""

from __future__ import annotations

from collections.abc import Iterable

import grpc
import typer
from google.protobuf.timestamp_pb2 import Timestamp
from rich.text import Text
from typer import Option

from lot_grpc.cli.calls import Server
from lot_grpc.cli.fields import field_text
from lot_grpc.cli.options import OWN_NAMESPACE, Json, Namespace, time_option
from lot_grpc.cli.tables import Column, print_page, print_table, screen
from lot_grpc.cli.texts import clean, one_line
from lot_grpc.cli.words import RESOURCE_KINDS, json_page
from lot_grpc.domain.adoption import adoption_text
from lot_grpc.domain.counting import counted, share_text
from lot_grpc.domain.holdout import Gain, gain_text
from lot_grpc.pb.lot.v1 import performance_pb2 as pb
from lot_grpc.pb.lot.v1.learning_service_pb2_grpc import LearningServiceStub

_HINTS = {
    grpc.StatusCode.DEADLINE_EXCEEDED: "a report reads every ended episode; --timeout waits longer"
}
_ARROWS = {
    pb.TREND_DIRECTION_IMPROVING: Text("↑ improving", style="green"),
    pb.TREND_DIRECTION_DECLINING: Text("↓ declining", style="red"),
    pb.TREND_DIRECTION_STABLE: Text("→ stable"),
    pb.TREND_DIRECTION_INSUFFICIENT_DATA: Text("· too few", style="dim"),
}


def report(
    *,
    namespace: Namespace = "",
    sample: int = Option(
        0, "--sample", min=0, max=1000, metavar="N", help="Rate the latest N; 0: 20."
    ),
    after: Timestamp | None = time_option(
        "--after",
        "Count recalls after this time: ISO 8601, or how long ago, such as 2h or 3d; by default "
        "7 days before the end.",
    ),
    before: Timestamp | None = time_option(
        "--before", "Count recalls before this time; by default all until now."
    ),
    markdown: bool = Option(False, "--markdown", help="Print a Markdown page."),
    server: Server,
    as_json: Json = False,
) -> None:
    """Report how tasks are going, and whether what is recalled is used and helps."""
    if as_json and markdown:
        raise typer.BadParameter("--json and --markdown are mutually exclusive")
    request = pb.GetPerformanceReportRequest(
        namespace=namespace, sample_size=sample, start_time=after, end_time=before
    )
    with server.stub(LearningServiceStub, _HINTS) as stub:
        found = stub.GetPerformanceReport(request, timeout=server.timeout).report
    if as_json:
        typer.echo(json_page(found))
    elif markdown:
        print_page(found.markdown)
    else:
        _print(found, namespace or OWN_NAMESPACE)


def _print(found: pb.PerformanceReport, namespace: str) -> None:
    """Print the summary, a row for each category, then advice and insights."""
    console = screen()
    console.print(Text(f"Performance of {one_line(namespace)}", style="bold"))
    console.print(Text(f"  {_summary(found)}"))
    if found.trends:
        print_table(console, _COLUMNS, found.trends)
    lists: tuple[tuple[str, Iterable[pb.Advice | pb.Insight]], ...] = (
        ("Advice", found.advice),
        ("What worked", found.insights),
    )
    for title, lines in lists:
        if lines:
            console.print(Text(title, style="bold"))
        for line in lines:
            console.print(Text(f"  {clean(line.message)}"))
    if found.adoption.retrieval_count:
        console.print(Text("Use of what was recalled", style="bold"))
        console.print(Text(f"  {_recalled(found.adoption)}"))
        print_table(console, _ADOPTION_COLUMNS, found.adoption.kinds)
    if found.HasField("holdout"):
        console.print(Text("What learning gains", style="bold"))
        print_table(console, _ARM_COLUMNS, _arms(found.holdout))
        console.print(Text(f"  {_gain(found.holdout)}"))


def _recalled(adoption: pb.Adoption) -> str:
    made = adoption_text(
        adoption.retrieval_count, adoption.outcome_retrieval_count, truncated=adoption.truncated
    )
    return f"Since {field_text(adoption, 'start_time')}: {made}"


def _arms(comparison: pb.HoldoutComparison) -> list[tuple[str, pb.HoldoutArm]]:
    return [("with learning", comparison.learned), ("held out", comparison.holdout)]


def _gain(comparison: pb.HoldoutComparison) -> str:
    known = comparison.HasField("gain")
    return gain_text(
        Gain(comparison.gain, comparison.gain_lower, comparison.gain_upper) if known else None
    )


def _summary(found: pb.PerformanceReport) -> str:
    if not found.HasField("success_rate"):
        return "No episode has ended."
    average = field_text(found, "average_duration")
    taking = f"; {average} on average" if average else ""
    ended = counted(found.total_count, "episode")
    return f"{ended} ended, {found.success_count:,} succeeded ({found.success_rate:.1%}){taking}."


def _p_value(trend: pb.CategoryTrend) -> Text:
    value = field_text(trend, "change_p_value", ".2g")
    return Text(value, style="" if trend.change_significant else "dim")


def _interval(trend: pb.CategoryTrend) -> str:
    return f"{trend.success_rate_lower:.1%} to {trend.success_rate_upper:.1%}"


def _best(trend: pb.CategoryTrend) -> str:
    return "".join(f"{one_line(one.name)} ({one.count})" for one in trend.best_approaches[:1])


_COLUMNS = (
    Column[pb.CategoryTrend]("category", lambda one: one_line(one.category) or "(none)"),
    Column[pb.CategoryTrend]("trend", lambda one: _ARROWS[one.direction]),
    Column[pb.CategoryTrend](
        "success", lambda one: f"{one.success_rate:.1%} of {one.sample_count}", numeric=True
    ),
    Column[pb.CategoryTrend]("95 % interval", _interval, 3),
    Column[pb.CategoryTrend]("p", _p_value, 1, numeric=True),
    Column[pb.CategoryTrend]("time", "average_duration", 2, numeric=True),
    Column[pb.CategoryTrend]("ended", "total_count", 4, numeric=True),
    Column[pb.CategoryTrend]("best approach", _best, stretched=True),
)
_ADOPTION_COLUMNS = (
    Column[pb.KindAdoption]("kind", lambda one: RESOURCE_KINDS.word(one.resource_kind)),
    Column[pb.KindAdoption]("shown", "shown_count", numeric=True),
    Column[pb.KindAdoption](
        "used", lambda one: share_text(one.used_count, one.shown_count), numeric=True
    ),
    Column[pb.KindAdoption](
        "helped", lambda one: share_text(one.helped_count, one.used_count), numeric=True
    ),
)
_ARM_COLUMNS = (
    Column[tuple[str, pb.HoldoutArm]]("recalls", lambda arm: arm[0]),
    Column[tuple[str, pb.HoldoutArm]](
        "number", lambda arm: f"{arm[1].retrieval_count:,}", numeric=True
    ),
    Column[tuple[str, pb.HoldoutArm]](
        "with an outcome", lambda arm: f"{arm[1].outcome_retrieval_count:,}", numeric=True
    ),
    Column[tuple[str, pb.HoldoutArm]](
        "mean value", lambda arm: field_text(arm[1], "mean_value", ".3f"), numeric=True
    ),
)
