"""``lot-grpc clear``: one call of ``AdminService.ClearNamespace``, asked for twice by people."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import grpc
import typer

from lot_grpc.cli.calls import connected, target_of, tell_failure
from lot_grpc.cli.namespaces import counts_text
from lot_grpc.cli.texts import clean
from lot_grpc.cli.words import RESOURCE_KINDS, json_line
from lot_grpc.pb.lot.v1 import admin_service_pb2 as pb
from lot_grpc.pb.lot.v1 import admin_service_pb2_grpc as pb_grpc

_HINTS = {
    grpc.StatusCode.DEADLINE_EXCEEDED: "the server goes on with it by itself; "
    "`lot-grpc namespaces` shows when it is done",
}


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to clear; ``resource_kinds`` empty is everything. ``sure``: nobody is asked."""

    namespace: str
    resource_kinds: Sequence[str]
    dry_run: bool
    sure: bool


def run(
    address: str, wanted: Wanted, timeout: float, config: Path | None, *, as_json: bool
) -> bool:
    """Ask whether to, clear, print what was deleted, and tell whether it was.

    Raises:
        SettingsError: No address is given, and the settings cannot be used.
        BadParameter: It is no kind, or nobody can be asked.
    """
    target = target_of(address, config)
    request = pb.ClearNamespaceRequest(
        namespace=wanted.namespace,
        confirm_namespace=wanted.namespace,
        resource_kinds=RESOURCE_KINDS.numbers("--kind", wanted.resource_kinds),
        dry_run=True,
    )
    try:
        with connected(target) as channel:
            stub = pb_grpc.AdminServiceStub(channel)
            if not wanted.dry_run:
                if not wanted.sure and not _agreed(stub, request, timeout):
                    return False
                request.dry_run = False
            answer = stub.ClearNamespace(request, timeout=timeout)
    except grpc.RpcError as error:
        tell_failure(target, error, _HINTS)
        return False
    if as_json:
        typer.echo(json_line(answer))
    else:
        done = "would be deleted" if wanted.dry_run else "deleted"
        typer.echo(f"{_much(answer)} {done}")
    return True


def _agreed(
    stub: pb_grpc.AdminServiceStub, request: pb.ClearNamespaceRequest, timeout: float
) -> bool:
    if not sys.stdin.isatty():
        raise typer.BadParameter("nobody can be asked here: --yes clears, --dry-run only tells")
    told = stub.ClearNamespace(request, timeout=timeout)
    return typer.confirm(
        f"Delete {_much(told)} of {clean(request.namespace)} for good?", default=False, err=True
    )


def _much(answer: pb.ClearNamespaceResponse) -> str:
    return counts_text(answer.deleted_counts) or "nothing"
