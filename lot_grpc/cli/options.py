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
