"""Selects distinct episodes: of runs of one task with the same course, one is enough."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from lot_grpc.domain.episode import Episode
from lot_grpc.domain.text_form import folded, normal_form

T = TypeVar("T")


def _course(episode: Episode) -> tuple[str, ...]:
    """A key that is equal for runs of the same task, as worded, with the same course."""
    error = episode.end.error if episode.end else None
    return (
        folded(episode.start.task),
        episode.status,
        normal_form(episode.approach),
        error.type if error else "",
    )


def distinguish(found: Sequence[tuple[T, Episode]], limit: int) -> list[T]:
    """The best ``limit``: the first of each course of a task, then others to fill the rest."""
    firsts: list[T] = []
    others: list[T] = []
    seen: set[tuple[str, ...]] = set()
    for one, episode in found:
        course = _course(episode)
        (others if course in seen else firsts).append(one)
        seen.add(course)
    return [*firsts, *others][:limit]
