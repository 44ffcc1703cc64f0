"""``lot-grpc episodes``: lists episodes, shows one, or groups their failures by cause."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

import typer
from google.protobuf.timestamp_pb2 import Timestamp
from rich.console import Console
from rich.text import Text
from typer import Argument, Option

from lot_grpc.cli.calls import Server
from lot_grpc.cli.failures import print_note
from lot_grpc.cli.fields import field_text
from lot_grpc.cli.lists import listed, print_list
from lot_grpc.cli.options import JsonLines, Namespace, Repeatable, limit_option, time_option
from lot_grpc.cli.pattern_texts import outcomes_text
from lot_grpc.cli.replay import print_event, status_text
from lot_grpc.cli.tables import Column, print_fields, print_message, screen
from lot_grpc.cli.texts import clean, one_line
from lot_grpc.cli.times import seconds_of
from lot_grpc.cli.words import STATUSES, json_line
from lot_grpc.domain.spans import span
from lot_grpc.pb.lot.v1 import episode_service_pb2 as pb
from lot_grpc.pb.lot.v1.episode_pb2 import Episode, EpisodeFilter, EpisodeStatus
from lot_grpc.pb.lot.v1.episode_service_pb2_grpc import EpisodeServiceStub

_LISTED = 20
_EVENTS = 10

_STEADY = 0.0005
"""Change of the share per day; a smaller one would be shown as 0.0 points."""


def episodes(
    *,
    episode_id: str = Argument("", metavar="ID", help="Show this episode and its last events."),
    status: list[EpisodeStatus.ValueType] | None = STATUSES.option(
        None, "--status", help="running, succeeded, failed or abandoned. Repeatable, like the next."
    ),
    category: Repeatable = Option(None, "--category", help="Only this category."),
    task_type: Repeatable = Option(None, "--task-type", help="Only this type."),
    task_id: Repeatable = Option(None, "--task-id", help="Only this task."),
    after: Timestamp | None = time_option(
        "--after", "Started after this time: ISO 8601, or how long ago, such as 2h or 3d."
    ),
    before: Timestamp | None = time_option("--before", "Started before this time."),
    limit: int = limit_option("20, or 10 events or groups"),
    failures: bool = Option(False, "--failures", help="Group failures by cause."),
    namespace: Namespace = "",
    server: Server,
    as_json: JsonLines = False,
) -> None:
    """List episodes, newest first; show one; or group failures by cause.

    Times without an offset are local.

    lot-grpc episodes --status failed --after 3d

    lot-grpc episodes e-17

    lot-grpc episodes --failures --category backend
    """
    narrowed = EpisodeFilter(
        statuses=status,
        categories=category,
        task_types=task_type,
        task_ids=task_id,
        started_after=after,
        started_before=before,
    )
    if episode_id and (failures or narrowed.ByteSize()):
        raise typer.BadParameter("an ID only goes with --limit")
    with server.stub(EpisodeServiceStub) as stub:
        if failures:
            analysis = stub.AnalyzeFailures(
                pb.AnalyzeFailuresRequest(namespace=namespace, filter=narrowed, limit=limit),
                timeout=server.timeout,
            )
            if as_json:
                typer.echo(json_line(analysis))
            else:
                _print_failures(screen(), analysis)
        elif episode_id:
            request = pb.GetEpisodeRequest(namespace=namespace, episode_id=episode_id)
            episode = stub.GetEpisode(request, timeout=server.timeout).episode
            if as_json:
                typer.echo(json_line(episode))
            else:
                _print_one(stub, namespace, episode, limit or _EVENTS, server.timeout)
        else:
            print_list(
                stub.ListEpisodes,
                pb.ListEpisodesRequest(namespace=namespace, filter=narrowed),
                "episodes",
                _COLUMNS,
                timeout=server.timeout,
                limit=limit or _LISTED,
                read=_READ,
                as_json=as_json,
            )


def _duration(episode: Episode) -> str:
    """The time from start to end; empty while it is running."""
    if not episode.HasField("end_time") or not episode.HasField("start_time"):
        return ""
    return span(max(0.0, seconds_of(episode.end_time) - seconds_of(episode.start_time)))


_COLUMNS = (
    Column[Episode]("id", "episode_id", folded=True),
    Column[Episode]("status", lambda one: status_text(one.status)),
    Column[Episode]("task", "task", stretched=True),
    Column[Episode]("events", "event_count", 3, numeric=True),
    Column[Episode]("started", "start_time", 4),
    Column[Episode]("duration", _duration, 2, numeric=True),
    Column[Episode]("reused", "reused_count", 1, numeric=True),
)
_SHOWN = (column.cell for column in _COLUMNS if isinstance(column.cell, str))
_READ = (*_SHOWN, "status", "end_time")


def _print_one(
    stub: EpisodeServiceStub, namespace: str, episode: Episode, limit: int, timeout: float
) -> None:
    """Every field that is set, then the last events, even if more arrive in the meantime."""
    request = pb.ListEpisodeEventsRequest(
        namespace=namespace,
        episode_id=episode.episode_id,
        after_sequence=max(0, episode.event_count - limit),
    )
    last = deque(listed(stub.ListEpisodeEvents, request, "events", timeout), maxlen=limit)
    console = screen()
    print_message(
        console,
        episode,
        first=("episode_id", "status"),
        hidden=("namespace", "etag"),
        status=status_text(episode.status),
        error=": ".join(filter(None, (episode.error.type, episode.error.message))),
        duration=_duration(episode),
        outcomes=outcomes_text(episode.outcomes) if episode.HasField("outcomes") else "",
    )
    if not last:
        return
    console.print()
    for event in last:
        print_event(console, event, episode.start_time, full=False)
    if last[0].sequence > 1:
        print_note(
            f"showing the last {len(last)} of {last[-1].sequence:,} events; "
            f"`lot-grpc replay {clean(episode.episode_id)}` shows all"
        )


def _print_failures(console: Console, analysis: pb.AnalyzeFailuresResponse) -> None:
    """Print a block for each group, largest first."""
    if not analysis.failed_count:
        typer.echo("No episode has failed.")
    for number, group in enumerate(analysis.groups if analysis.failed_count else ()):
        if number:
            console.print()
        head = f"{group.count:,} of {analysis.failed_count:,}"
        console.print(
            Text.assemble((head, "bold"), f" failures ({group.share:.1%})  ", _trend(group.trend))
        )
        print_fields(console, _group_fields(group), indent=2)


def _trend(a_day: float) -> tuple[str, str]:
    points = f"{100 * a_day:+.1f} points per day"
    if abs(a_day) < _STEADY:
        return "→ steady", ""
    return (f"↑ {points}", "red") if a_day > 0 else (f"↓ {points}", "green")


def _group_fields(group: pb.FailureGroup) -> Iterable[tuple[str, str | Text]]:
    yield "signature", Text(one_line(group.signature, 4000), style="red")
    yield "failed after", group.failed_after_event_type
    yield "tools", ", ".join(group.tools)
    yield "last good approach", group.last_good_approach
    yield "last", field_text(group, "last_time")
    yield "examples", " ".join(group.example_episode_ids)
