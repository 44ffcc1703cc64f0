"""Preferences of a user or a team, by key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lot_grpc.domain.ids import content_hash, etag_of
from lot_grpc.domain.text_form import folded

LEARNED = "learned"
"""Category of what feedback taught."""

GENERAL = "general"
"""Category of a new preference that names none."""

HISTORY = 100
"""How many former values are kept, the latest."""


@dataclass(frozen=True, slots=True)
class Preference:
    """A stored preference. ``value`` is any JSON value; times in microseconds since 1970.

    ``revision`` counts the values it has had; the first is 1.
    """

    namespace: str
    key: str
    value: Any
    category: str
    revision: int
    create_time: int
    update_time: int

    @property
    def etag(self) -> str:
        """Changes with every value."""
        return etag_of(self.namespace, self.key, self.create_time, self.update_time, self.revision)


@dataclass(frozen=True, slots=True)
class PreferenceRevision:
    """A former value of a preference, and when it was set (microseconds since 1970)."""

    revision: int
    value: Any
    category: str
    update_time: int


def learned_key(task: str, text: str) -> str:
    """The key of a preference learned from feedback, made from its task and text.

    Letter case and spacing make no difference, so the same said again of a task takes its place.
    """
    return f"{LEARNED}.{content_hash([folded(task), folded(text)])[:20]}"


def task_hash(task: str) -> str:
    """By which what was learned of a task is found; letter case and spacing make no difference."""
    return content_hash(folded(task))
