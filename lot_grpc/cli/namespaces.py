"""``lot-grpc namespaces``: what namespaces there are, asked of a running server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import grpc
import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lot_grpc.cli.calls import connected, target_of, tell_failure
from lot_grpc.cli.screen import screen
from lot_grpc.cli.texts import clean
from lot_grpc.cli.words import RESOURCE_KINDS, json_line
from lot_grpc.domain.counting import counted
from lot_grpc.pb.lot.v1 import admin_service_pb2 as pb
from lot_grpc.pb.lot.v1 import admin_service_pb2_grpc as pb_grpc
from lot_grpc.pb.lot.v1 import resource_kind_pb2

_PAGE = 1000


def run(address: str, timeout: float, config: Path | None, *, as_json: bool) -> bool:
    """Ask, print a line for each, and tell whether the server answered.

    Raises:
        SettingsError: No address is given, and the settings cannot be used.
    """
    target = target_of(address, config)
    try:
        with connected(target) as channel:
            found = list(_listed(pb_grpc.AdminServiceStub(channel), timeout))
    except grpc.RpcError as error:
        tell_failure(target, error)
        return False
    if as_json:
        for usage in found:
            typer.echo(json_line(usage))
    elif found:
        _print(screen(), found)
    else:
        typer.echo("no namespace holds anything")
    return True


def _listed(stub: pb_grpc.AdminServiceStub, timeout: float) -> Iterator[pb.NamespaceUsage]:
    request = pb.ListNamespacesRequest(page_size=_PAGE)
    while True:
        page = stub.ListNamespaces(request, timeout=timeout)
        yield from page.namespaces
        if not page.next_page_token:
            return
        request.page_token = page.next_page_token


def _print(console: Console, found: Sequence[pb.NamespaceUsage]) -> None:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for title in ("namespace", "in all", "what"):
        table.add_column(title, overflow="fold", justify="right" if title == "in all" else "left")
    for usage in found:
        name = Text(clean(usage.namespace))
        if usage.clearing:
            name.append(" is being cleared", style="yellow")
        table.add_row(name, f"{sum(usage.counts.values()):,}", Text(counts_text(usage.counts)))
    console.print(table)


def counts_text(counts: Mapping[str, int]) -> str:
    """How much of each kind, in the order of the contract."""
    known = dict(resource_kind_pb2.ResourceKind.items())
    names = sorted(
        filter(counts.get, counts), key=lambda name: known.get(f"RESOURCE_KIND_{name}", len(known))
    )
    return ", ".join(counted(counts[name], _word(name)) for name in names)


def _word(name: str) -> str:
    """The word of a kind; of one that a newer server has, its own name."""
    number = dict(resource_kind_pb2.ResourceKind.items()).get(f"RESOURCE_KIND_{name}")
    return (clean(name.lower()) if number is None else RESOURCE_KINDS.word(number)).replace(
        "_", " "
    )
