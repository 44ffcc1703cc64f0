"""``lot-grpc compact``."""

from __future__ import annotations

import dataclasses
import json

import typer

from lot_grpc.cli.audited import audited
from lot_grpc.cli.options import Config, Json
from lot_grpc.cli.progress import ProgressDisplay
from lot_grpc.cli.start import begin


def compact(*, config: Config = None, as_json: Json = False) -> None:
    """Merge and index the embedded store, and erase deleted data from its files.

    Slow. Stop the server first.
    """
    settings = begin(config)
    from lot_grpc import app
    from lot_grpc.settings import MIB

    with audited(settings.audit, "compact"), ProgressDisplay() as progress:
        report = app.compact(settings, progress)
    if as_json:
        typer.echo(json.dumps(dataclasses.asdict(report), indent=2))
    elif report.changed:
        typer.echo(
            f"compacted {report.location} in {report.seconds:.1f} s: "
            f"{report.bytes_before // MIB:,} MiB before, {report.bytes_after // MIB:,} MiB now"
        )
    elif not report.skipped:
        typer.echo(f"{report.location} does not need compaction")
    for skipped in report.skipped:
        typer.echo(f"not compacted, so its files still contain deleted data: {skipped}", err=True)
    if report.skipped:
        raise typer.Exit(1)
