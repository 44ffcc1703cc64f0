"""Selects distinct episodes: of runs of one task that went the same way, one is enough."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from lot_grpc.domain.episode import Episode
from lot_grpc.domain.text_form import folded, normal_form

T = TypeVar("T")


def _course(episode: Episode) -> tuple[str, ...]:
    """The same for runs of one task, as it is worded, that went the same way."""
    error = episode.end.error if episode.end else None
    return (
        folded(episode.start.task),
        episode.status,
        normal_form(episode.approach),
        error.type if error else "",
    )


def distinguish(found: Sequence[tuple[T, Episode]], limit: int) -> list[T]:
    """The best ``limit``, of each course of a task the first; others fill up what is left."""
    firsts: list[T] = []
    others: list[T] = []
    seen: set[tuple[str, ...]] = set()
    for one, episode in found:
        course = _course(episode)
        (others if course in seen else firsts).append(one)
        seen.add(course)
    return [*firsts, *others][:limit]
