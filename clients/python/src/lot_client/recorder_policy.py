"""How a recorder behaves, and what it tells of itself."""

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
        max_batch_events: events that are sent as soon as there are so many; at most 1,000.
        max_batch_bytes: of the events of one message; a larger event goes alone.
        max_delay: how long an event waits for others to go with.
        max_in_flight: messages that are sent ahead of their acknowledgement.
        heartbeat: how long the stream may be idle before an empty message keeps it open.
        when_full: what `record` does when the buffer is full. BLOCK waits for room. DROP leaves
            the new event out, without a number, and tells how many by an event
            "recorder.dropped" as soon as there is room. SPILL keeps every event in a file too,
            so that none is lost when this process dies; only when the file is full it waits.
        max_buffer_events: events in memory that are not acknowledged.
        max_buffer_bytes: their size as they are sent. One event always fits.
        block_timeout: how long `record` waits for room at most; None is for ever. 0 never waits.
        spill_path: of the file; with SPILL only, and required there.
        max_spill_bytes: largest size of the file.
        reconnect_for: how long the recorder tries to reach a server that is away, before it fails;
            None is for as long as it is open.
        exit_timeout: how long leaving the block may take, with all tries. It outlasts a server that
            restarts, and the 30 s for which one that died still holds the episode where several
            servers share a store.
        atexit_timeout: how long the end of the interpreter waits for a recorder that is open.
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
        """Refuse what cannot be meant.

        Raises:
            ValueError: says what.
        """
        if self.when_full not in {"BLOCK", "DROP", "SPILL"}:
            raise ValueError(f"when_full is BLOCK, DROP or SPILL, not {self.when_full!r}")
        if (self.when_full == "SPILL") != (self.spill_path is not None):
            raise ValueError("spill_path goes with when_full='SPILL', and that with spill_path")
        if not 1 <= self.max_batch_events <= MAX_EVENTS:
            raise ValueError(f"max_batch_events is 1 to {MAX_EVENTS:,}")
        for name in ("max_batch_bytes", "max_in_flight", "max_buffer_events", "max_buffer_bytes"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1")
        if self.heartbeat <= 0 or self.max_delay < 0:
            raise ValueError("heartbeat must be more than 0, max_delay not less")


def take_policy(arguments: dict[str, Any]) -> RecorderPolicy:
    """The policy among keyword arguments, which lose what belongs to it."""
    names = [each.name for each in fields(RecorderPolicy)]
    return RecorderPolicy(**{name: arguments.pop(name) for name in names if name in arguments})


@dataclass(frozen=True, slots=True)
class RecorderStats:
    """Counts of a recorder. ``recorded = acknowledged + buffered + spilled`` at any time.

    Attributes:
        recorded: events that have a number, markers of drops and what an earlier process left in
            the spill file included.
        acknowledged: of these, stored by the server: they survive its death.
        buffered: of these, in memory.
        buffered_bytes: their size.
        spilled: of these, only in the file, since memory is full.
        dropped: events that were left out.
        reconnects: streams opened beyond the first.
        torn_bytes: cut off the end of the spill file, where an earlier process died writing.
        shortened: events whose texts were shortened to fit.
        last_error: that ended the last stream, for example STORAGE_FULL; None: there was none, or
            the server has taken events since.
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
