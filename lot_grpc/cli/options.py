"""Options that several subcommands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Config = Annotated[
    Path | None,
    typer.Option("--config", "-c", metavar="FILE", help="Settings file (TOML); else LOT_CONFIG."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
JsonLines = Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")]
Address = Annotated[
    str, typer.Option("--address", "-a", help="host:port; else that of the settings.")
]
Namespace = Annotated[
    str, typer.Option("--namespace", "-n", help="Whose; empty is `default`.", show_default=False)
]
Timeout = Annotated[float, typer.Option("--timeout", min=0.1, help="Seconds to wait.")]

Words = list[str] | None
Languages = Annotated[
    Words, typer.Option("--language", help="In this language. Repeatable, as the next three.")
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
