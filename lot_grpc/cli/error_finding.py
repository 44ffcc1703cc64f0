"""``lot-grpc errors``: what fixed an error like this one, asked of a running server."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import grpc
import typer

from lot_grpc.cli.calls import connected, note_all, target_of, tell_failure
from lot_grpc.cli.error_blocks import print_found
from lot_grpc.cli.error_text import ErrorText, fitting, from_stream
from lot_grpc.cli.failures import note
from lot_grpc.cli.screen import screen
from lot_grpc.cli.words import json_line
from lot_grpc.pb.lot.v1 import error_solution_pb2 as pb
from lot_grpc.pb.lot.v1 import memory_service_pb2_grpc as pb_grpc

STDIN = "-"


@dataclass(frozen=True)
class Wanted:
    """What was asked for, as in FindErrorSolutionsRequest; ``message`` ``-`` is standard input."""

    namespace: str
    message: str
    error_type: str
    language: str
    categories: Sequence[str]
    limit: int
    head: bool
    unsolved: bool
    explain: bool


def run(
    wanted: Wanted, address: str, timeout: float, config: Path | None, *, as_json: bool
) -> bool:
    """Ask and print, and tell whether there was an answer; that nothing is known is one.

    Raises:
        SettingsError: No address is given, and the settings cannot be used.
        BadParameter: There is no error to ask about.
    """
    target = target_of(address, config)
    error = _error(wanted)
    request = pb.FindErrorSolutionsRequest(
        namespace=wanted.namespace,
        error_type=wanted.error_type,
        error_message=error.text,
        language=wanted.language,
        categories=wanted.categories,
        limit=wanted.limit,
        include_unsolved=wanted.unsolved,
        explain=wanted.explain,
    )
    try:
        with connected(target) as channel:
            stub = pb_grpc.MemoryServiceStub(channel)
            answer = stub.FindErrorSolutions(request, timeout=timeout)
    except grpc.RpcError as error_of_call:
        tell_failure(target, error_of_call)
        return False
    if as_json:
        typer.echo(json_line(answer))
    else:
        print_found(screen(), answer)
        note_all(answer.notices)
    return True


def _error(wanted: Wanted) -> ErrorText:
    """The error, cut to what the server takes, which is said."""
    if wanted.message == STDIN:
        if sys.stdin.isatty():
            note("reading the error from the terminal; Ctrl-D ends it")
        error = from_stream(sys.stdin.buffer, head=wanted.head)
    else:
        error = fitting(wanted.message, head=wanted.head)
    if not error.text.strip() and not wanted.error_type:
        nothing = "standard input had nothing" if wanted.message == STDIN else "it is empty"
        raise typer.BadParameter(f"there is no error to look for: {nothing}")
    if error.cut:
        which, other = ("first", "last") if wanted.head else ("last", "first")
        how = "without --head" if wanted.head else "--head"
        note(
            f"of the {error.given_bytes:,} bytes the {which} {len(error.text.encode()):,} are "
            f"looked for; {how}: the {other}"
        )
    return error
