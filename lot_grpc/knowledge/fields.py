"""The fields of an entry of a pack, with the limits that the contract sets for callers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, TypeAlias

from lot_grpc.domain.complexity import Complexity
from lot_grpc.domain.label_keys import LABEL_KEY, is_label_key
from lot_grpc.domain.languages import language_name
from lot_grpc.domain.memory import MemoryKind
from lot_grpc.domain.pattern import Action, CodeKind, PatternKind, PatternType
from lot_grpc.domain.text_form import normal_form

Reader: TypeAlias = Callable[[Any], Any]
_MAX_LABELS = 60
"""Fewer than a caller may give: seeding adds its own."""


class WrongValueError(Exception):
    """What is wrong with a value, as a phrase to follow its name."""


@dataclass(frozen=True, slots=True)
class Fields:
    """Readers by name, and the required fields."""

    readers: Mapping[str, Reader]
    required: tuple[str, ...]


def text(most: int) -> Reader:
    """Text of at most this many bytes. Outer line breaks are removed: TOML blocks end with one."""

    def read(value: Any) -> str:
        if not isinstance(value, str):
            raise WrongValueError(f"should be text, is {_kind(value)}")
        if "\0" in value:
            raise WrongValueError("should have no NUL character")
        given: str = value.strip("\n")
        if (size := len(given.encode())) > most:
            raise WrongValueError(f"should have at most {most:,} bytes, has {size:,}")
        return given

    return read


def texts(count: int, most: int, *, unique: bool = False) -> Reader:
    """A list of texts, none of them empty."""
    read_one = text(most)

    def read(value: Any) -> tuple[str, ...]:
        if not isinstance(value, list):
            raise WrongValueError(f"should be a list of texts, is {_kind(value)}")
        if len(value) > count:
            raise WrongValueError(f"should have at most {count:,} items, has {len(value):,}")
        found = tuple(read_one(one) for one in value)
        if not all(found):
            raise WrongValueError("has an empty item")
        if unique and len(set(found)) != len(found):
            raise WrongValueError("has a duplicate item")
        return found

    return read


def one_of(cls: type[StrEnum]) -> Reader:
    """One of the values of an enumeration."""

    def read(value: Any) -> StrEnum:
        known = [one.value for one in cls]
        if value not in known:
            raise WrongValueError(f"should be one of {', '.join(known)}, is {value!r}")
        return cls(value)

    return read


def share(value: Any) -> float:
    """A number from 0 to 1."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or not 0 <= value <= 1:
        raise WrongValueError(f"should be a number from 0 to 1, is {value!r}")
    return float(value)


def yes_or_no(value: Any) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise WrongValueError(f"should be true or false, is {_kind(value)}")
    return value


def language(value: Any) -> str:
    """The canonical name of a language."""
    return language_name(text(64)(value))


def labels(value: Any) -> dict[str, str]:
    """Keys and values to filter by."""
    if not isinstance(value, dict):
        raise WrongValueError(f"should be a table, is {_kind(value)}")
    if len(value) > _MAX_LABELS:
        raise WrongValueError(f"should have at most {_MAX_LABELS} labels, has {len(value)}")
    read_one = text(256)
    for key in value:
        if not is_label_key(key):
            raise WrongValueError(f"key {key!r} should be {LABEL_KEY}")
    if len({normal_form(key) for key in value}) < len(value):
        raise WrongValueError("should not have the same key in two Unicode forms")
    return {key: read_one(one) for key, one in value.items()}


def actions(value: Any) -> tuple[Action, ...]:
    """Steps of a pattern: ``tool`` and ``note``."""
    if not isinstance(value, list) or len(value) > 1000:
        raise WrongValueError("should be a list of at most 1,000 actions")
    found = []
    for one in value:
        if not isinstance(one, dict) or not set(one) <= {"tool", "note"} or not one.get("tool"):
            raise WrongValueError("each action should be a table with a tool and an optional note")
        found.append(Action(text(1024)(one["tool"]), note=text(16_384)(one.get("note", ""))))
    return tuple(found)


def _kind(value: Any) -> str:
    names = {str: "text", bool: "true or false", list: "a list", dict: "a table"}
    return names.get(type(value), "a number" if isinstance(value, int | float) else "a time")


_LONG: Final = text(65_536)
_TAGS: Final = texts(100, 256, unique=True)
_HINTS: Final = texts(100, 1024)
_COMMON: Final[dict[str, Reader]] = {
    "language": language,
    "tags": _TAGS,
    "labels": labels,
    "pinned": yes_or_no,
}

PATTERN: Final = Fields(
    {
        **_COMMON,
        "task": _LONG,
        "kind": one_of(PatternKind),
        "code_kind": one_of(CodeKind),
        "pattern_type": one_of(PatternType),
        "title": text(1024),
        "context": _LONG,
        "actions": actions,
        "code": text(262_144),
        "category": text(256),
        "task_type": text(256),
        "complexity": one_of(Complexity),
        "approach": text(1024),
        "success_indicators": _HINTS,
        "failure_indicators": _HINTS,
        "recommended_context": _LONG,
        "success_factors": _HINTS,
        "tools": texts(100, 256, unique=True),
        "confidence": share,
    },
    ("task",),
)
MEMORY: Final = Fields(
    {
        **_COMMON,
        "content": text(1_048_576),
        "kind": one_of(MemoryKind),
        "title": text(1024),
        "importance": share,
        "source_uri": text(4096),
    },
    ("content",),
)
ERROR_SOLUTION: Final = Fields(
    {
        **_COMMON,
        "error_message": _LONG,
        "error_type": text(1024),
        "context": _LONG,
        "resolution": _LONG,
        "steps": texts(1000, 16_384),
        "categories": _TAGS,
        "worked": yes_or_no,
    },
    ("error_message",),
)
