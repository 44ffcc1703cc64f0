"""``lot-grpc reindex``: one call of ``AdminService.Reindex``, or the same on a closed store."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path

import grpc
import typer

from lot_grpc.cli.calls import connected, target_of, tell_failure
from lot_grpc.cli.failures import note
from lot_grpc.cli.progress import ProgressDisplay
from lot_grpc.cli.start import begin
from lot_grpc.cli.texts import clean
from lot_grpc.domain.counting import counted
from lot_grpc.pb.lot.v1 import admin_service_pb2 as pb
from lot_grpc.pb.lot.v1 import admin_service_pb2_grpc as pb_grpc
from lot_grpc.settings import Settings

_HINTS = {
    grpc.StatusCode.UNAVAILABLE: (
        "the server is not there, or stopped: the former model still serves; call again to go on"
    )
}


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to go to, by whom."""

    model: str
    address: str
    dry_run: bool
    offline: bool


def run(wanted: Wanted, config: Path | None, *, as_json: bool) -> bool:
    """Reindex with progress; tell whether it came to its end.

    Raises:
        SettingsError: The settings cannot be used.
        StartupError: Offline: the store or the model cannot be opened.
    """
    settings = begin(config)
    if wanted.offline:
        return _offline(settings, as_json=as_json)
    target = target_of(wanted.address, config)
    request = pb.ReindexRequest(model=wanted.model, dry_run=wanted.dry_run)
    last = pb.ReindexResponse()
    try:
        with connected(target) as channel, ProgressDisplay() as progress:
            for step in pb_grpc.AdminServiceStub(channel).Reindex(request):
                last = step
                if step.phase != pb.REINDEX_PHASE_DONE and step.total_count:
                    progress("embedding", step.done_count, step.total_count)
    except grpc.RpcError as error:
        tell_failure(target, error, _HINTS)
        return False
    except KeyboardInterrupt:
        note("stopped; the former model still serves. The same command goes on")
        raise
    if as_json:
        typer.echo(json.dumps(_told(target, last), indent=2))
    else:
        seconds = last.elapsed.ToMilliseconds() / 1000
        typer.echo(f"{clean(last.detail)} ({counted(last.total_count, 'thing')}, {seconds:.1f} s)")
    return True


def _told(target: str, last: pb.ReindexResponse) -> dict[str, object]:
    return {
        "address": target,
        "phase": pb.ReindexPhase.Name(last.phase).removeprefix("REINDEX_PHASE_"),
        "done_count": last.done_count,
        "total_count": last.total_count,
        "seconds": last.elapsed.ToMilliseconds() / 1000,
        "detail": last.detail,
    }


def _offline(settings: Settings, *, as_json: bool) -> bool:
    from lot_grpc.offline_reindex import reindex_offline

    with ProgressDisplay() as progress:
        report = asyncio.run(reindex_offline(settings, progress))
    if as_json:
        typer.echo(json.dumps(dataclasses.asdict(report), indent=2))
    elif report.changed:
        typer.echo(
            f"embedded {report.embedded:,} of {counted(report.total, 'thing')} anew in "
            f"{report.seconds:.1f} s: {report.model} instead of {report.former}"
        )
    else:
        typer.echo(f"the store is of {report.model} already; nothing was to be done")
    return True
