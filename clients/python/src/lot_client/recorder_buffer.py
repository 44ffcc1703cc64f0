"""The events of a recorder that wait to be sent, in order and within bounds. No network.

Events get their sequence here, when they enter. A dropped event has none, so it leaves no gap.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from lot_client.messages import build
from lot_client.pb.lot.v1.episode_pb2 import EpisodeEvent
from lot_client.recorder_policy import RecorderPolicy
from lot_client.recorder_spill import Spill

DROPPED = "recorder.dropped"
"""Type of the event that says how many were dropped in its place."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """An event with its size, since when it waits, and the spill position behind it."""

    event: EpisodeEvent
    size: int
    since: float
    position: int


class Buffer:
    """Events that are not yet in a message. Times are in seconds of any steady clock.

    Attributes:
        numbered: the last number given.
        entered: how many were taken in, with what an earlier process left in the file.
        bytes_waiting: size of what waits in memory.
        spilled: events that wait in the file only.
        dropped: events dropped so far.
    """

    def __init__(self, policy: RecorderPolicy, spill: Spill | None) -> None:
        self._policy = policy
        self._spill = spill
        self._waiting: deque[Waiting] = deque()
        self._unread = spill.start if spill else 0
        self._missed = 0
        self._missed_since = datetime.min.replace(tzinfo=UTC)
        self.numbered = 0
        self.entered = spill.count if spill else 0
        self.bytes_waiting = 0
        self.spilled = self.entered
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def oldest(self) -> Waiting | None:
        """The event that is next."""
        return self._waiting[0] if self._waiting else None

    def all_waiting(self) -> Iterator[Waiting]:
        """What waits in memory, in order."""
        return iter(self._waiting)

    @property
    def empty(self) -> bool:
        """Nothing waits, not in the file, and no marker of drops either."""
        return not self._waiting and not self.spilled and not self._missed

    def offer(self, event: EpisodeEvent, now: float, events: int, size: int) -> bool:
        """Take an event, besides the ``events`` in flight with a total ``size``.

        False: there is no space. A dropped event counts as taken.

        Raises:
            OSError: the spill file does not take it.
        """
        event.sequence = self.numbered + 1
        mine = event.ByteSize()
        fits = self._fits(mine, events, size)
        if self._spill is not None:
            position = self._spill.append(event.SerializeToString())
            if position is None:
                return False
            self._number(event)
            if fits and not self.spilled:
                self._keep(Waiting(event, mine, now, position))
                self._unread = position
            else:
                self.spilled += 1
            return True
        if not fits:
            if self._policy.when_full == "DROP":
                self._miss()
                return True
            return False
        if self._missed:
            self._mark(now)
        self._number(event)
        self._keep(Waiting(event, mine, now, 0))
        return True

    def refill(self, now: float, events: int, size: int) -> None:
        """There may be space again: read from the file, or mark drops."""
        if self._missed and self._fits(0, events, size):
            self._mark(now)
        while self._spill is not None and self.spilled:
            data, position = self._spill.read(self._unread)
            if not self._fits(len(data), events, size):
                return
            self._keep(Waiting(EpisodeEvent.FromString(data), len(data), now, position))
            self._unread = position
            self.spilled -= 1

    def take(self) -> list[Waiting]:
        """The events of the next message."""
        taken: list[Waiting] = []
        size = 0
        while self._waiting and len(taken) < self._policy.max_batch_events:
            size += self._waiting[0].size
            if taken and size > self._policy.max_batch_bytes:
                break
            taken.append(self._waiting.popleft())
            self.bytes_waiting -= taken[-1].size
        return taken

    def _fits(self, mine: int, events: int, size: int) -> bool:
        count = len(self._waiting) + events
        return not count or (
            count < self._policy.max_buffer_events
            and self.bytes_waiting + size + mine <= self._policy.max_buffer_bytes
        )

    def _number(self, event: EpisodeEvent) -> None:
        self.numbered += 1
        self.entered += 1
        event.sequence = self.numbered

    def _keep(self, waiting: Waiting) -> None:
        self._waiting.append(waiting)
        self.bytes_waiting += waiting.size

    def _miss(self) -> None:
        if not self._missed:
            self._missed_since = datetime.now(UTC)
        self._missed += 1
        self.dropped += 1

    def _mark(self, now: float) -> None:
        """Put the marker where the dropped events would be, even if the buffer is full."""
        data = {"count": self._missed, "since": self._missed_since.isoformat()}
        fields = {"event_type": DROPPED, "data": data, "event_time": datetime.now(UTC)}
        event = build(EpisodeEvent, fields)
        self._number(event)
        self._keep(Waiting(event, event.ByteSize(), now, 0))
        self._missed = 0
