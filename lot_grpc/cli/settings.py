"""``lot-grpc settings``."""

from __future__ import annotations

import dataclasses
import json

import typer
from typer import Option

from lot_grpc.cli.options import Config, Json

_WIDTH = 52
"""Column at which comments begin."""


def settings(
    *,
    effective: bool = Option(
        False, "--effective", "-e", help="Show the values in effect and their sources."
    ),
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Print a commented settings file with every setting, or the values in effect."""
    from lot_grpc.settings import REFERENCE_FILE
    from lot_grpc.settings_file import explain_settings, load_settings

    if not effective and not as_json and config is None:
        typer.echo(REFERENCE_FILE.read_text(encoding="utf-8"), nl=False)
        return
    values = explain_settings(load_settings(config), config)
    if as_json:
        fields = {one.key: dataclasses.asdict(one) for one in values}
        for setting in fields.values():
            del setting["key"]
        typer.echo(json.dumps(fields, indent=2))
        return
    for one in values:  # as TOML
        text = json.dumps(one.value, ensure_ascii=False)
        typer.echo(f"{f'{one.key} = {text}':{_WIDTH}}  # {one.origin}, {one.variable}")
