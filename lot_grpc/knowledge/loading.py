"""Reads knowledge packs from TOML files (docs/knowledge.md)."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeVar

from lot_grpc.domain.error_solution import ErrorSolutionContent
from lot_grpc.domain.errors import KnowledgePackInvalidError, RequestInvalidError
from lot_grpc.domain.knowledge import KnowledgePack
from lot_grpc.domain.memory import MemoryContent
from lot_grpc.domain.pattern import PatternContent
from lot_grpc.knowledge.fields import ERROR_SOLUTION, MEMORY, PATTERN, Fields, WrongValueError

BUILT_IN: Final = Path(__file__).parent
"""Folder of the packs that come with the server."""

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,63}")
_ENTRY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,55}")
_MAX_BYTES = 16 * 2**20
_MAX_ENTRIES = 1000

Content = TypeVar("Content", PatternContent, MemoryContent, ErrorSolutionContent)


@cache
def built_in_packs() -> tuple[KnowledgePack, ...]:
    """The packs that come with the server, by name."""
    return tuple(_read(path) for path in sorted(BUILT_IN.glob("*.toml")))


def read_packs(paths: Iterable[Path]) -> tuple[KnowledgePack, ...]:
    """The packs that come with the server, and those of these files, in order.

    Raises:
        KnowledgePackInvalidError: A file cannot be read, or something in it is wrong.
    """
    packs = list(built_in_packs())
    for path in paths:
        pack = _read(path)
        if any(pack.name == other.name for other in packs):
            raise KnowledgePackInvalidError(
                str(path), "", "name", f"a pack {pack.name!r} already exists; use another name"
            )
        packs.append(pack)
    return tuple(packs)


def _read(path: Path) -> KnowledgePack:
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise KnowledgePackInvalidError(
                str(path), "", "", f"is larger than {_MAX_BYTES // 2**20} MiB; split it"
            )
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        problem = f"cannot be read: {error.strerror or error}"
        raise KnowledgePackInvalidError(str(path), "", "", problem) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        problem = f"is not valid TOML: {error}"
        raise KnowledgePackInvalidError(str(path), "", "", problem) from None
    return _Reader(str(path)).pack(table)


class _Reader:
    """Reads one file, and reports where each error is."""

    def __init__(self, file: str) -> None:
        self._file = file

    def pack(self, table: Mapping[str, Any]) -> KnowledgePack:
        known = {"name", "description", "patterns", "memories", "error_solutions"}
        for key in table:
            if key not in known:
                raise self._wrong(
                    "", key, f"no such field; known fields: {', '.join(sorted(known))}"
                )
        name = table.get("name")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise self._wrong(
                "",
                "name",
                "needs a name of lower-case letters, digits, _ and -, starting with a letter",
            )
        description = table.get("description", "")
        if not isinstance(description, str):
            raise self._wrong("", "description", "should be text")
        pack = KnowledgePack(
            name,
            description,
            self._entries(table, "patterns", PATTERN, PatternContent),
            self._entries(table, "memories", MEMORY, MemoryContent),
            self._entries(table, "error_solutions", ERROR_SOLUTION, ErrorSolutionContent),
        )
        if not 0 < pack.size <= _MAX_ENTRIES:
            raise self._wrong("", "", f"needs 1 to {_MAX_ENTRIES} entries, has {pack.size}")
        return pack

    def _entries(
        self,
        table: Mapping[str, Any],
        key: str,
        known: Fields,
        make: Callable[..., Content],
    ) -> dict[str, Content]:
        given = table.get(key, [])
        if not isinstance(given, list) or not all(isinstance(one, dict) for one in given):
            raise self._wrong("", key, f"write each entry as [[{key}]]")
        found: dict[str, Content] = {}
        for number, entry in enumerate(given, 1):
            entry_id = entry.get("id")
            place = f"{key}, entry {number}"
            if not isinstance(entry_id, str) or not _ENTRY.fullmatch(entry_id):
                raise self._wrong(
                    place,
                    "id",
                    "needs an id of at most 56 letters, digits, '.', '_' and '-', starting with a "
                    "letter or digit",
                )
            place = f"{place} ({entry_id})"
            if entry_id in found:
                raise self._wrong(place, "id", "another entry has this id")
            found[entry_id] = self._content(place, entry, known, make)
        return found

    def _content(
        self, place: str, entry: Mapping[str, Any], known: Fields, make: Callable[..., Content]
    ) -> Content:
        values: dict[str, Any] = {}
        for name, value in entry.items():
            if name == "id":
                continue
            if name not in known.readers:
                names = ", ".join(sorted(known.readers))
                raise self._wrong(place, name, f"no such field; known fields: {names}")
            try:
                values[name] = known.readers[name](value)
            except WrongValueError as error:
                raise self._wrong(place, name, str(error)) from None
        for name in known.required:
            if not values.get(name):
                raise self._wrong(place, name, "is required")
        content = make(**values)
        if isinstance(content, PatternContent | ErrorSolutionContent):
            self._check(place, content)
        return content

    def _check(self, place: str, content: PatternContent | ErrorSolutionContent) -> None:
        try:
            content.check()
        except RequestInvalidError as error:
            first = error.violations[0]
            name = first.field.partition(".")[2] or "resolution"
            raise self._wrong(place, name, first.description) from None

    def _wrong(self, entry: str, field: str, problem: str) -> KnowledgePackInvalidError:
        return KnowledgePackInvalidError(self._file, entry, field, problem)
