"""``lot-grpc replay``: the events of an episode in order."""

from __future__ import annotations

from collections.abc import Iterable

import grpc
import typer
from rich.console import Console
from typer import Argument, Option

from lot_grpc.cli.calls import CALL_SECONDS, StreamingServer
from lot_grpc.cli.episodes import status_text
from lot_grpc.cli.events import print_event
from lot_grpc.cli.options import JsonLines, Namespace
from lot_grpc.cli.tables import print_line, screen
from lot_grpc.cli.texts import one_line
from lot_grpc.cli.words import json_line
from lot_grpc.pb.lot.v1 import episode_pb2
from lot_grpc.pb.lot.v1 import episode_service_pb2 as pb
from lot_grpc.pb.lot.v1.episode_service_pb2_grpc import EpisodeServiceStub


def replay(
    *,
    episode_id: str = Argument(..., metavar="ID", help="The episode."),
    speed: float = Option(
        0.0,
        "--speed",
        min=0,
        max=1e6,
        metavar="X",
        help="0: at once, 1: original speed, 2: twice that.",
    ),
    after: int = Option(
        0, "--after", min=0, metavar="N", help="Start after event number N (not a time)."
    ),
    follow: bool = Option(False, "--follow", "-f", help="Follow a running episode until it ends."),
    full: bool = Option(False, "--full", help="Show event data in full."),
    namespace: Namespace = "",
    server: StreamingServer,
    as_json: JsonLines = False,
) -> None:
    """Show the events of an episode in order, as they arrive. Ctrl-C stops.

    lot-grpc replay e-17 --full

    lot-grpc replay e-17 --speed 10 --after 40

    lot-grpc replay e-17 --follow
    """
    if not episode_id:
        raise typer.BadParameter("ID must not be empty")
    request = pb.ReplayEpisodeRequest(
        namespace=namespace, episode_id=episode_id, speed=speed, after_sequence=after, follow=follow
    )
    with server.calling():
        if as_json:
            for event in _events(server, request):
                typer.echo(json_line(event))
            return
        console = screen()
        episode = _episode(server, request)
        _print_title(console, episode)
        for event in _events(server, request):
            print_event(console, event, episode.start_time, full=full)
        if follow and episode.status == episode_pb2.EPISODE_STATUS_RUNNING:
            _print_title(console, _episode(server, request))


def _episode(server: StreamingServer, replayed: pb.ReplayEpisodeRequest) -> episode_pb2.Episode:
    request = pb.GetEpisodeRequest(namespace=replayed.namespace, episode_id=replayed.episode_id)
    with server.stub(EpisodeServiceStub) as stub:
        return stub.GetEpisode(request, timeout=CALL_SECONDS).episode


def _print_title(console: Console, episode: episode_pb2.Episode) -> None:
    status = status_text(episode.status)
    print_line(
        console,
        (one_line(episode.episode_id), "bold"),
        ("  ", ""),
        (status.plain, str(status.style)),
        (f"  {one_line(episode.task)}", ""),
    )


def _events(
    server: StreamingServer, request: pb.ReplayEpisodeRequest
) -> Iterable[episode_pb2.EpisodeEvent]:
    """Each event once, also when the connection is lost in between."""

    def opened(channel: grpc.Channel) -> Iterable[pb.ReplayEpisodeResponse]:
        return EpisodeServiceStub(channel).ReplayEpisode(request)

    for batch in server.resumed(opened, lambda: f"after event {request.after_sequence}"):
        for event in batch.events:
            yield event
            request.after_sequence = event.sequence
