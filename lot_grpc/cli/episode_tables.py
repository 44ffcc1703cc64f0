"""What ``lot-grpc episodes`` prints for people."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from google.protobuf.timestamp_pb2 import Timestamp
from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lot_grpc.cli.texts import clean, data_text, one_line
from lot_grpc.cli.times import local_time, seconds_of
from lot_grpc.cli.words import COMPLEXITIES, STATUSES
from lot_grpc.domain.spans import span
from lot_grpc.pb.lot.v1 import episode_pb2 as pb

_STYLES: dict[int, str] = {
    pb.EPISODE_STATUS_RUNNING: "cyan",
    pb.EPISODE_STATUS_SUCCEEDED: "green",
    pb.EPISODE_STATUS_FAILED: "red",
    pb.EPISODE_STATUS_ABANDONED: "yellow",
}
_LEAST_TASK = 16
"""Cells of a task that tell enough; columns that would leave it less are left out."""

_BETWEEN = 2
"""Cells around each column of a table."""


class _Column(NamedTuple):
    title: str
    cell: Callable[[pb.Episode], str]
    importance: int
    """The least important one goes first where there is little room; 0 never goes."""
    numeric: bool = False


def status_text(status: int) -> Text:
    """The status as a word in its colour."""
    return Text(STATUSES.word(status), style=_STYLES.get(status, ""))


def duration(episode: pb.Episode) -> str:
    """From start to end; empty while there is none."""
    if not episode.HasField("end_time") or not episode.HasField("start_time"):
        return ""
    return span(max(0.0, seconds_of(episode.end_time) - seconds_of(episode.start_time)))


def _started(episode: pb.Episode) -> str:
    return local_time(episode.start_time) if episode.HasField("start_time") else ""


_COLUMNS = (
    _Column("id", lambda one: clean(one.episode_id), 0),
    _Column("status", lambda one: STATUSES.word(one.status), 0),
    _Column("task", lambda one: one_line(one.task), 0),
    _Column("events", lambda one: f"{one.event_count:,}", 3, numeric=True),
    _Column("started", _started, 4),
    _Column("duration", duration, 2, numeric=True),
    _Column("reused", lambda one: f"{one.reused_count:,}", 1, numeric=True),
)


def print_episodes(console: Console, episodes: Sequence[pb.Episode]) -> None:
    """A row for each, in the columns for which there is room."""
    table = Table(box=SIMPLE_HEAD, width=console.width, pad_edge=False)
    rows = [{column.title: column.cell(one) for column in _COLUMNS} for one in episodes]
    columns = _fitting(console.width, rows)
    for column in columns:
        table.add_column(
            column.title,
            no_wrap=column.title != "id",
            overflow="fold" if column.title == "id" else "ellipsis",
            justify="right" if column.numeric else "left",
            ratio=1 if column.title == "task" else None,
        )
    for episode, row in zip(episodes, rows, strict=True):
        table.add_row(
            *(
                status_text(episode.status) if column.title == "status" else Text(row[column.title])
                for column in columns
            )
        )
    console.print(table)


def _fitting(width: int, rows: Sequence[dict[str, str]]) -> list[_Column]:
    columns = list(_COLUMNS)
    while _room_for_task(width, columns, rows) < _LEAST_TASK:
        spare = [column for column in columns if column.importance]
        if not spare:
            break
        columns.remove(min(spare, key=lambda column: column.importance))
    return columns


def _room_for_task(width: int, columns: Sequence[_Column], rows: Sequence[dict[str, str]]) -> int:
    taken = sum(
        max([len(column.title), *(cell_len(row[column.title]) for row in rows)])
        for column in columns
        if column.title != "task"
    )
    return width - taken - _BETWEEN * len(columns)


def print_episode(console: Console, episode: pb.Episode) -> None:
    """Every field that says something, a line or more each."""
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True, style="dim")
    table.add_column(overflow="fold")
    for name, text in _fields(episode):
        table.add_row(name, text if isinstance(text, Text) else Text(_lines(text)))
    console.print(table)


def _fields(episode: pb.Episode) -> Iterable[tuple[str, str | Text]]:
    yield "id", episode.episode_id
    yield "status", status_text(episode.status)
    error = ": ".join(filter(None, (episode.error.type, episode.error.message)))
    told = {
        "task": episode.task,
        "task id": episode.task_id,
        "category": episode.category,
        "task type": episode.task_type,
        "complexity": _complexity(episode),
        "approach": episode.approach,
        "agent role": episode.agent_role,
        "context": episode.context,
        "dependencies": "\n".join(episode.dependencies),
        "effort": f"{episode.effort:g}" if episode.effort else "",
        "summary": episode.summary,
        "error": error,
        "error patterns": "\n".join(episode.error_patterns),
        "success factors": "\n".join(episode.success_factors),
        "tools used": ", ".join(episode.tools_used),
        "metrics": "\n".join(f"{name} {n:g}" for name, n in sorted(episode.metrics.items())),
        "reward": f"{episode.reward:g}" if episode.HasField("reward") else "",
        "used patterns": "\n".join(episode.used_pattern_ids),
        "used episodes": "\n".join(episode.used_episode_ids),
        "tags": ", ".join(episode.tags),
        "labels": "\n".join(f"{key}={value}" for key, value in sorted(episode.labels.items())),
        "metadata": data_text(episode.metadata) if episode.metadata.fields else "",
        "events": f"{episode.event_count:,}",
        "reused": f"{episode.reused_count:,}",
        "started": _time(episode.start_time),
        "ended": _time(episode.end_time),
        "duration": duration(episode),
        "created": _time(episode.create_time),
        "updated": _time(episode.update_time),
    }
    yield from ((name, text) for name, text in told.items() if text)


def _complexity(episode: pb.Episode) -> str:
    return COMPLEXITIES.word(episode.complexity) if episode.complexity else ""


def _time(time: Timestamp) -> str:
    return local_time(time) if time.ByteSize() else ""


def _lines(text: str) -> str:
    return "\n".join(map(clean, text.split("\n")))
