"""What ``lot-grpc episodes --failures`` prints for people."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from lot_grpc.cli.texts import one_line
from lot_grpc.cli.times import local_time
from lot_grpc.pb.lot.v1 import episode_service_pb2 as pb

_INDENT = 2
_STEADY = 0.0005
"""Of the share a day: a change below it would be shown as 0.0 points."""


def print_failures(console: Console, answer: pb.AnalyzeFailuresResponse) -> None:
    """A block for each group, the largest first."""
    if not answer.failed_count:
        console.print(Text("No episode has failed."))
        return
    for number, group in enumerate(answer.groups):
        if number:
            console.print()
        console.print(_head(group, answer.failed_count))
        console.print(_body(group))


def _head(group: pb.FailureGroup, failed: int) -> Text:
    head = Text.assemble(
        (f"{group.count:,} of {failed:,}", "bold"), f" failures ({group.share:.1%})  "
    )
    points = f"{100 * group.trend:+.1f} points a day"
    if group.trend >= _STEADY:
        head.append(f"↑ {points}", "red")
    elif group.trend <= -_STEADY:
        head.append(f"↓ {points}", "green")
    else:
        head.append("→ steady")
    return head


def _body(group: pb.FailureGroup) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, style="dim")
    table.add_column(overflow="fold")
    told = {
        "signature": group.signature,
        "failed after": group.failed_after_event_type,
        "tools": ", ".join(group.tools),
        "last good approach": group.last_good_approach,
        "last": local_time(group.last_time) if group.HasField("last_time") else "",
        "examples": " ".join(group.example_episode_ids),
    }
    for name, text in told.items():
        if text:
            style = "red" if name == "signature" else ""
            table.add_row(" " * _INDENT + name, Text(one_line(text, 4000), style=style))
    return table
