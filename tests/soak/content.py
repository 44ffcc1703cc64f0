"""What is recorded: it follows from names and numbers, so that anybody knows what must be there."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

HOT = tuple(f"hot-{number}" for number in range(6))
"""Patterns that all outcomes are of."""

_EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
_WORDS = [
    "read",
    "write",
    "search",
    "compile",
    "test",
    "deploy",
    "branch",
    "merge",
    "lint",
    "format",
    "cache",
    "query",
    "parse",
]


def task(name: str) -> str:
    """A task of its own for each name, in words that recall can find."""
    dice = random.Random(name)
    return f"{' '.join(dice.sample(_WORDS, 5))} for {name}"


def event(episode: str, number: int) -> dict[str, Any]:
    """Event ``number`` of an episode, without its sequence: 0.1 to 4 KB."""
    dice = random.Random(f"{episode}/{number}")
    text = " ".join(dice.choices(_WORDS, k=dice.choice((4, 4, 4, 20, 20, 600))))
    return {
        "event_type": dice.choice(("tool_call", "result", "thought")),
        "data": {"episode": episode, "n": number, "text": text, "deep": {"list": [number, None]}},
        "event_time": _EPOCH + timedelta(milliseconds=number),
    }


def digest(event_type: str, data: Mapping[str, Any], event_time: datetime) -> str:
    """A short name for an event's content; equal for equal ones."""
    numbers = json.loads(json.dumps([event_type, data, event_time.timestamp()]), parse_int=float)
    plain = json.dumps(numbers, sort_keys=True)  # a Struct knows doubles only
    return hashlib.sha256(plain.encode()).hexdigest()[:16]


def event_digest(episode: str, number: int) -> str:
    """That of what `event` makes."""
    return digest(**event(episode, number))
