"""The logic of a recorder: sequence, batches, what is in flight, when to give up. No I/O.

Both recorders drive it: they send its messages over a stream and pass on the answers, one thread
or task at a time.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, replace

import grpc

from lot_client.errors import LotError
from lot_client.pb.lot.v1.episode_pb2 import EpisodeEvent
from lot_client.pb.lot.v1.episode_service_pb2 import RecordEventsRequest, RecordEventsResponse
from lot_client.recorder_buffer import Buffer, Waiting
from lot_client.recorder_policy import RecorderPolicy, RecorderStats
from lot_client.recorder_spill import Spill
from lot_client.retry import RetryPolicy, cut, is_transient, no_answer, of_the_way
from lot_client.window import refusing

OWN_STREAM_SECONDS = 90.0
"""How long our own stream may look alive to the server after a cut: its keepalive takes 80 s."""
ENDED_STREAM_SECONDS = 3.0
"""How long after the server ended our stream itself."""


@dataclass(frozen=True, slots=True)
class _Message:
    request: RecordEventsRequest
    events: tuple[Waiting, ...] = ()

    @property
    def last(self) -> int:
        return self.events[-1].event.sequence if self.events else 0


class RecorderCore:
    """Events of one episode on their way to the server, over one stream after another.

    Attributes:
        acknowledged: the last event that the server stored.
        error: what ended it permanently, else None.
        ready: a stream was open once, so the sequence is known.
        open: a stream is open now.
    """

    def __init__(
        self,
        first_request: RecordEventsRequest,
        policy: RecorderPolicy,
        retry: RetryPolicy,
        deadline: float,
        spill: Spill | None = None,
    ) -> None:
        """``deadline`` is how long the server may take for an answer."""
        self._first_request = first_request
        self._policy = policy
        self._retry = retry
        self._deadline = deadline
        self._spill = spill
        self._buffer = Buffer(policy, spill)
        self._messages: deque[_Message] = deque()
        self._sent = 0  # of these, over this stream
        self._awaiting: deque[float] = deque()  # when what is unanswered was sent
        self._idle_since = 0.0
        self._hurry_to = 0
        self._highest_sent = 0
        self._in_flight_events = self._in_flight_bytes = 0
        self._failures = 0
        self._lost_at = math.inf
        self._own_seconds = OWN_STREAM_SECONDS
        self._stats = RecorderStats(torn_bytes=spill.torn_bytes if spill else 0)
        self._stored = 0
        self.acknowledged = 0
        self.error: LotError | None = None
        self.ready = False
        self.open = False

    # --- events ---------------------------------------------------------------------------------

    def offer(self, event: EpisodeEvent, now: float) -> bool:
        """Take an event; False: it has to wait for space.

        Raises:
            OSError: the spill file does not take it.
        """
        return self._buffer.offer(event, now, self._in_flight_events, self._in_flight_bytes)

    def hurry(self) -> int:
        """Send everything so far without waiting for more; its last sequence."""
        self._hurry_to = self._buffer.numbered
        return self._hurry_to

    @property
    def is_acknowledged(self) -> bool:
        """Everything is acknowledged."""
        return self._buffer.empty and not self._in_flight_events

    @property
    def worth_waking(self) -> bool:
        """The latest event may change when the next message is due."""
        waiting = len(self._buffer)
        return waiting == 1 or self._is_full_batch()

    @property
    def unacknowledged(self) -> list[EpisodeEvent]:
        """Events in memory that may not be stored."""
        sent = [waiting.event for message in self._messages for waiting in message.events]
        return sent + [waiting.event for waiting in self._buffer.all_waiting()]

    @property
    def stats(self) -> RecorderStats:
        """Counts as they are now."""
        buffer = self._buffer
        return replace(
            self._stats,
            recorded=buffer.entered,
            acknowledged=self._stored,
            buffered=len(buffer) + self._in_flight_events,
            buffered_bytes=buffer.bytes_waiting + self._in_flight_bytes,
            spilled=buffer.spilled,
            dropped=buffer.dropped,
        )

    # --- a stream -------------------------------------------------------------------------------

    def start(self, now: float) -> RecordEventsRequest:
        """The first message of another stream.

        After a cut it replaces no other writer: if one took over meanwhile, it keeps the episode,
        and what is left of our own stream disappears by itself.
        """
        self._sent = 0
        self._awaiting = deque([now])
        self._idle_since = now
        return refusing(self._first_request) if self.ready else self._first_request

    def next(self, now: float) -> RecordEventsRequest | None:
        """The next message, if one is due."""
        if not self.open:
            return None
        if self._sent == len(self._messages):
            if self._due_in(now) > 0:
                return None
            self._put(self._buffer.take())
        self._sent += 1
        self._awaiting.append(now)
        self._idle_since = now
        message = self._messages[self._sent - 1]
        self._highest_sent = max(self._highest_sent, message.last)
        return message.request

    def wait(self, now: float) -> float | None:
        """Seconds until something is due even if nothing happens; None if nothing is."""
        due = self._due_in(now) if self.open else math.inf
        if self._awaiting:
            due = min(due, self._awaiting[0] + self._deadline - now)
        return max(0.0, due) if due < math.inf else None

    def is_silent(self, now: float) -> bool:
        """The server has owed an answer for too long."""
        return bool(self._awaiting) and now >= self._awaiting[0] + self._deadline

    def silence(self) -> LotError:
        """An error that says so."""
        return no_answer(self._deadline)

    def answered(self, answer: RecordEventsResponse, now: float) -> None:
        """The server answered the oldest message that it had not.

        Raises:
            LotError: the episode is no longer this recorder's, or less is stored than was sent.
        """
        if self._awaiting:
            self._awaiting.popleft()
        if not self.open:
            self._opened(answer, now)
            return
        if not self._sent:
            return  # more answers than messages: nothing is acknowledged by it
        message = self._messages[0]
        if answer.last_sequence < message.last:
            raise cut(f"only {answer.last_sequence} of {message.last} events are acknowledged")
        self._messages.popleft()
        self._sent -= 1
        self._made_good()
        if not message.events:
            return
        self._in_flight_events -= len(message.events)
        self._in_flight_bytes -= sum(waiting.size for waiting in message.events)
        self.acknowledged = message.last
        self._stored += len(message.events)
        if self._spill is not None:
            self._spill.release(message.events[-1].position)
        self._refill(now)

    def _opened(self, answer: RecordEventsResponse, now: float) -> None:
        last = answer.last_sequence
        if not self.ready:
            self.acknowledged = last
            if self._spill is not None and self._spill.count:
                self.acknowledged = self._spill.first_sequence - 1
                last = max(last, self._spill.last_sequence)
            self._buffer.numbered = self._highest_sent = last
            self.ready = True
        else:
            self._stats = replace(self._stats, reconnects=self._stats.reconnects + 1)
            if last > self._highest_sent:
                raise LotError(
                    grpc.StatusCode.ABORTED,
                    f"another writer added events up to {last} while the connection was lost",
                    "WRITER_REPLACED",
                )
        self.open = True
        self._lost_at = math.inf
        self._refill(now)
        if self.is_acknowledged:
            self._made_good()

    def _made_good(self) -> None:
        """The last failure is overcome: an open stream alone proves that only if no event waits."""
        self._failures = 0
        self._stats = replace(self._stats, last_error=None)

    def lost(self, error: LotError, now: float, *, by_server: bool = False) -> float | None:
        """The stream ended. Seconds to wait before another, or None if there shall be none.

        ``by_server``: the server ended it, though its status was lost.
        """
        if self.open:
            self._own_seconds = ENDED_STREAM_SECONDS if by_server else OWN_STREAM_SECONDS
        self.open = False
        self._awaiting.clear()
        self._sent = 0
        self._messages = deque(each for each in self._messages if each.events)
        self._stats = replace(self._stats, last_error=error)
        if self.error is not None:
            return None
        self._lost_at = min(self._lost_at, now)
        self._failures += 1
        given = self._policy.reconnect_for
        patience = math.inf if given is None else given
        if not self._passes(error, now) or now - self._lost_at >= patience:
            self.error = error
            return None
        return self._retry.delay(self._failures, error)

    def fail(self, error: Exception) -> None:
        """A failure on this side ended it permanently, such as a file that cannot be read."""
        self.error = LotError(grpc.StatusCode.INTERNAL, f"the recorder failed: {error!r}")
        self.error.__cause__ = error

    # --- within ---------------------------------------------------------------------------------

    def _passes(self, error: LotError, now: float) -> bool:
        if error.reason == "EPISODE_STREAM_OPEN":
            return self.ready and now - self._lost_at < self._own_seconds
        passes = error.reason in {"STREAM_IDLE", "STORAGE_FULL"}
        return passes or of_the_way(error) or is_transient(error)

    def _is_full_batch(self) -> bool:
        buffer, policy = self._buffer, self._policy
        return (
            len(buffer) >= policy.max_batch_events or buffer.bytes_waiting >= policy.max_batch_bytes
        )

    def _due_in(self, now: float) -> float:
        """Seconds until the next message that was not sent is due; 0 or less: it is."""
        if self._sent < len(self._messages):
            return 0.0
        oldest = self._buffer.oldest
        if oldest is None:
            idle = not self._messages
            return self._idle_since + self._policy.heartbeat - now if idle else math.inf
        if len(self._messages) >= self._policy.max_in_flight:
            return math.inf
        if self._is_full_batch() or oldest.event.sequence <= self._hurry_to:
            return 0.0
        return oldest.since + self._policy.max_delay - now

    def _put(self, events: list[Waiting]) -> None:
        request = RecordEventsRequest(events=[waiting.event for waiting in events])
        self._messages.append(_Message(request, tuple(events)))
        self._in_flight_events += len(events)
        self._in_flight_bytes += sum(waiting.size for waiting in events)

    def _refill(self, now: float) -> None:
        self._buffer.refill(now, self._in_flight_events, self._in_flight_bytes)
