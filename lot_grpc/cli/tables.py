"""Tables that fit the terminal, and lists of what is told of one thing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lot_grpc.cli.texts import clean_lines

T = TypeVar("T")

_LEAST_STRETCHED = 16
"""Cells of the stretched column that tell enough; columns that would leave it less are left out."""

_BETWEEN = 2
"""Cells around each column of a table."""


@dataclass(frozen=True)
class Column(Generic[T]):
    """One column: what stands in it of a thing, which must be clean.

    ``importance``: the least important one goes first where there is little room; 0 never goes.
    ``folded``: what is too long goes on in the next line; else it is cut.
    """

    title: str
    cell: Callable[[T], str | Text]
    importance: int = 0
    numeric: bool = False
    folded: bool = False


def print_table(
    console: Console, columns: Sequence[Column[T]], things: Sequence[T], stretched: str
) -> None:
    """A row for each thing, in the columns for which there is room.

    Args:
        console: Where to.
        columns: All that there could be.
        things: What the rows tell of.
        stretched: Title of the column that takes the room which the others leave.
    """
    rows = [[_text(column.cell(thing)) for column in columns] for thing in things]
    kept = _fitting(console.width, columns, rows, stretched)
    table = Table(box=SIMPLE_HEAD, width=console.width, pad_edge=False)
    for number in kept:
        column = columns[number]
        table.add_column(
            column.title,
            no_wrap=not column.folded,
            overflow="fold" if column.folded else "ellipsis",
            justify="right" if column.numeric else "left",
            ratio=1 if column.title == stretched else None,
        )
    for row in rows:
        table.add_row(*(row[number] for number in kept))
    console.print(table)


def print_fields(console: Console, fields: Iterable[tuple[str, str | Text]]) -> None:
    """A name and what is told of it, a line or more each; nothing of an empty text.

    Strings are cleaned here; a ``Text`` must be clean.
    """
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True, style="dim")
    table.add_column(overflow="fold")
    for name, text in fields:
        if text:
            table.add_row(name, text if isinstance(text, Text) else Text(clean_lines(text)))
    console.print(table)


def _text(cell: str | Text) -> Text:
    return cell if isinstance(cell, Text) else Text(cell)


def _fitting(
    width: int, columns: Sequence[Column[T]], rows: Sequence[Sequence[Text]], stretched: str
) -> list[int]:
    """Numbers of the columns to show."""
    kept = list(range(len(columns)))
    widths = [
        max([len(column.title), *(cell_len(row[number].plain) for row in rows)])
        for number, column in enumerate(columns)
    ]

    def room() -> int:
        taken = sum(widths[number] for number in kept if columns[number].title != stretched)
        return width - taken - _BETWEEN * len(kept)

    while room() < _LEAST_STRETCHED:
        spare = [number for number in kept if columns[number].importance]
        if not spare:
            break
        kept.remove(min(spare, key=lambda number: columns[number].importance))
    return kept
