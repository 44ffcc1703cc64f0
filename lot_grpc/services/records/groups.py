"""Groups of patterns: the keys that make a DISTILLED pattern the head of one.

The members of a group are those that its head names in ``source_pattern_ids``, and those that name
the head in ``parent_pattern_id``; the second is written after the first, or else by the next run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from lot_grpc.domain.distillation import GENERALISED_FIELDS, field_value
from lot_grpc.domain.ids import content_hash
from lot_grpc.domain.outcomes import OutcomeStats
from lot_grpc.domain.pattern import PatternContent
from lot_grpc.ports import Payload, Record
from lot_grpc.services.records.collections import SORT_KEY
from lot_grpc.services.records.counters import (
    STATS_REVISION,
    outcomes_from_payload,
    outcomes_payload,
)

LEVEL: Final = "group_level"
"""1 for a group of patterns, 2 for a group of groups. Only heads have it."""
KEY: Final = "group_key"
"""Kind, type and language of its members."""
MADE: Final = "group_made"
"""Hashes of the fields as generated: a field that a caller has edited since is not regenerated."""
INHERITED: Final = "inherited"
"""The counters that it started with; the rest are its own outcomes."""
PARENT: Final = "parent_pattern_id"

_ID = re.compile(r"d[12]-[0-9a-f]{24}")

_COUNTS = ("success_count", "failure_count", "partial_count", "duration_count")
_SEEN_KEYS = (
    "success_rate", *_COUNTS, "duration_total", "last_used_time", "pattern_id", "kind",
    "pattern_type", "language", PARENT, STATS_REVISION, LEVEL, SORT_KEY,
)  # fmt: skip
SEEN_KEYS: Final[tuple[str, ...]] = _SEEN_KEYS


@dataclass(frozen=True, slots=True)
class Seen:
    """A pattern without its content."""

    point: str
    pattern_id: str
    key: str
    parent: str
    outcomes: OutcomeStats
    stats_revision: int
    sort_key: int

    @property
    def age(self) -> tuple[int, str]:
        """Orders the oldest first."""
        return self.sort_key, self.pattern_id


def seen(record: Record) -> Seen:
    """Decode a record that has at least ``SEEN_KEYS``."""
    payload = record.payload
    return Seen(
        record.id,
        payload["pattern_id"],
        group_key(payload),
        payload.get(PARENT, ""),
        outcomes_from_payload(payload),
        payload[STATS_REVISION],
        payload[SORT_KEY],
    )


def group_key(payload: Mapping[str, Any]) -> str:
    """Only patterns with the same key are grouped."""
    return "/".join((payload["kind"], payload["pattern_type"], payload.get("language", "")))


def head_id(level: int, anchor: str) -> str:
    """The id of a new group's head.

    It is derived from the oldest member, so that a run after one that died, or a concurrent run of
    another process, gets the same id.
    """
    return f"d{level}-{content_hash([level, anchor])[:24]}"


def is_head_id(pattern_id: str) -> bool:
    """Whether an id has the form of those from ``head_id``."""
    return _ID.fullmatch(pattern_id) is not None


def head_keys(level: int, key: str, made: PatternContent, inherited: OutcomeStats) -> Payload:
    """The keys of a head in addition to those of every pattern."""
    counters = outcomes_payload(inherited)
    return {
        LEVEL: level,
        KEY: key,
        MADE: made_hashes(made),
        INHERITED: {name: counters[name] for name in _COUNTS},
    }


def made_hashes(content: PatternContent) -> dict[str, str]:
    """The hash of each field that a group gives its head."""
    return {name: content_hash(field_value(content, name)) for name in GENERALISED_FIELDS}


def untouched(stored: PatternContent, made: Mapping[str, str]) -> Sequence[str]:
    """The fields that are still as generated."""
    now = made_hashes(stored)
    return [name for name in GENERALISED_FIELDS if now[name] == made.get(name)]
