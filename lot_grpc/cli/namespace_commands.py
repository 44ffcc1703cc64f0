"""The subcommands about namespaces as a whole."""

from __future__ import annotations

from typing import Annotated

import typer

from lot_grpc.cli.failures import reported
from lot_grpc.cli.options import Address, Config, Json, JsonLines

Timeout = Annotated[float, typer.Option("--timeout", min=0.1, help="Seconds to wait.")]


def namespaces(
    address: Address = "", timeout: Timeout = 60.0, config: Config = None, json: JsonLines = False
) -> None:
    """List namespaces by name with what each holds. Asks a running server."""
    from lot_grpc.cli.namespaces import run

    with reported():
        raise typer.Exit(0 if run(address, timeout, config, as_json=json) else 1)


def clear(
    namespace: Annotated[str, typer.Argument(metavar="NAMESPACE", help="What to clear.")],
    noun: Annotated[
        list[str] | None,
        typer.Option(
            "--noun",
            help="Just this one: memory, pattern, episode, error_solution, preference, session, "
            "learning_event, decision, action_value or policy. Repeatable.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Delete nothing, tell what would be deleted.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    address: Address = "",
    timeout: Timeout = 600.0,
    config: Config = None,
    json: Json = False,
) -> None:
    """Delete all that a namespace holds, for good, by a running server.

    On a terminal it asks first; elsewhere --yes says so.

    lot-grpc clear team-a --dry-run

    lot-grpc clear team-a --noun memory --noun preference --yes
    """
    from lot_grpc.cli.clear import Wanted, run

    if not namespace:
        raise typer.BadParameter("NAMESPACE must not be empty")
    with reported():
        wanted = Wanted(namespace, noun or (), dry_run, yes)
        raise typer.Exit(0 if run(address, wanted, timeout, config, as_json=json) else 1)
