"""How a recorder behaves, and its counts."""

from __future__ import annotations

from dataclasses import dataclass, fields
from os import PathLike
from typing import Any, Literal, TypeAlias

from lot_client.errors import LotError
from lot_client.recorder_fields import WhenFull
from lot_client.window import MAX_BYTES, MAX_EVENTS

RecorderState: TypeAlias = Literal["NEW", "CONNECTING", "RECORDING", "FAILED", "CLOSED"]


@dataclass(frozen=True, slots=True)
class RecorderPolicy:
    """How a recorder batches, waits and bounds its memory. Times are in seconds.

    Attributes:
        max_batch_events: a batch of this many events is sent at once; at most 1,000.
        max_batch_bytes: size of the events of one message; a larger event is sent alone.
        max_delay: how long an event waits for its batch to fill.
        max_in_flight: messages that are sent ahead of their acknowledgement.
        heartbeat: how long the stream may be idle before an empty message keeps it open.
        when_full: what `record` does when the buffer is full. BLOCK waits for space. DROP discards
            the new event, which leaves no gap in the sequence, and records how many were dropped
            in an event "recorder.dropped" as soon as there is space. SPILL also writes every
            event to a file, so that none is lost if this process dies; it waits only when the
            file is full.
        max_buffer_events: unacknowledged events in memory.
        max_buffer_bytes: their serialized size. One event always fits.
        block_timeout: how long `record` waits for space; None means for ever, 0 not at all.
        spill_path: path of the file; required with SPILL, and only allowed there.
        max_spill_bytes: maximum size of the file.
        reconnect_for: how long the recorder tries to reach an unreachable server before it fails;
            None means for as long as it is open.
        exit_timeout: how long leaving the block may take, with all retries. The default outlasts
            a server restart, and the 30 s for which a dead server still holds the episode where
            several servers share a store.
        atexit_timeout: how long the end of the interpreter waits for an open recorder.
    """

    max_batch_events: int = 100
    max_batch_bytes: int = MAX_BYTES
    max_delay: float = 0.2
    max_in_flight: int = 8
    heartbeat: float = 60.0
    when_full: WhenFull = "BLOCK"
    max_buffer_events: int = 10_000
    max_buffer_bytes: int = 64 * 2**20
    block_timeout: float | None = None
    spill_path: str | PathLike[str] | None = None
    max_spill_bytes: int = 256 * 2**20
    reconnect_for: float | None = None
    exit_timeout: float = 60.0
    atexit_timeout: float = 5.0

    def __post_init__(self) -> None:
        """Reject invalid values.

        Raises:
            ValueError: names the value.
        """
        if self.when_full not in {"BLOCK", "DROP", "SPILL"}:
            raise ValueError(f"when_full must be BLOCK, DROP or SPILL, not {self.when_full!r}")
        if (self.when_full == "SPILL") != (self.spill_path is not None):
            raise ValueError("spill_path and when_full='SPILL' require each other")
        if not 1 <= self.max_batch_events <= MAX_EVENTS:
            raise ValueError(f"max_batch_events must be 1 to {MAX_EVENTS:,}")
        for name in ("max_batch_bytes", "max_in_flight", "max_buffer_events", "max_buffer_bytes"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1")
        if self.heartbeat <= 0 or self.max_delay < 0:
            raise ValueError("heartbeat must be more than 0 and max_delay at least 0")


def take_policy(arguments: dict[str, Any]) -> RecorderPolicy:
    """The policy among keyword arguments, which lose what belongs to it."""
    names = [each.name for each in fields(RecorderPolicy)]
    return RecorderPolicy(**{name: arguments.pop(name) for name in names if name in arguments})


@dataclass(frozen=True, slots=True)
class RecorderStats:
    """Counts of a recorder. ``recorded = acknowledged + buffered + spilled`` at any time.

    Attributes:
        recorded: events with a sequence, including markers of dropped events and events that an
            earlier process left in the spill file.
        acknowledged: of these, stored by the server, where they survive a crash.
        buffered: of these, in memory.
        buffered_bytes: their size.
        spilled: of these, only in the file, since memory is full.
        dropped: events that were discarded.
        reconnects: streams opened after the first.
        torn_bytes: cut off the end of the spill file, where an earlier process died while writing.
        shortened: events whose texts were shortened to fit.
        last_error: what ended the last stream, for example STORAGE_FULL; None if nothing did, or
            if the server has accepted events since.
    """

    recorded: int = 0
    acknowledged: int = 0
    buffered: int = 0
    buffered_bytes: int = 0
    spilled: int = 0
    dropped: int = 0
    reconnects: int = 0
    torn_bytes: int = 0
    shortened: int = 0
    last_error: LotError | None = None
