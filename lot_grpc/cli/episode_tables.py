"""What ``lot-grpc episodes`` prints for people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from google.protobuf.timestamp_pb2 import Timestamp
from rich.console import Console
from rich.text import Text

from lot_grpc.cli.tables import Column, print_fields, print_table
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
    Column[pb.Episode]("id", lambda one: clean(one.episode_id), folded=True),
    Column[pb.Episode]("status", lambda one: status_text(one.status)),
    Column[pb.Episode]("task", lambda one: one_line(one.task)),
    Column[pb.Episode]("events", lambda one: f"{one.event_count:,}", 3, numeric=True),
    Column[pb.Episode]("started", _started, 4),
    Column[pb.Episode]("duration", duration, 2, numeric=True),
    Column[pb.Episode]("reused", lambda one: f"{one.reused_count:,}", 1, numeric=True),
)

LISTED = (
    "episode_id",
    "status",
    "task",
    "event_count",
    "start_time",
    "end_time",
    "reused_count",
)
"""The fields of an episode that a row shows."""


def print_episodes(console: Console, episodes: Sequence[pb.Episode]) -> None:
    """A row for each, in the columns for which there is room."""
    print_table(console, _COLUMNS, episodes, "task")


def print_episode(console: Console, episode: pb.Episode) -> None:
    """Every field that says something, a line or more each."""
    print_fields(console, _fields(episode))


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
    yield from told.items()


def _complexity(episode: pb.Episode) -> str:
    return COMPLEXITIES.word(episode.complexity) if episode.complexity else ""


def _time(time: Timestamp) -> str:
    return local_time(time) if time.ByteSize() else ""
