"""Code, coloured on a terminal and as it is elsewhere."""

from __future__ import annotations

from rich.console import Console
from rich.syntax import Syntax
from rich.text import Text

from lot_grpc.cli.texts import clean_lines

_COLOURED_LETTERS = 65_536
"""Longer code is shown without colours: the lexer would take seconds."""


def print_code(console: Console, code: str, language: str) -> None:
    """The code, cleaned, in the terminal's own colours; in pipes no line is broken.

    A language that nobody knows has no colours.
    """
    shown = clean_lines(code).rstrip("\n")
    if not console.is_terminal:
        console.print(Text(shown), soft_wrap=True)
    elif len(shown) > _COLOURED_LETTERS:
        console.print(Text(shown), overflow="fold")
    else:
        console.print(
            Syntax(
                shown,
                language or "text",
                theme="ansi_dark",
                background_color="default",
                word_wrap=True,
            )
        )
