"""Word tables for the rules of the domain, as editable files.

The readers are called when a module is loaded, so a file is read once, like code. In a ``.txt``
file a line that begins with ``#`` is a comment.
"""

from __future__ import annotations

import tomllib
from importlib.resources import files
from itertools import groupby
from typing import Any


def read_words(name: str) -> list[str]:
    """The words of a ``.txt`` file, in order."""
    return " ".join(read_lines(name)).split()


def read_lines(name: str) -> list[str]:
    """The lines of a ``.txt`` file, without empty ones."""
    return [line for block in read_blocks(name) for line in block]


def read_blocks(name: str) -> list[list[str]]:
    """The lines of a ``.txt`` file, in blocks separated by empty lines."""
    lines = (line.strip() for line in _read(name).splitlines() if not line.startswith("#"))
    return [list(block) for filled, block in groupby(lines, key=bool) if filled]


def read_table(name: str) -> dict[str, Any]:
    """A ``.toml`` file."""
    return tomllib.loads(_read(name))


def _read(name: str) -> str:
    return (files(__name__) / name).read_text(encoding="utf-8")
