"""Where people read: a console that knows its width and whether it has colours."""

from __future__ import annotations

import io
import os
import sys

import typer
from rich.console import Console
from rich.text import Text

from lot_grpc.cli.texts import clean_lines

_WIDTH = 110
"""Columns where there is no terminal to ask and no COLUMNS in the environment."""


class _Screen(Console):
    def on_broken_pipe(self) -> None:
        """Leave it to ``failures.reported``; rich would end the process."""
        raise


def screen() -> Console:
    """Standard output. Colours on a terminal only, and not with NO_COLOR.

    A letter that the terminal's encoding lacks is written out, it does not end the command.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    console = _Screen()
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console = _Screen(width=_WIDTH)
    return console


def print_line(console: Console, *parts: tuple[str, str], indent: int = 0) -> None:
    """One line of texts with their styles, cut to the width. The texts must be clean."""
    line = Text.assemble(" " * indent, *parts)
    console.print(line, no_wrap=True, overflow="ellipsis", crop=True)


def print_page(text: str) -> None:
    """A page of Markdown: as it is for a program, cleaned for a terminal, which would obey it."""
    if screen().is_terminal:
        text = clean_lines(text)
    # `color`: without it the echo takes escapes out where there is no terminal.
    typer.echo(text, nl=not text.endswith("\n"), color=True)
