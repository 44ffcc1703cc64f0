"""``lot-grpc erase``: one call of ``AdminService.EraseSubject``, after confirmation."""

from __future__ import annotations

from functools import partial

import grpc
import typer
from typer import Argument, Option

from lot_grpc.cli.calls import Server
from lot_grpc.cli.deletion import contents_text, delete
from lot_grpc.cli.options import Json, Namespace
from lot_grpc.cli.tables import Column, print_table, screen
from lot_grpc.cli.texts import clean
from lot_grpc.cli.words import RESOURCE_KINDS, json_line
from lot_grpc.domain.counting import counted
from lot_grpc.pb.lot.v1 import admin_service_pb2 as pb
from lot_grpc.pb.lot.v1.admin_service_pb2_grpc import AdminServiceStub

_HINTS = {
    grpc.StatusCode.DEADLINE_EXCEEDED: "the server finishes by itself; run the command again with "
    "--dry-run to see what is left"
}


def erase(
    *,
    subject: str = Argument(..., metavar="SUBJECT", help="Value of the label `subject`."),
    dry_run: bool = Option(False, "--dry-run", help="Delete nothing; list what would be deleted."),
    yes: bool = Option(False, "--yes", "-y", help="Skip the confirmation."),
    namespace: Namespace = "",
    server: Server = Server(timeout=600.0),
    as_json: Json = False,
) -> bool:
    """Permanently delete what belongs to a subject, such as a person.

    On a terminal it asks for confirmation; elsewhere --yes is required. To remove the data from the
    files too, stop the server afterwards and run `lot-grpc compact`.

    lot-grpc export alice.lot --subject alice

    lot-grpc erase alice --dry-run
    """
    if not subject:
        raise typer.BadParameter("SUBJECT must not be empty")
    request = pb.EraseSubjectRequest(namespace=namespace, subject=subject)
    with server.stub(AdminServiceStub, _HINTS) as stub:
        call = partial(stub.EraseSubject, timeout=server.timeout)
        answer = delete(call, request, f"of {clean(subject)}", dry_run=dry_run, yes=yes)
    if answer is None:
        return False
    if as_json:
        typer.echo(json_line(answer))
        return True
    if dry_run and answer.records:
        print_table(screen(), _COLUMNS, answer.records)
    typer.echo(f"{contents_text(answer)} {'would be deleted' if dry_run else 'deleted'}")
    if texts := answer.removed_text_count:
        of_others = f"{counted(texts, 'outcome')} of other records"
        typer.echo(f"the query and note of {of_others} {'would be' if dry_run else 'were'} removed")
    return True


_COLUMNS = (
    Column[pb.SubjectRecord]("kind", lambda one: RESOURCE_KINDS.word(one.resource_kind)),
    Column[pb.SubjectRecord]("id", "id", folded=True, stretched=True),
)
