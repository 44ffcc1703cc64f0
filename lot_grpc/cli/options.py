"""Options that several subcommands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeVar

import typer

V = TypeVar("V")

Config = Annotated[
    Path | None,
    typer.Option(
        "--config", "-c", metavar="FILE", help="Settings file (TOML); defaults to LOT_CONFIG."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
JsonLines = Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")]


def _checked_address(value: str) -> str:
    """Check an address as the settings do, so that a typo does not look like a lost server."""
    if not value:
        return value
    from lot_grpc.addresses import split_address

    try:
        host, port = split_address(value)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    if not port:
        raise typer.BadParameter("port 0 cannot be called; use the port that the server printed")
    return f"[{host}]:{port}" if ":" in host else value


def new_file(value: V) -> V:
    """Reject up front a file that could not be written at the end."""
    if value is None or str(value) == "-":
        return value
    path = Path(str(value))
    if path.is_dir():
        raise typer.BadParameter(f"{path} is a folder; give a file")
    if not path.parent.is_dir():
        raise typer.BadParameter(
            f"there is no folder {path.parent}; create it or choose another file"
        )
    return value


Address = Annotated[
    str,
    typer.Option(
        "--address",
        "-a",
        help="host:port; defaults to the settings.",
        callback=_checked_address,
    ),
]
Namespace = Annotated[
    str, typer.Option("--namespace", "-n", help="Namespace; empty: `default`.", show_default=False)
]
Timeout = Annotated[float, typer.Option("--timeout", min=0.1, help="Seconds to wait.")]

Words = list[str] | None
Languages = Annotated[
    Words, typer.Option("--language", help="In this language. Repeatable, like the next three.")
]
Kinds = Annotated[
    Words, typer.Option("--kind", help="Of this kind: task, code, learned or distilled.")
]
Categories = Annotated[Words, typer.Option("--category", help="Of this category.")]
TaskTypes = Annotated[Words, typer.Option("--task-type", help="Of this type of task.")]
MinSuccessRate = Annotated[
    float,
    typer.Option(
        "--min-success-rate",
        min=0,
        max=1,
        metavar="RATE",
        help="Success rate at least this. One that was not used yet has the rate it was saved "
        "with, mostly 1; see --min-usage.",
    ),
]
MinUsage = Annotated[
    int, typer.Option("--min-usage", min=0, metavar="N", help="Used at least N times.")
]
