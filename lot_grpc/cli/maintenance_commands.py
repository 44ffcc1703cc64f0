"""Subcommands for occasional maintenance."""

from __future__ import annotations

from typing import Annotated

import typer

from lot_grpc.cli.failures import reported
from lot_grpc.cli.options import Address, Config, Json


def reindex(
    model: Annotated[
        str,
        typer.Argument(
            metavar="[MODEL]", help="Model to switch to, as in Reindex; not with --offline."
        ),
    ] = "",
    offline: Annotated[
        bool,
        typer.Option(
            "--offline",
            help="Open the store here with the configured model; stop the server first.",
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Change nothing; show how much there is to do.")
    ] = False,
    address: Address = "",
    config: Config = None,
    json: Json = False,
) -> None:
    """Re-embed everything with another model while the server keeps running.

    If interrupted, the current model keeps serving; run the command again to resume.
    """
    from lot_grpc.cli.reindex import Wanted, run

    if offline and (model or dry_run or address):
        raise typer.BadParameter("--offline goes to the configured model, at once and here")
    if not offline and not model:
        raise typer.BadParameter("name the model to go to, or say --offline")
    with reported():
        done = run(Wanted(model, address, dry_run=dry_run, offline=offline), config, as_json=json)
        raise typer.Exit(0 if done else 1)
