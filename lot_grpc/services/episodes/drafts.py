"""Drafts of episodes to start or record, and the results."""

from __future__ import annotations

from dataclasses import dataclass

from lot_grpc.domain.episode import Episode, EpisodeEnd, EpisodeEvent, EpisodeStart
from lot_grpc.domain.request_hash import request_hash
from lot_grpc.services.records.episodes import end_hash, event_hash, start_hash


@dataclass(frozen=True, slots=True)
class EpisodeDraft:
    """An episode to start or, with ``end``, to record as a whole."""

    start: EpisodeStart
    episode_id: str = ""
    request_id: str = ""
    end: EpisodeEnd | None = None
    events: tuple[EpisodeEvent, ...] = ()
    extract: bool = False
    """Whether to extract patterns from it; stored with its end (``episode_extraction``)."""

    def hash(self) -> str:
        """A hash that is equal for equal requests."""
        return request_hash(
            self,
            start=start_hash(self.start),
            end=end_hash(self.end) if self.end else None,
            events=[event_hash(event) for event in self.events] or None,
        )


@dataclass(frozen=True, slots=True)
class Started:
    """A started or recorded episode. Flags: the model did not read all of the text or summary."""

    episode: Episode
    created: bool
    truncated: bool = False
    summary_truncated: bool = False


@dataclass(frozen=True, slots=True)
class Ended:
    """An ended episode. ``summary_truncated``: the model did not read all of its summary."""

    episode: Episode
    summary_truncated: bool = False
