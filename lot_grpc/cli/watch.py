"""``lot-grpc watch``: what changes in the memory of a running server, a line a change."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import grpc
import typer

from lot_grpc.cli.calls import going_on, target_of, tell_failure
from lot_grpc.cli.change_lines import print_change
from lot_grpc.cli.cursor_file import CursorFile, CursorNotKeptError
from lot_grpc.cli.failures import note, tell
from lot_grpc.cli.screen import screen
from lot_grpc.cli.texts import clean
from lot_grpc.cli.words import CHANGE_TYPES, RESOURCE_KINDS, json_line
from lot_grpc.pb.lot.v1 import change_pb2 as pb
from lot_grpc.pb.lot.v1 import memory_service_pb2_grpc as pb_grpc

_HINTS = {
    grpc.StatusCode.OUT_OF_RANGE: "--from-start tells all that is there and goes on; a "
    "--cursor-file that holds the old cursor has to be removed first",
}


@dataclass(frozen=True)
class Wanted:
    """What was asked for; no kinds and no types are all."""

    namespace: str
    resource_kinds: Sequence[str]
    types: Sequence[str]
    from_start: bool
    after: str
    cursor_file: Path | None


class _Place:
    """Where the watch is: the last cursor, kept in a file if there is one."""

    def __init__(self, after: str, file: CursorFile | None) -> None:
        self.cursor = after
        self._file = file
        self._kept = after

    def keep(self) -> None:
        if self._file is not None and self.cursor != self._kept:
            self._file.write(self.cursor)
            self._kept = self.cursor


def run(
    wanted: Wanted, address: str, patience: float, config: Path | None, *, as_json: bool
) -> bool:
    """Print changes until Ctrl-C; false when it has to end before.

    Args:
        wanted: What was asked for.
        address: Of the server; empty: that of the settings.
        patience: Seconds for which a lost server is tried again; 0: for ever.
        config: The settings file.
        as_json: Print each change as an object.

    Raises:
        SettingsError: No address is given, and the settings cannot be used.
        BadParameter: What was asked for cannot be meant.
    """
    request = _request(wanted)
    file = CursorFile(wanted.cursor_file) if wanted.cursor_file else None
    place = _Place(wanted.after or (file.read() if file else ""), file)
    target = target_of(address, config)
    try:
        _watch(target, request, place, patience, as_json=as_json)
    except grpc.RpcError as error:
        tell_failure(target, error, _HINTS)
    except CursorNotKeptError as error:
        tell(str(error), "")
    else:
        tell(f"{target}: the server ended the stream", "watch again to go on")
    return False


def _request(wanted: Wanted) -> pb.WatchChangesRequest:
    request = pb.WatchChangesRequest(namespace=wanted.namespace, from_start=wanted.from_start)
    request.resource_kinds.extend(RESOURCE_KINDS.numbers("--kind", wanted.resource_kinds))
    request.types.extend(CHANGE_TYPES.numbers("--type", wanted.types))
    return request


def _watch(
    target: str, request: pb.WatchChangesRequest, place: _Place, patience: float, *, as_json: bool
) -> None:
    console = screen()
    started = False

    def opened(channel: grpc.Channel) -> Iterable[pb.WatchChangesResponse]:
        if place.cursor:
            request.after_cursor = place.cursor
            request.from_start = False
        return pb_grpc.MemoryServiceStub(channel).WatchChanges(request)

    try:
        for message in going_on(target, opened, lambda: "from the last cursor", patience):
            if not started:
                started = True
                note(f"watching {clean(request.namespace) or 'default'} on {target}; Ctrl-C ends")
            for change in message.change_events:
                if as_json:
                    typer.echo(json_line(change))
                else:
                    print_change(console, change)
                place.cursor = change.cursor or place.cursor
            place.cursor = message.cursor or place.cursor
            place.keep()
    finally:
        place.keep()
