"""Warnings: why similar tasks failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lot_grpc.domain.context.markdown import day, inline
from lot_grpc.domain.counting import counted
from lot_grpc.domain.episode import Episode
from lot_grpc.domain.error_text.headline import headline_of
from lot_grpc.domain.extraction.digest import ErrorSeen, error_seen
from lot_grpc.domain.failures.failure import UNKNOWN, error_of, signature_or_none

_ERROR_CHARACTERS = 300
_READ_CHARACTERS = 16_384
"""Characters read of each end of an error's message: its headline is at one of them."""


@dataclass(frozen=True, slots=True)
class TaskWarning:
    """Failures of one kind. ``error`` is one line; "" if none has an error.

    ``episode_ids``: those of the most similar tasks first. ``last_time`` in microseconds.
    """

    error: str
    error_type: str
    episode_ids: tuple[str, ...]
    last_time: int

    @property
    def count(self) -> int:
        """The number of failures."""
        return len(self.episode_ids)

    @property
    def message(self) -> str:
        """The warning as a sentence."""
        description = f": {self.error}" if self.error else " for an unknown reason"
        failed = counted(self.count, "similar task")
        return f"{failed} failed, last on {day(self.last_time)}{description}"


def warnings_of(failures: Sequence[Episode], limit: int) -> tuple[TaskWarning, ...]:
    """Group failed episodes, the most similar first, by the signature of their error.

    The most frequent group comes first, of equals that of the most similar task.
    """
    groups: dict[str, list[tuple[Episode, ErrorSeen]]] = {}
    for episode in failures:
        error = _error(episode)
        groups.setdefault(signature_or_none(error), []).append((episode, error))
    warned = [_warning(group) for group in groups.values()]
    return tuple(sorted(warned, key=lambda one: -one.count)[:limit])


def _error(episode: Episode) -> ErrorSeen:
    """The error in its end; its events are not read."""
    end = episode.end
    if end is None:
        return UNKNOWN
    ended_by = error_seen(end.error.type, _both_ends(end.error.message)) if end.error else None
    return error_of(ended_by, (), [_both_ends(one) for one in end.error_patterns])


def _both_ends(message: str) -> str:
    half = _READ_CHARACTERS // 2
    return message if len(message) <= 2 * half else f"{message[:half]}\n{message[-half:]}"


def _warning(group: Sequence[tuple[Episode, ErrorSeen]]) -> TaskWarning:
    episode, error = group[0]
    headline = headline_of(error.message)
    kind = error.type or headline.type
    reason = headline.text or headline.type
    description = f"{kind}: {reason}" if kind and reason != kind else reason or kind
    if not description and episode.end is not None:
        description = episode.end.summary
    return TaskWarning(
        inline(description, _ERROR_CHARACTERS),
        kind,
        tuple(one.episode_id for one, _ in group),
        max(one.end_time or one.start_time for one, _ in group),
    )
