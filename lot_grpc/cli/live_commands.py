"""The subcommands that show what a running server records, and what changes in it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lot_grpc.cli.failures import reported
from lot_grpc.cli.options import Address, Config, JsonLines, Namespace, new_file

_Words = list[str] | None


def episodes(
    episode_id: Annotated[
        str, typer.Argument(metavar="ID", help="Show this episode and its last events.")
    ] = "",
    status: Annotated[
        _Words,
        typer.Option(
            "--status", help="running, succeeded, failed or abandoned. Repeatable, like the next."
        ),
    ] = None,
    category: Annotated[_Words, typer.Option("--category", help="Only this category.")] = None,
    task_type: Annotated[_Words, typer.Option("--task-type", help="Only this type.")] = None,
    task_id: Annotated[_Words, typer.Option("--task-id", help="Only this task.")] = None,
    after: Annotated[
        str,
        typer.Option(
            "--after", metavar="TIME", help="Started after this time: ISO 8601, or 2h, 3d ago."
        ),
    ] = "",
    before: Annotated[
        str, typer.Option("--before", metavar="TIME", help="Started before this time.")
    ] = "",
    limit: Annotated[
        int,
        typer.Option(
            "--limit", "-l", min=0, metavar="N", help="At most N; 0: 20, or 10 events or groups."
        ),
    ] = 0,
    failures: Annotated[bool, typer.Option("--failures", help="Group failures by cause.")] = False,
    namespace: Namespace = "",
    address: Address = "",
    timeout: Annotated[float, typer.Option("--timeout", min=0.1, help="Seconds to wait.")] = 60.0,
    config: Config = None,
    json: JsonLines = False,
) -> None:
    """List episodes, newest first; show one; or group failures by cause.

    Times without an offset are local ones.

    lot-grpc episodes --status failed --after 3d

    lot-grpc episodes e-17

    lot-grpc episodes --failures --category backend
    """
    from lot_grpc.cli.episodes import Wanted, run

    wanted = Wanted(
        namespace=namespace,
        statuses=status or (),
        categories=category or (),
        task_types=task_type or (),
        task_ids=task_id or (),
        after=after,
        before=before,
        limit=limit,
    )
    if episode_id and (failures or wanted.narrows):
        raise typer.BadParameter("an ID goes with --limit only: it shows just that episode")
    with reported():
        told = run(episode_id, wanted, address, timeout, config, failures=failures, as_json=json)
        raise typer.Exit(0 if told else 1)


def replay(
    episode_id: Annotated[str, typer.Argument(metavar="ID", help="The episode.")],
    speed: Annotated[
        float,
        typer.Option(
            "--speed",
            min=0,
            max=1e6,
            metavar="X",
            help="0: at once, 1: original speed, 2: twice that.",
        ),
    ] = 0.0,
    after: Annotated[
        int,
        typer.Option(
            "--after", min=0, metavar="N", help="Start after event number N (not a time)."
        ),
    ] = 0,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Follow a running episode until it ends.")
    ] = False,
    full: Annotated[bool, typer.Option("--full", help="Show event data in full.")] = False,
    namespace: Namespace = "",
    address: Address = "",
    timeout: Annotated[
        float,
        typer.Option("--timeout", min=0, help="Seconds to wait for a lost server; 0: forever."),
    ] = 60.0,
    config: Config = None,
    json: JsonLines = False,
) -> None:
    """Show the events of an episode in order, as they arrive. Ctrl-C stops.

    lot-grpc replay e-17 --full

    lot-grpc replay e-17 --speed 10 --after 40

    lot-grpc replay e-17 --follow
    """
    from lot_grpc.cli.replay import Wanted, run

    if not episode_id:
        raise typer.BadParameter("ID must not be empty")
    wanted = Wanted(namespace, episode_id, speed, after, follow, full)
    with reported():
        raise typer.Exit(0 if run(wanted, address, timeout, config, as_json=json) else 1)


def watch(
    resource_kind: Annotated[
        _Words,
        typer.Option(
            "--kind",
            help="memory, pattern, episode, error_solution, preference, learning_event or "
            "decision. Repeatable.",
        ),
    ] = None,
    kind: Annotated[
        _Words,
        typer.Option(
            "--type",
            help="stored, updated, deleted, cleared, pattern.learned, pattern.matched or "
            "context.suggested. Repeatable.",
        ),
    ] = None,
    from_start: Annotated[
        bool, typer.Option("--from-start", help="Print all existing records first.")
    ] = False,
    after: Annotated[
        str,
        typer.Option(
            "--after",
            metavar="CURSOR",
            help="Resume after this cursor, as printed by --json (not a time).",
        ),
    ] = "",
    cursor_file: Annotated[
        Path | None,
        typer.Option(
            "--cursor-file",
            metavar="FILE",
            callback=new_file,
            help="Save the last cursor in FILE; the next watch resumes after it.",
        ),
    ] = None,
    namespace: Namespace = "",
    address: Address = "",
    timeout: Annotated[
        float,
        typer.Option("--timeout", min=0, help="Seconds to wait for a lost server; 0: forever."),
    ] = 0.0,
    config: Config = None,
    json: JsonLines = False,
) -> None:
    """Print a line for each change: stored, updated, deleted, learned. Ctrl-C stops.

    lot-grpc watch

    lot-grpc watch --kind pattern --kind episode --type updated

    lot-grpc watch --json --from-start --cursor-file seen.cursor
    """
    from lot_grpc.cli.watch import Wanted, run

    if after and (from_start or cursor_file):
        raise typer.BadParameter("--after goes with neither --from-start nor --cursor-file")
    wanted = Wanted(namespace, resource_kind or (), kind or (), from_start, after, cursor_file)
    with reported():
        raise typer.Exit(0 if run(wanted, address, timeout, config, as_json=json) else 1)
