"""Subcommands that help with the task at hand: what fixed an error, what is known about a task."""

from __future__ import annotations

from typing import Annotated

import typer

from lot_grpc.cli.failures import reported
from lot_grpc.cli.options import Address, Config, Json, Namespace, Timeout, Words


def errors(
    message: Annotated[
        str,
        typer.Argument(
            metavar="MESSAGE",
            help="The error as it was raised, or a whole trace; - reads standard input.",
        ),
    ] = "",
    error_type: Annotated[
        str,
        typer.Option(
            "--type",
            metavar="TYPE",
            help="Its type, as `TypeError`: solutions of this "
            "type or of none. Without a MESSAGE just the type is looked for.",
        ),
    ] = "",
    language: Annotated[str, typer.Option("--language", help="Only for this language.")] = "",
    category: Annotated[
        Words, typer.Option("--category", help="Only for tasks of this category. Repeatable.")
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", "-l", min=0, max=100, metavar="N", help="At most N; 0: 3.")
    ] = 0,
    head: Annotated[
        bool,
        typer.Option(
            "--head",
            help="Of more than 64 KiB look for the first, not the last: compilers begin "
            "with what matters.",
        ),
    ] = False,
    unsolved: Annotated[
        bool,
        typer.Option("--unsolved", help="Also show what did not help with similar errors."),
    ] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Explain the scores.")] = False,
    namespace: Namespace = "",
    address: Address = "",
    timeout: Timeout = 60.0,
    config: Config = None,
    json: Json = False,
) -> None:
    """Find what fixed an error: the same one first, then similar ones, and what did not help.

    lot-grpc errors "ModuleNotFoundError: No module named 'yaml'"

    cargo build 2>&1 | lot-grpc errors - --language rust
    """
    from lot_grpc.cli.error_finding import Wanted, run

    if not message.strip() and not error_type:
        raise typer.BadParameter("give the MESSAGE, or - to read it from standard input, or --type")
    wanted = Wanted(
        namespace, message, error_type, language, category or (), limit, head, unsolved, explain
    )
    with reported():
        raise typer.Exit(0 if run(wanted, address, timeout, config, as_json=json) else 1)


def context(
    task: Annotated[str, typer.Argument(metavar="TASK", help="The task, in words.")] = "",
    task_id: Annotated[
        str,
        typer.Option(
            "--task-id",
            metavar="ID",
            help="Instead of TASK: use the task of the latest episode with this id.",
        ),
    ] = "",
    category: Annotated[str, typer.Option("--category", help="Category of the task.")] = "",
    task_type: Annotated[str, typer.Option("--task-type", help="Type of the task.")] = "",
    language: Annotated[
        str, typer.Option("--language", help="Leave out results for other languages.")
    ] = "",
    preferences: Annotated[
        Words,
        typer.Option(
            "--preferences",
            metavar="CATEGORY",
            help="Only preferences of this category. Repeatable.",
        ),
    ] = None,
    limit: Annotated[
        int,
        typer.Option(
            "--limit", "-l", min=0, max=100, metavar="N", help="At most N of each kind; 0: 3."
        ),
    ] = 0,
    max_tokens: Annotated[
        int,
        typer.Option(
            "--max-tokens", min=0, metavar="N", help="Limit on the text's length; 0: none."
        ),
    ] = 0,
    min_similarity: Annotated[
        float | None,
        typer.Option(
            "--min-similarity",
            min=0,
            max=1,
            metavar="X",
            help="Minimum similarity; 0: leave nothing out. Default: what is likely to help.",
        ),
    ] = None,
    namespace: Namespace = "",
    address: Address = "",
    timeout: Timeout = 60.0,
    config: Config = None,
    json: Json = False,
) -> None:
    """Print what worked, what failed and what to do for a task, as Markdown for a prompt.

    lot-grpc context "add pagination to a REST endpoint" --max-tokens 1500

    lot-grpc context --task-id t-17 --json
    """
    from lot_grpc.cli.context import Wanted, run

    if bool(task.strip()) == bool(task_id):
        raise typer.BadParameter("give just one of TASK and --task-id")
    wanted = Wanted(
        namespace, task, task_id, category, task_type, language, preferences or (), limit,
        max_tokens, min_similarity,
    )  # fmt: skip
    with reported():
        raise typer.Exit(0 if run(wanted, address, timeout, config, as_json=json) else 1)
