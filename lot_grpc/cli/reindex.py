"""``lot-grpc reindex``: one call of ``AdminService.Reindex``, or the same on a closed store."""

from __future__ import annotations

import asyncio
import dataclasses
import json

import grpc
import typer
from typer import Argument, Option

from lot_grpc.cli.audited import audited
from lot_grpc.cli.calls import Caller
from lot_grpc.cli.failures import print_note
from lot_grpc.cli.options import Json
from lot_grpc.cli.progress import ProgressDisplay
from lot_grpc.cli.start import begin
from lot_grpc.cli.texts import clean
from lot_grpc.domain.counting import counted
from lot_grpc.pb.lot.v1 import admin_service_pb2 as pb
from lot_grpc.pb.lot.v1.admin_service_pb2_grpc import AdminServiceStub

_HINTS = {
    grpc.StatusCode.UNAVAILABLE: "the server is unreachable or has stopped; the previous model is "
    "still in use: run the command again to resume"
}


def reindex(
    *,
    model: str = Argument(
        "", metavar="[MODEL]", help="Model to switch to, as in Reindex; not with --offline."
    ),
    offline: bool = Option(
        False,
        "--offline",
        help="Open the store here with the configured model; stop the server first.",
    ),
    dry_run: bool = Option(
        False, "--dry-run", help="Change nothing; show how much there is to do."
    ),
    server: Caller = Caller(),
    as_json: Json = False,
) -> None:
    """Re-embed everything with another model while the server keeps running.

    If interrupted, the current model stays in use; run the command again to resume.
    """
    if offline and (model or dry_run or server.address):
        raise typer.BadParameter("--offline takes no MODEL, --dry-run or --address")
    if not offline and not model:
        raise typer.BadParameter("give the MODEL to switch to, or --offline")
    settings = begin(server.config)
    if offline:
        from lot_grpc.offline_reindex import reindex_offline

        with audited(settings.audit, "reindex --offline"), ProgressDisplay() as progress:
            report = asyncio.run(reindex_offline(settings, progress))
        if as_json:
            typer.echo(json.dumps(dataclasses.asdict(report), indent=2))
        elif report.changed:
            typer.echo(
                f"embedded {report.embedded:,} of {counted(report.total, 'record')} in "
                f"{report.seconds:.1f} s, with {report.model} instead of {report.former}"
            )
        else:
            typer.echo(f"nothing to do: the store already uses {report.model}")
        return
    last = _reindex(server, pb.ReindexRequest(model=model, dry_run=dry_run))
    seconds = last.elapsed.ToMilliseconds() / 1000
    if as_json:
        fields = {
            "address": server.target,
            "phase": pb.ReindexPhase.Name(last.phase).removeprefix("REINDEX_PHASE_"),
            "done_count": last.done_count,
            "total_count": last.total_count,
            "seconds": seconds,
            "detail": last.detail,
        }
        typer.echo(json.dumps(fields, indent=2))
    else:
        typer.echo(f"{clean(last.detail)} ({counted(last.total_count, 'record')}, {seconds:.1f} s)")


def _reindex(server: Caller, request: pb.ReindexRequest) -> pb.ReindexResponse:
    """The final response, after showing the progress."""
    step = pb.ReindexResponse()
    try:
        with server.stub(AdminServiceStub, _HINTS) as stub, ProgressDisplay() as progress:
            for step in stub.Reindex(request):
                if step.phase != pb.REINDEX_PHASE_DONE and step.total_count:
                    progress("embedding", step.done_count, step.total_count)
    except KeyboardInterrupt:
        print_note("stopped; the previous model is still in use. Run the command again to resume")
        raise
    return step
