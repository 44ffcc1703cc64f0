"""A write's mark, stored in the record itself.

Qdrant reports that a conditional write was carried out, but not whether the condition held. So
every write leaves a stamp of its own, and the writer reads the record back. Since others may have
written in between, a stamp carries its predecessors: a write is recognised as long as fewer than
``_REMEMBERED`` others followed it.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

WRITE_KEY = "_write"
PAST_KEY = "_past"
STAMP_KEYS = (WRITE_KEY, PAST_KEY)

_REMEMBERED = 12


@dataclass(frozen=True, slots=True)
class Stamp:
    """The last write of a record and those before it, newest first."""

    write: str
    past: tuple[str, ...] = ()

    @classmethod
    def first(cls) -> Stamp:
        """A stamp for a record written whole."""
        return cls(str(uuid.uuid4()))

    @classmethod
    def of(cls, payload: Mapping[str, Any]) -> Stamp:
        """The stamp a record carries."""
        return cls(payload.get(WRITE_KEY, ""), tuple(payload.get(PAST_KEY) or ()))

    def next(self) -> Stamp:
        """A stamp for the write that follows this one."""
        return Stamp(str(uuid.uuid4()), (self.write, *self.past)[:_REMEMBERED])

    def payload(self) -> dict[str, Any]:
        """The keys to write."""
        return {WRITE_KEY: self.write, PAST_KEY: list(self.past)}

    def includes(self, other: Stamp) -> bool:
        """Whether ``other`` is this write or one remembered before it."""
        return other.write == self.write or other.write in self.past

    @property
    def forgetful(self) -> bool:
        """Whether writes before the remembered ones may have been dropped."""
        return len(self.past) >= _REMEMBERED


def without_stamp(payload: dict[str, Any]) -> dict[str, Any]:
    """Remove the stamp from a payload, in place."""
    for key in STAMP_KEYS:
        payload.pop(key, None)
    return payload
