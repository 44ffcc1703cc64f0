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
    """List the namespaces of a running server and what each holds."""
    from lot_grpc.cli.namespaces import run

    with reported():
        raise typer.Exit(0 if run(address, timeout, config, as_json=json) else 1)


def clear(
    namespace: Annotated[str, typer.Argument(metavar="NAMESPACE", help="Namespace to clear.")],
    resource_kind: Annotated[
        list[str] | None,
        typer.Option(
            "--kind",
            help="Only this kind: memory, pattern, episode, error_solution, preference, session, "
            "learning_event, decision, action_value or policy. Repeatable.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Delete nothing; show what would be deleted.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Skip the confirmation.")] = False,
    address: Address = "",
    timeout: Timeout = 600.0,
    config: Config = None,
    json: Json = False,
) -> None:
    """Permanently delete everything in a namespace of a running server.

    On a terminal it asks for confirmation; elsewhere --yes is required.

    lot-grpc clear team-a --dry-run

    lot-grpc clear team-a --kind memory --kind preference --yes
    """
    from lot_grpc.cli.clear import Wanted, run

    if not namespace:
        raise typer.BadParameter("NAMESPACE must not be empty")
    with reported():
        wanted = Wanted(namespace, resource_kind or (), dry_run, yes)
        raise typer.Exit(0 if run(address, wanted, timeout, config, as_json=json) else 1)
