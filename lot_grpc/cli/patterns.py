"""``lot-grpc patterns``: lists them, or shows one; asks a running server."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import grpc
import typer
from google.protobuf.field_mask_pb2 import FieldMask

from lot_grpc.cli.calls import connected, target_of, tell_failure
from lot_grpc.cli.failures import note
from lot_grpc.cli.hit_tables import LISTED
from lot_grpc.cli.pattern_filters import Narrowing
from lot_grpc.cli.pattern_pages import print_outcomes, print_pattern, print_patterns
from lot_grpc.cli.screen import screen
from lot_grpc.cli.words import json_line
from lot_grpc.domain.counting import counted
from lot_grpc.pb.lot.v1 import pattern_pb2
from lot_grpc.pb.lot.v1 import pattern_service_pb2 as pb
from lot_grpc.pb.lot.v1 import pattern_service_pb2_grpc as pb_grpc

_PAGE = 1000
"""Most that the server gives at once."""

_LISTED = 20
_OUTCOMES = 10


@dataclass(frozen=True)
class Wanted:
    """What was asked for; ``limit`` 0 is 20 patterns, or 10 outcomes of one."""

    namespace: str
    pattern_id: str
    narrowing: Narrowing
    limit: int
    everything: bool

    def most(self, usual: int) -> int:
        """How many to show at most."""
        return sys.maxsize if self.everything else self.limit or usual


def run(
    wanted: Wanted, address: str, timeout: float, config: Path | None, *, as_json: bool
) -> bool:
    """Ask and print, and tell whether there was an answer.

    Raises:
        SettingsError: No address is given, and the settings cannot be used.
        BadParameter: What was asked for cannot be meant.
    """
    narrowed = wanted.narrowing.filter()
    target = target_of(address, config)
    try:
        with connected(target) as channel:
            stub = pb_grpc.PatternServiceStub(channel)
            if wanted.pattern_id:
                _tell_one(stub, wanted, timeout, as_json=as_json)
            else:
                _tell_list(stub, wanted, narrowed, timeout, as_json=as_json)
    except grpc.RpcError as error:
        tell_failure(target, error)
        return False
    return True


def _tell_list(
    stub: pb_grpc.PatternServiceStub,
    wanted: Wanted,
    narrowed: pattern_pb2.PatternFilter,
    timeout: float,
    *,
    as_json: bool,
) -> None:
    """JSON page by page, so that a program has the first ones at once; a table of all of them."""
    most = wanted.most(_LISTED)
    patterns: list[pattern_pb2.Pattern] = []
    mask = None if as_json else FieldMask(paths=LISTED)
    request = pb.ListPatternsRequest(namespace=wanted.namespace, filter=narrowed, read_mask=mask)
    count = 0
    while count < most:
        request.page_size = min(most - count, _PAGE)
        page = stub.ListPatterns(request, timeout=timeout)
        count += len(page.patterns)
        if as_json:
            for pattern in page.patterns:
                typer.echo(json_line(pattern))
        else:
            patterns.extend(page.patterns)
        request.page_token = page.next_page_token
        if not page.next_page_token:
            break
    if as_json:
        return
    console = screen()
    if patterns:
        print_patterns(console, patterns)
    else:
        none = "No pattern is like that." if wanted.narrowing.narrows else "There are no patterns."
        console.print(none, highlight=False)
    if request.page_token:
        note(f"there are more than these {count:,}: --limit N shows N of them, --all every one")


def _tell_one(
    stub: pb_grpc.PatternServiceStub, wanted: Wanted, timeout: float, *, as_json: bool
) -> None:
    asked = pb.GetPatternRequest(namespace=wanted.namespace, pattern_id=wanted.pattern_id)
    pattern = stub.GetPattern(asked, timeout=timeout).pattern
    if as_json:
        typer.echo(json_line(pattern))
        return
    outcomes, more = _outcomes(stub, wanted, timeout)
    console = screen()
    print_pattern(console, pattern)
    print_outcomes(console, outcomes)
    if more:
        note(
            f"only the last {counted(len(outcomes), 'outcome')}: --limit N shows N, --all every one"
        )


def _outcomes(
    stub: pb_grpc.PatternServiceStub, wanted: Wanted, timeout: float
) -> tuple[list[pb.OutcomeEntry], bool]:
    """The latest, and whether there are more."""
    most = wanted.most(_OUTCOMES)
    found: list[pb.OutcomeEntry] = []
    request = pb.ListOutcomesRequest(namespace=wanted.namespace, pattern_id=wanted.pattern_id)
    while len(found) < most:
        request.page_size = min(most - len(found), _PAGE)
        page = stub.ListOutcomes(request, timeout=timeout)
        found.extend(page.outcomes)
        request.page_token = page.next_page_token
        if not page.next_page_token:
            break
    return found, bool(request.page_token)
