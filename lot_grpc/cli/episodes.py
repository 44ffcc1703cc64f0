"""``lot-grpc episodes``: lists them, shows one, or tells why they fail; asks a running server."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import grpc
import typer
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.timestamp_pb2 import Timestamp

from lot_grpc.cli.calls import connected, target_of, tell_failure
from lot_grpc.cli.episode_tables import LISTED, print_episode, print_episodes
from lot_grpc.cli.event_lines import print_event
from lot_grpc.cli.failure_groups import print_failures
from lot_grpc.cli.failures import note
from lot_grpc.cli.screen import screen
from lot_grpc.cli.texts import clean
from lot_grpc.cli.times import moment
from lot_grpc.cli.words import STATUSES, json_line
from lot_grpc.pb.lot.v1 import episode_pb2
from lot_grpc.pb.lot.v1 import episode_service_pb2 as pb
from lot_grpc.pb.lot.v1 import episode_service_pb2_grpc as pb_grpc

_PAGE = 1000
"""Most that the server gives at once."""

_LISTED = 20
_TAIL = 10


@dataclass(frozen=True)
class Wanted:
    """What was asked for; ``limit`` 0 is 20 episodes, 10 events of one, or 10 groups."""

    namespace: str
    statuses: Sequence[str]
    categories: Sequence[str]
    task_types: Sequence[str]
    task_ids: Sequence[str]
    after: str
    before: str
    limit: int

    @property
    def narrows(self) -> bool:
        """Whether anything but the limit was said."""
        return any(
            (
                self.statuses,
                self.categories,
                self.task_types,
                self.task_ids,
                self.after,
                self.before,
            )
        )


def run(
    episode_id: str,
    wanted: Wanted,
    address: str,
    timeout: float,
    config: Path | None,
    *,
    failures: bool,
    as_json: bool,
) -> bool:
    """Ask and print, and tell whether there was an answer.

    Raises:
        SettingsError: No address is given, and the settings cannot be used.
        BadParameter: What was asked for cannot be meant.
    """
    narrowed = _filter(wanted)
    target = target_of(address, config)
    try:
        with connected(target) as channel:
            stub = pb_grpc.EpisodeServiceStub(channel)
            if failures:
                _tell_failures(stub, wanted, narrowed, timeout, as_json=as_json)
            elif episode_id:
                _tell_one(stub, episode_id, wanted, timeout, as_json=as_json)
            else:
                _tell_list(stub, wanted, narrowed, timeout, as_json=as_json)
    except grpc.RpcError as error:
        tell_failure(target, error)
        return False
    return True


def _filter(wanted: Wanted) -> episode_pb2.EpisodeFilter:
    narrowed = episode_pb2.EpisodeFilter(
        categories=wanted.categories, task_types=wanted.task_types, task_ids=wanted.task_ids
    )
    narrowed.statuses.extend(STATUSES.numbers("--status", wanted.statuses))
    now = datetime.now(UTC)
    _set_time(narrowed.started_after, "--after", wanted.after, now)
    _set_time(narrowed.started_before, "--before", wanted.before, now)
    return narrowed


def _set_time(field: Timestamp, option: str, text: str, now: datetime) -> None:
    if not text:
        return
    try:
        field.FromDatetime(moment(text, now))
    except ValueError as error:
        raise typer.BadParameter(f"{option}: {error}") from None


def _tell_list(
    stub: pb_grpc.EpisodeServiceStub,
    wanted: Wanted,
    narrowed: episode_pb2.EpisodeFilter,
    timeout: float,
    *,
    as_json: bool,
) -> None:
    limit = wanted.limit or _LISTED
    episodes: list[episode_pb2.Episode] = []
    token = ""
    while len(episodes) < limit:
        request = pb.ListEpisodesRequest(
            namespace=wanted.namespace,
            filter=narrowed,
            page_size=min(limit - len(episodes), _PAGE),
            page_token=token,
            read_mask=None if as_json else FieldMask(paths=LISTED),
        )
        page = stub.ListEpisodes(request, timeout=timeout)
        if as_json:
            for episode in page.episodes:
                typer.echo(json_line(episode))
        episodes.extend(page.episodes)
        token = page.next_page_token
        if not token:
            break
    if as_json:
        return
    console = screen()
    if episodes:
        print_episodes(console, episodes)
    else:
        none = "No episode is like that." if wanted.narrows else "There are no episodes."
        console.print(none, highlight=False)
    if token:
        note(f"there are more than these {len(episodes):,}: --limit N shows N of them")


def _tell_one(
    stub: pb_grpc.EpisodeServiceStub,
    episode_id: str,
    wanted: Wanted,
    timeout: float,
    *,
    as_json: bool,
) -> None:
    asked = pb.GetEpisodeRequest(namespace=wanted.namespace, episode_id=episode_id)
    episode = stub.GetEpisode(asked, timeout=timeout).episode
    if as_json:
        typer.echo(json_line(episode))
        return
    tail = _tail(stub, episode, wanted, timeout)
    console = screen()
    print_episode(console, episode)
    if not tail:
        return
    console.print()
    for event in tail:
        print_event(console, event, episode.start_time, full=False)
    if tail[0].sequence > 1:
        note(
            f"these are the last {len(tail)} of {tail[-1].sequence:,} events; "
            f"`lot-grpc replay {clean(episode.episode_id)}` shows all"
        )


def _tail(
    stub: pb_grpc.EpisodeServiceStub, episode: episode_pb2.Episode, wanted: Wanted, timeout: float
) -> Sequence[episode_pb2.EpisodeEvent]:
    """The last events; also of one that goes on meanwhile."""
    limit = wanted.limit or _TAIL
    last: deque[episode_pb2.EpisodeEvent] = deque(maxlen=limit)
    request = pb.ListEpisodeEventsRequest(
        namespace=wanted.namespace,
        episode_id=episode.episode_id,
        page_size=_PAGE,
        after_sequence=max(0, episode.event_count - limit),
    )
    while True:
        page = stub.ListEpisodeEvents(request, timeout=timeout)
        last.extend(page.events)
        if not page.next_page_token:
            return last
        request.page_token = page.next_page_token


def _tell_failures(
    stub: pb_grpc.EpisodeServiceStub,
    wanted: Wanted,
    narrowed: episode_pb2.EpisodeFilter,
    timeout: float,
    *,
    as_json: bool,
) -> None:
    request = pb.AnalyzeFailuresRequest(
        namespace=wanted.namespace, filter=narrowed, limit=wanted.limit
    )
    answer = stub.AnalyzeFailures(request, timeout=timeout)
    if as_json:
        typer.echo(json_line(answer))
    else:
        print_failures(screen(), answer)
