"""``lot-grpc replay``: the events of an episode in order, of a running server."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import grpc
import typer
from rich.console import Console

from lot_grpc.cli.calls import connected, going_on, target_of, tell_failure
from lot_grpc.cli.episode_tables import status_text
from lot_grpc.cli.event_lines import print_event
from lot_grpc.cli.screen import print_line, screen
from lot_grpc.cli.texts import one_line
from lot_grpc.cli.words import json_line
from lot_grpc.pb.lot.v1 import episode_pb2
from lot_grpc.pb.lot.v1 import episode_service_pb2 as pb
from lot_grpc.pb.lot.v1 import episode_service_pb2_grpc as pb_grpc

_CALL_SECONDS = 60.0


@dataclass(frozen=True)
class Wanted:
    """What was asked for, as in ReplayEpisodeRequest; ``full`` shows the data whole."""

    namespace: str
    episode_id: str
    speed: float
    after: int
    follow: bool
    full: bool


@dataclass
class _Place:
    """How far the replay has come."""

    sequence: int


def run(
    wanted: Wanted, address: str, patience: float, config: Path | None, *, as_json: bool
) -> bool:
    """Print the events as they come, and tell whether all came.

    Args:
        wanted: What was asked for.
        address: Of the server; empty: that of the settings.
        patience: Seconds for which a lost server is tried again; 0: for ever.
        config: The settings file.
        as_json: Print each event as an object.

    Raises:
        SettingsError: No address is given, and the settings cannot be used.
    """
    target = target_of(address, config)
    try:
        if as_json:
            for event in _events(target, wanted, patience):
                typer.echo(json_line(event))
        else:
            _show(target, wanted, patience)
    except grpc.RpcError as error:
        tell_failure(target, error)
        return False
    return True


def _show(target: str, wanted: Wanted, patience: float) -> None:
    console = screen()
    episode = _episode(target, wanted)
    _print_title(console, episode)
    for event in _events(target, wanted, patience):
        print_event(console, event, episode.start_time, full=wanted.full)
    if wanted.follow and episode.status == episode_pb2.EPISODE_STATUS_RUNNING:
        _print_title(console, _episode(target, wanted))


def _episode(target: str, wanted: Wanted) -> episode_pb2.Episode:
    request = pb.GetEpisodeRequest(namespace=wanted.namespace, episode_id=wanted.episode_id)
    with connected(target) as channel:
        stub = pb_grpc.EpisodeServiceStub(channel)
        return stub.GetEpisode(request, timeout=_CALL_SECONDS).episode


def _print_title(console: Console, episode: episode_pb2.Episode) -> None:
    status = status_text(episode.status)
    print_line(
        console,
        (one_line(episode.episode_id), "bold"),
        ("  ", ""),
        (status.plain, str(status.style)),
        (f"  {one_line(episode.task)}", ""),
    )


def _events(target: str, wanted: Wanted, patience: float) -> Iterable[episode_pb2.EpisodeEvent]:
    """Each event once, also when the connection is lost in between."""
    place = _Place(wanted.after)

    def opened(channel: grpc.Channel) -> Iterable[pb.ReplayEpisodeResponse]:
        request = pb.ReplayEpisodeRequest(
            namespace=wanted.namespace,
            episode_id=wanted.episode_id,
            speed=wanted.speed,
            after_sequence=place.sequence,
            follow=wanted.follow,
        )
        return pb_grpc.EpisodeServiceStub(channel).ReplayEpisode(request)

    for batch in going_on(target, opened, lambda: f"behind event {place.sequence}", patience):
        for event in batch.events:
            yield event
            place.sequence = event.sequence
