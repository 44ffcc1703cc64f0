"""Quotas of namespaces: how much one may hold, and what counts.

A record is one of a kind that ``ListNamespaces`` counts. Its bytes are those of its payload, with
the texts in UTF-8; parts of a record that are stored apart have bytes only. Vectors and indexes,
which follow from the texts and the model, have none.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

_NUMBER_BYTES = 8


@dataclass(frozen=True, slots=True)
class Usage:
    """How much is stored, or by how much that changes."""

    records: int = 0
    bytes: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(self.records + other.records, self.bytes + other.bytes)

    def __sub__(self, other: Usage) -> Usage:
        return Usage(self.records - other.records, self.bytes - other.bytes)


@dataclass(frozen=True, slots=True)
class Quota:
    """The most that a namespace may hold; 0 means no limit."""

    records: int = 0
    bytes: int = 0

    def __bool__(self) -> bool:
        return bool(self.records or self.bytes)

    def or_else(self, default: Quota) -> Quota:
        """This one, and where it has no limit that of another."""
        return Quota(self.records or default.records, self.bytes or default.bytes)

    def refused(self, used: Usage, growth: Usage) -> tuple[str, int, int, int] | None:
        """Why a write is refused: the unit, its limit, what is used and what it would add.

        None: it is allowed. Only growth is refused, also of a namespace that holds too much.
        """
        for unit, limit, held, added in (
            ("record", self.records, used.records, growth.records),
            ("byte", self.bytes, used.bytes, growth.bytes),
        ):
            if limit and added > 0 and held + added > limit:
                return unit, limit, held, added
        return None


@dataclass(frozen=True, slots=True)
class NamespaceQuota:
    """How much a namespace holds, and the limits in effect."""

    usage: Usage
    quota: Quota

    @property
    def exceeded(self) -> list[str]:
        """What it holds more of than its quota, with both figures."""
        return [
            f"{held:,} of {limit:,} {unit}"
            for unit, held, limit in (
                ("records", self.usage.records, self.quota.records),
                ("bytes", self.usage.bytes, self.quota.bytes),
            )
            if limit and held > limit
        ]


def payload_bytes(payload: Mapping[str, Any], ignored: Collection[str] = ()) -> int:
    """The size of a payload: keys and texts in UTF-8, 8 for a number, 1 for a truth value.

    The same before it is stored and when it is read, however a store writes numbers. An empty value
    counts as absent, with its key. ``ignored`` keys do not count.
    """
    return sum(
        len(key.encode()) + size
        for key, value in payload.items()
        if key not in ignored and (size := _size(value))
    )


def _size(value: Any) -> int:
    if isinstance(value, str):
        return len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass"))
    if isinstance(value, bool):
        return 1
    if isinstance(value, int | float):
        return _NUMBER_BYTES
    if isinstance(value, Mapping):
        return payload_bytes(value)
    if isinstance(value, list | tuple):
        return sum(map(_size, value))
    return 0
