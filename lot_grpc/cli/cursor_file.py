"""The file in which a watch keeps where it is."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import typer

_MODE = 0o600
"""Of the file: a cursor tells something of the store."""


class CursorNotKeptError(Exception):
    """The file cannot be written."""


class CursorFile:
    """Holds one cursor. It is written whole or not at all; a lost write repeats some changes."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> str:
        """The cursor that is kept; empty if there is no file.

        Raises:
            BadParameter: The file cannot be read, or holds no cursor.
        """
        try:
            text = self._path.read_text(encoding="ascii")
        except FileNotFoundError:
            return ""
        except (OSError, UnicodeDecodeError) as error:
            raise typer.BadParameter(f"--cursor-file {self._path}: {error}") from None
        cursor = text.strip()
        if not cursor or len(cursor.split()) > 1:
            raise typer.BadParameter(
                f"--cursor-file {self._path} holds no cursor; remove it to begin anew"
            )
        return cursor

    def write(self, cursor: str) -> None:
        """Keep the cursor in place of the one before.

        Raises:
            CursorNotKeptError: It cannot be written; the file is as it was.
        """
        beside = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        try:
            with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _MODE), "w") as f:
                f.write(f"{cursor}\n")
            beside.replace(self._path)
        except OSError as error:
            with suppress(OSError):
                beside.unlink(missing_ok=True)
            raise CursorNotKeptError(f"--cursor-file {self._path}: {error}") from error
