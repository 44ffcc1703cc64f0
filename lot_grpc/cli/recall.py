"""``lot-grpc recall``: the patterns that fit a task, asked of a running server."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import grpc
import typer
from google.protobuf.field_mask_pb2 import FieldMask

from lot_grpc.cli.calls import connected, note_all, target_of, tell_failure
from lot_grpc.cli.hit_tables import LISTED, print_explanation, print_hits
from lot_grpc.cli.pattern_filters import Narrowing
from lot_grpc.cli.screen import screen
from lot_grpc.cli.words import RANKINGS, json_line
from lot_grpc.pb.lot.v1 import pattern_service_pb2 as pb
from lot_grpc.pb.lot.v1 import pattern_service_pb2_grpc as pb_grpc


@dataclass(frozen=True)
class Wanted:
    """What was asked for, as in RecallPatternsRequest."""

    namespace: str
    query: str
    narrowing: Narrowing
    limit: int
    ranking: str
    explain: bool


def run(
    wanted: Wanted, address: str, timeout: float, config: Path | None, *, as_json: bool
) -> bool:
    """Ask and print, and tell whether there was an answer; that nothing fits is one.

    Raises:
        SettingsError: No address is given, and the settings cannot be used.
        BadParameter: What was asked for cannot be meant.
    """
    [ranking] = RANKINGS.numbers("--ranking", [wanted.ranking])
    request = pb.RecallPatternsRequest(
        namespace=wanted.namespace,
        query=wanted.query,
        filter=wanted.narrowing.filter(),
        limit=wanted.limit,
        ranking=ranking,
        explain=wanted.explain,
        read_mask=None if as_json else FieldMask(paths=LISTED),
    )
    target = target_of(address, config)
    try:
        with connected(target) as channel:
            stub = pb_grpc.PatternServiceStub(channel)
            answer = stub.RecallPatterns(request, timeout=timeout)
    except grpc.RpcError as error:
        tell_failure(target, error)
        return False
    if as_json:
        typer.echo(json_line(answer))
    else:
        _show(answer, wanted)
    return True


def _show(answer: pb.RecallPatternsResponse, wanted: Wanted) -> None:
    console = screen()
    if answer.hits:
        print_hits(console, answer.hits)
    else:
        console.print("No pattern fits.", highlight=False)
    if wanted.explain:
        print_explanation(console, answer)
    note_all(answer.notices)
