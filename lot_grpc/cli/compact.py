"""``lot-grpc compact``."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import typer

from lot_grpc.cli.progress import ProgressDisplay
from lot_grpc.cli.start import begin
from lot_grpc.settings import MIB


def run(config: Path | None, *, as_json: bool) -> None:
    """Compact the embedded store and say what changed.

    Raises:
        SettingsError: The settings cannot be used.
        StartupError: The store is in use, or not an embedded one.
    """
    settings = begin(config)
    from lot_grpc import app

    with ProgressDisplay() as progress:
        report = app.compact(settings, progress)
    if as_json:
        typer.echo(json.dumps(dataclasses.asdict(report), indent=2))
    elif report.changed:
        typer.echo(
            f"compacted {report.location} in {report.seconds:.1f} s: "
            f"{report.bytes_before // MIB:,} MiB before, {report.bytes_after // MIB:,} MiB now"
        )
    else:
        typer.echo(f"{report.location} needs no compacting")
