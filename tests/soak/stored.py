"""What a server has, in plain data."""

from __future__ import annotations

from dataclasses import dataclass, field

ENDED = ("SUCCEEDED", "FAILED")


@dataclass
class StoredPattern:
    """A pattern as the server has it. ``log`` has (note, outcome) of each entry of its log."""

    task: str
    usage: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    version: int = 0
    log: list[tuple[str, str]] = field(default_factory=list)


@dataclass
class StoredEpisode:
    """An episode as the server has it. ``events`` has (sequence, digest) of each, as listed."""

    task: str
    status: str
    event_count: int
    events: list[tuple[int, str]] = field(default_factory=list)


@dataclass
class Stored:
    """All that the server has, by id."""

    patterns: dict[str, StoredPattern] = field(default_factory=dict)
    episodes: dict[str, StoredEpisode] = field(default_factory=dict)
    memories: dict[str, str] = field(default_factory=dict)
