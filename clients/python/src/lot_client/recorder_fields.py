"""Keyword arguments of a recorder."""

from __future__ import annotations

from os import PathLike
from typing import Literal, TypeAlias

from lot_client.fields import EpisodeFields

WhenFull: TypeAlias = Literal["BLOCK", "DROP", "SPILL"]


class RecorderFields(EpisodeFields, total=False):
    """Fields of an episode when it starts, and how a recorder behaves (`RecorderPolicy`)."""

    max_batch_events: int
    max_batch_bytes: int
    max_delay: float
    max_in_flight: int
    heartbeat: float
    when_full: WhenFull
    max_buffer_events: int
    max_buffer_bytes: int
    block_timeout: float | None
    spill_path: str | PathLike[str] | None
    max_spill_bytes: int
    reconnect_for: float | None
    exit_timeout: float
    atexit_timeout: float
