"""Settings of the change feed."""

from __future__ import annotations

from dataclasses import dataclass

from lot_grpc.domain.change import DEFAULT_KEEP_SECONDS, DEFAULT_POLL_SECONDS


@dataclass(frozen=True, slots=True)
class ChangeFeed:
    """Durations of the change feed, in seconds.

    ``keep``: how long a cursor is good. ``interval``: after which this process publishes how far it
    has come, and looks for what others wrote.
    """

    keep: float = DEFAULT_KEEP_SECONDS
    interval: float = DEFAULT_POLL_SECONDS
