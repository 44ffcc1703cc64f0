"""The subcommands that an operator needs now and then."""

from __future__ import annotations

from typing import Annotated

import typer

from lot_grpc.cli.failures import reported
from lot_grpc.cli.options import Address, Config, Json


def reindex(
    model: Annotated[
        str,
        typer.Argument(
            metavar="[MODEL]", help="Model to go to, as Reindex names it; not with --offline."
        ),
    ] = "",
    offline: Annotated[
        bool,
        typer.Option(
            "--offline", help="Open the store here, with the configured model; no server may run."
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Change nothing, tell how much there is to do.")
    ] = False,
    address: Address = "",
    config: Config = None,
    json: Json = False,
) -> None:
    """Embed everything anew with another model, by a running server that serves on meanwhile.

    Stopped at any time it leaves the present model serving, and goes on when called again.
    """
    from lot_grpc.cli.reindex import Wanted, run

    if offline and (model or dry_run or address):
        raise typer.BadParameter("--offline goes to the configured model, at once and here")
    if not offline and not model:
        raise typer.BadParameter("name the model to go to, or say --offline")
    with reported():
        done = run(Wanted(model, address, dry_run=dry_run, offline=offline), config, as_json=json)
        raise typer.Exit(0 if done else 1)
