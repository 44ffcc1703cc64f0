"""Output for people: tables that fit the terminal, fields of one message, code and pages."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import typer
from google.protobuf.message import Message
from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from lot_grpc.cli.fields import field_label, field_text
from lot_grpc.cli.texts import clean_lines, one_line

T = TypeVar("T")

_WIDTH = 110
"""Width without a terminal and without COLUMNS in the environment."""

_MIN_STRETCHED = 16
"""Minimum width of the stretched column; columns that would leave it less are omitted."""

_BETWEEN = 2
"""Padding of each column of a table."""

_COLOURED_LETTERS = 65_536
"""Longer code is shown without colours: the lexer would take seconds."""


def screen() -> Console:
    """Standard output. Colours only on a terminal, and not with NO_COLOR.

    A letter that the terminal's encoding lacks is escaped; it does not end the command.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    console = Console()
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console = Console(width=_WIDTH)
    return console


@dataclass(frozen=True)
class Column(Generic[T]):
    """One column: its title, and a field of the message or a function of it.

    A string is put on one line and cleaned; a ``Text`` must be clean.

    ``importance``: in a narrow terminal the least important column is dropped first; 0: never.
    ``form``: the format of the field's number. ``folded``: long text continues on the next line;
    else it is cut. ``stretched``: the column takes the width that the others leave.
    """

    title: str
    cell: str | Callable[[T], str | Text]
    importance: int = 0
    form: str = ""
    numeric: bool = False
    folded: bool = False
    stretched: bool = False

    def text(self, item: T) -> Text:
        """The text of an item in this column."""
        if not isinstance(self.cell, str):
            value = self.cell(item)
        else:
            assert isinstance(item, Message)
            value = field_text(item, self.cell, self.form)
        return value if isinstance(value, Text) else Text(one_line(value))


def print_table(console: Console, columns: Sequence[Column[T]], items: Sequence[T]) -> None:
    """Print a row for each item, in the columns that fit."""
    rows = [[column.text(item) for column in columns] for item in items]
    shown = _fitting(console.width, columns, rows)
    table = Table(box=SIMPLE_HEAD, width=console.width, pad_edge=False)
    for number in shown:
        column = columns[number]
        table.add_column(
            column.title,
            no_wrap=not column.folded,
            overflow="fold" if column.folded else "ellipsis",
            justify="right" if column.numeric or column.form else "left",
            ratio=1 if column.stretched else None,
        )
    for row in rows:
        table.add_row(*(row[number] for number in shown))
    console.print(table)


def _fitting(width: int, columns: Sequence[Column[T]], rows: Sequence[Sequence[Text]]) -> list[int]:
    """Numbers of the columns to show."""
    shown = list(range(len(columns)))
    widths = [
        max([len(column.title), *(cell_len(row[number].plain) for row in rows)])
        for number, column in enumerate(columns)
    ]

    def room() -> int:
        taken = sum(widths[number] for number in shown if not columns[number].stretched)
        return width - taken - _BETWEEN * len(shown)

    while room() < _MIN_STRETCHED:
        spare = [number for number in shown if columns[number].importance]
        if not spare:
            break
        shown.remove(min(spare, key=lambda number: columns[number].importance))
    return shown


def print_fields(
    console: Console, fields: Iterable[tuple[str, str | Text]], indent: int = 0
) -> None:
    """Print names and values, one or more lines each, without empty values.

    Strings are cleaned here; a ``Text`` must be clean.
    """
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True, style="dim")
    table.add_column(overflow="fold")
    for name, value in fields:
        if value:
            text = value if isinstance(value, Text) else Text(clean_lines(value))
            table.add_row(" " * indent + name, text)
    console.print(table)


def print_message(
    console: Console,
    message: Message,
    first: Collection[str],
    hidden: Collection[str] = (),
    **texts: str | Text,
) -> None:
    """Print every field of a message that is set, in the order of the contract.

    Args:
        console: Where to print.
        message: The message.
        first: Fields that come before all others.
        hidden: Fields to omit.
        texts: Texts to show instead of the fields' values, and entries that are not fields.
    """
    names = dict.fromkeys((*first, *message.DESCRIPTOR.fields_by_name, *texts))
    rows = [
        (field_label(message, name), texts[name] if name in texts else field_text(message, name))
        for name in names
        if name not in hidden
    ]
    print_fields(console, rows)


def print_line(console: Console, *parts: tuple[str, str], indent: int = 0) -> None:
    """Print one line of texts with their styles, cut to the width. The texts must be clean."""
    line = Text.assemble(" " * indent, *parts)
    console.print(line, no_wrap=True, overflow="ellipsis", crop=True)


def print_page(text: str) -> None:
    """Print a page of Markdown: unchanged for a program, cleaned for a terminal."""
    if screen().is_terminal:
        text = clean_lines(text)
    # `color`: without it, `echo` removes escapes if there is no terminal.
    typer.echo(text, nl=not text.endswith("\n"), color=True)


def print_code(console: Console, code: str, language: str) -> None:
    """Print code, cleaned, in the terminal's own colours; in pipes no line is broken.

    Code in an unknown language has no colours.
    """
    shown = clean_lines(code).rstrip("\n")
    if not console.is_terminal:
        console.print(Text(shown), soft_wrap=True)
    elif len(shown) > _COLOURED_LETTERS:
        console.print(Text(shown), overflow="fold")
    else:
        code_style = Syntax(
            shown, language or "text", theme="ansi_dark", background_color="default", word_wrap=True
        )
        console.print(code_style)
