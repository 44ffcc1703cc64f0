"""Reads JSON lines and tab-separated lines, gzipped or not, and reports where an error is."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from lot_grpc.evaluation.errors import EvalDataError, wrong


def find_file(folder: Path, names: Sequence[str]) -> Path | None:
    """The first of the names that is in the folder, plain before gzipped."""
    for name in names:
        for path in (folder / name, folder / f"{name}.gz"):
            if path.is_file():
                return path
    return None


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Every line that is not blank, with its number from 1.

    Raises:
        EvalDataError: It cannot be read, or is not UTF-8.
    """
    number = 0
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
            for number, raw in enumerate(stream, 1):
                line = raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
                if line.strip():
                    yield number, line
    except UnicodeDecodeError as error:
        raise wrong(path, number, f"is not UTF-8 ({error.reason}); convert the file") from None
    except (OSError, EOFError, zlib.error) as error:
        raise wrong(path, 0, f"cannot be read: {error}") from None


def read_objects(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The JSON object of every line, with its number.

    Raises:
        EvalDataError: A line is not a JSON object.
    """
    for number, line in read_lines(path):
        try:
            value = json.loads(line)
        except (json.JSONDecodeError, RecursionError) as error:
            raise wrong(
                path, number, f"is not JSON ({error}); each line must be one JSON object"
            ) from None
        if not isinstance(value, dict):
            raise wrong(path, number, "is not a JSON object; each line must be one, as {…}")
        yield number, value


def text_of(path: Path, number: int, value: Any, name: str) -> str:
    """A text that the service would also accept.

    Raises:
        EvalDataError: It is not a string, contains NUL, or is not valid Unicode.
    """
    if not isinstance(value, str):
        raise wrong(path, number, f"`{name}` must be a string, but is {json.dumps(value)[:60]}")
    if "\0" in value:
        raise wrong(path, number, f"`{name}` has a NUL character, which the service refuses")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise wrong(path, number, f"`{name}` has half of a surrogate pair; repair it") from None
    return value


def id_of(path: Path, number: int, record: dict[str, Any]) -> str:
    """The ``id``, or BEIR's ``_id``. A whole number counts as its digits."""
    value = record.get("id", record.get("_id"))
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if value is None or value == "":
        raise wrong(path, number, "has no `id` (or `_id`); each line needs a unique one")
    return text_of(path, number, value, "id")


def missing(folder: Path, names: Sequence[str], what: str) -> EvalDataError:
    """The error for a missing file."""
    return EvalDataError(
        f"{folder} has no {' or '.join(names)} (nor one of them with .gz), {what}; "
        "`lot-grpc eval --help` describes the layout of a set"
    )
