"""``lot-grpc settings``."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import typer

from lot_grpc.settings import REFERENCE_FILE
from lot_grpc.settings_file import SettingValue, explain_settings, load_settings

_WIDTH = 52
"""Columns before the comment."""


def run(config: Path | None, *, effective: bool, as_json: bool) -> None:
    """Print the reference file, or the settings in effect with secrets masked.

    Raises:
        SettingsError: The settings cannot be used.
    """
    if not effective:
        typer.echo(REFERENCE_FILE.read_text(encoding="utf-8"), nl=False)
        return
    values = explain_settings(load_settings(config), config)
    if as_json:
        found = {value.key: _without_key(value) for value in values}
        typer.echo(json.dumps(found, indent=2))
        return
    for value in values:
        typer.echo(_line(value))


def _without_key(value: SettingValue) -> dict[str, object]:
    fields = dataclasses.asdict(value)
    del fields["key"]
    return fields


def _line(value: SettingValue) -> str:
    """A line of TOML, with who gave the value and the variable that would."""
    text = json.dumps(value.value, ensure_ascii=False)
    return f"{f'{value.key} = {text}':{_WIDTH}}  # {value.origin}, {value.variable}"
