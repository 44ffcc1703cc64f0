"""The subcommands that find, list and count the patterns of a running server."""

from __future__ import annotations

from typing import Annotated

import typer

from lot_grpc.cli.failures import reported
from lot_grpc.cli.options import (
    Address,
    Categories,
    Config,
    Json,
    JsonLines,
    Kinds,
    Languages,
    MinSuccessRate,
    MinUsage,
    Namespace,
    TaskTypes,
    Timeout,
)


def recall(
    query: Annotated[str, typer.Argument(metavar="TEXT", help="The task, in words.")],
    language: Languages = None,
    kind: Kinds = None,
    category: Categories = None,
    task_type: TaskTypes = None,
    min_success_rate: MinSuccessRate = 0.0,
    min_usage: MinUsage = 0,
    limit: Annotated[
        int, typer.Option("--limit", "-l", min=0, max=100, metavar="N", help="At most N; 0: 5.")
    ] = 0,
    ranking: Annotated[
        str,
        typer.Option(
            "--ranking",
            help="balanced, relevance, similarity, reliable or explore.",
            metavar="HOW",
        ),
    ] = "balanced",
    explain: Annotated[
        bool, typer.Option("--explain", help="Explain the results and their order.")
    ] = False,
    namespace: Namespace = "",
    address: Address = "",
    timeout: Timeout = 60.0,
    config: Config = None,
    json: Json = False,
) -> None:
    """Find the patterns that fit a task, best first, with how well they worked.

    lot-grpc recall "add pagination to a REST endpoint"

    lot-grpc recall "retry a request" --language python --kind code --ranking reliable
    """
    from lot_grpc.cli.pattern_filters import Narrowing
    from lot_grpc.cli.recall import Wanted, run

    if not query.strip():
        raise typer.BadParameter("TEXT must not be empty")
    narrowing = Narrowing(
        language or (), kind or (), category or (), task_type or (), min_success_rate, min_usage
    )
    wanted = Wanted(namespace, query, narrowing, limit, ranking, explain)
    with reported():
        raise typer.Exit(0 if run(wanted, address, timeout, config, as_json=json) else 1)


def embed(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="The query to compare with.")],
    text: Annotated[
        list[str] | None, typer.Argument(metavar="TEXT...", help="Texts to compare with the query.")
    ] = None,
    code: Annotated[bool, typer.Option("--code", help="Treat the texts as code.")] = False,
    address: Address = "",
    timeout: Timeout = 60.0,
    config: Config = None,
    json: Json = False,
) -> None:
    """Show how similar the model finds a query and texts, to see why a recall finds something.

    lot-grpc embed "sign in as administrator" "Log in to the admin panel" "Water the plants"
    """
    from lot_grpc.cli.embed import run

    with reported():
        found = run(query, text or (), address, timeout, config, code=code, as_json=json)
        raise typer.Exit(0 if found else 1)


def patterns(
    pattern_id: Annotated[
        str, typer.Argument(metavar="ID", help="Show this pattern in full, with its last outcomes.")
    ] = "",
    language: Languages = None,
    kind: Kinds = None,
    category: Categories = None,
    task_type: TaskTypes = None,
    min_success_rate: MinSuccessRate = 0.0,
    min_usage: MinUsage = 0,
    limit: Annotated[
        int,
        typer.Option(
            "--limit",
            "-l",
            min=0,
            metavar="N",
            help="At most N; 0: 20, or 10 outcomes of one pattern.",
        ),
    ] = 0,
    everything: Annotated[
        bool, typer.Option("--all", help="All patterns, or all outcomes of one.")
    ] = False,
    namespace: Namespace = "",
    address: Address = "",
    timeout: Timeout = 60.0,
    config: Config = None,
    json: JsonLines = False,
) -> None:
    """List patterns, newest first; or show one with its actions, code and outcomes.

    lot-grpc patterns --language go --min-usage 1

    lot-grpc patterns p-17
    """
    from lot_grpc.cli.pattern_filters import Narrowing
    from lot_grpc.cli.patterns import Wanted, run

    narrowing = Narrowing(
        language or (), kind or (), category or (), task_type or (), min_success_rate, min_usage
    )
    if pattern_id and narrowing.narrows:
        raise typer.BadParameter("an ID goes with --limit or --all only: it shows just that one")
    if limit and everything:
        raise typer.BadParameter("--limit and --all exclude each other")
    wanted = Wanted(namespace, pattern_id, narrowing, limit, everything)
    with reported():
        raise typer.Exit(0 if run(wanted, address, timeout, config, as_json=json) else 1)


def stats(
    language: Languages = None,
    kind: Kinds = None,
    category: Categories = None,
    task_type: TaskTypes = None,
    min_success_rate: MinSuccessRate = 0.0,
    min_usage: MinUsage = 0,
    namespace: Namespace = "",
    address: Address = "",
    timeout: Timeout = 60.0,
    config: Config = None,
    json: Json = False,
) -> None:
    """Show what the server holds and how well patterns worked: overall, by language, by category.

    lot-grpc stats

    lot-grpc stats --language python --min-usage 1
    """
    from lot_grpc.cli.pattern_filters import Narrowing
    from lot_grpc.cli.stats import run

    narrowing = Narrowing(
        language or (), kind or (), category or (), task_type or (), min_success_rate, min_usage
    )
    with reported():
        told = run(namespace, narrowing, address, timeout, config, as_json=json)
        raise typer.Exit(0 if told else 1)
