"""``lot-grpc clear``: one call of ``AdminService.ClearNamespace``, after confirmation."""

from __future__ import annotations

from functools import partial

import grpc
import typer
from typer import Argument, Option

from lot_grpc.cli.calls import Server
from lot_grpc.cli.deletion import contents_text, delete
from lot_grpc.cli.options import Json
from lot_grpc.cli.texts import clean
from lot_grpc.cli.words import RESOURCE_KINDS, json_line
from lot_grpc.pb.lot.v1 import admin_service_pb2 as pb
from lot_grpc.pb.lot.v1 import resource_kind_pb2
from lot_grpc.pb.lot.v1.admin_service_pb2_grpc import AdminServiceStub

_HINTS = {
    grpc.StatusCode.DEADLINE_EXCEEDED: "the server will finish by itself; `lot-grpc namespaces` "
    "shows when it is done"
}


def clear(
    *,
    namespace: str = Argument(..., metavar="NAMESPACE", help="Namespace to clear."),
    resource_kind: list[resource_kind_pb2.ResourceKind.ValueType] | None = RESOURCE_KINDS.option(
        None,
        "--kind",
        help="Only this kind: memory, pattern, episode, error_solution, preference, session, "
        "learning_event, decision, action_value or policy. Repeatable.",
    ),
    dry_run: bool = Option(False, "--dry-run", help="Delete nothing; show what would be deleted."),
    yes: bool = Option(False, "--yes", "-y", help="Skip the confirmation."),
    server: Server = Server(timeout=600.0),
    as_json: Json = False,
) -> bool:
    """Permanently delete everything in a namespace of a running server.

    On a terminal it asks for confirmation; elsewhere --yes is required.

    lot-grpc clear team-a --dry-run

    lot-grpc clear team-a --kind memory --kind preference --yes
    """
    if not namespace:
        raise typer.BadParameter("NAMESPACE must not be empty")
    request = pb.ClearNamespaceRequest(
        namespace=namespace, confirm_namespace=namespace, resource_kinds=resource_kind
    )
    with server.stub(AdminServiceStub, _HINTS) as stub:
        call = partial(stub.ClearNamespace, timeout=server.timeout)
        answer = delete(call, request, f"from {clean(namespace)}", dry_run=dry_run, yes=yes)
    if answer is None:
        return False
    if as_json:
        typer.echo(json_line(answer))
    else:
        typer.echo(f"{contents_text(answer)} {'would be deleted' if dry_run else 'deleted'}")
    return True
