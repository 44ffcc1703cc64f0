"""The state of a stream of events: their sequence, and what is stored. No I/O."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import cast

from lot_client.contract import check_event
from lot_client.fields import EventFields, EventLike, Events, TakeoverPolicyLike
from lot_client.messages import build
from lot_client.pb.lot.v1.episode_pb2 import EpisodeEvent
from lot_client.pb.lot.v1.episode_service_pb2 import (
    TAKEOVER_POLICY_REFUSE,
    RecordEventsRequest,
    RecordEventsResponse,
)

MAX_EVENTS = 1000
"""Of one message, by the contract."""
MAX_BYTES = 2**20
"""Of the events of one message, well below what a server takes."""


class Window:
    """Events of one episode on their way to the server.

    What is not acknowledged is sent again after a cut, under its old numbers: the server keeps
    what it has already, and refuses what another writer put something else in the place of.
    """

    def __init__(
        self, namespace: str, episode_id: str, takeover_policy: TakeoverPolicyLike
    ) -> None:
        self._first_request = make_opening(namespace, episode_id, takeover_policy)
        self._waiting: deque[RecordEventsRequest] = deque()
        self._numbered = 0
        self.was_open = False
        self.last_sequence = 0

    def first_request(self, *, refuse: bool) -> RecordEventsRequest:
        """The first message of a stream; with ``refuse`` one that replaces no other writer."""
        return refusing(self._first_request) if refuse else self._first_request

    def opened(self, answer: RecordEventsResponse) -> None:
        """The stream is open. The first time, the sequence continues after what is stored."""
        if not self.was_open:
            self.was_open = True
            self._numbered = self.last_sequence = answer.last_sequence

    def add(self, events: Events) -> None:
        """Number events and queue them.

        Raises:
            TypeError, ValueError: one breaks the contract; then none is queued.
        """
        made = as_events(events)
        for event in made:
            check_event(event)  # the server would refuse it each time it is sent again
        for number, event in enumerate(made, self._numbered + 1):
            event.sequence = number
        self._numbered += len(made)
        self._waiting.extend(RecordEventsRequest(events=part) for part in _parts(made))

    def next(self) -> RecordEventsRequest | None:
        """The first message that is not acknowledged."""
        return self._waiting[0] if self._waiting else None

    def acknowledged(self, answer: RecordEventsResponse) -> None:
        """The server stored that message."""
        self._waiting.popleft()
        self.last_sequence = answer.last_sequence

    def unacknowledged(self) -> list[EpisodeEvent]:
        """Events that may not be stored."""
        return [event for message in self._waiting for event in message.events]


def make_opening(
    namespace: str, episode_id: str, takeover_policy: TakeoverPolicyLike
) -> RecordEventsRequest:
    """The first message of a stream."""
    fields = {"namespace": namespace, "episode_id": episode_id, "takeover_policy": takeover_policy}
    return build(RecordEventsRequest, fields)


def refusing(first_request: RecordEventsRequest) -> RecordEventsRequest:
    """The same, but replacing no other writer."""
    message = RecordEventsRequest()
    message.CopyFrom(first_request)
    message.takeover_policy = TAKEOVER_POLICY_REFUSE
    return message


def as_events(events: Events) -> list[EpisodeEvent]:
    """Events as messages of their own, with the time of now where they have none."""
    if isinstance(events, EpisodeEvent):
        return [as_event(events)]
    if isinstance(events, Mapping):
        return [as_event(cast("EventFields", events))]
    return [as_event(event) for event in events]


def as_event(event: EventLike) -> EpisodeEvent:
    """One event likewise."""
    made = EpisodeEvent()
    made.CopyFrom(event if isinstance(event, EpisodeEvent) else build(EpisodeEvent, event))
    if not made.HasField("event_time"):
        made.event_time.FromDatetime(datetime.now(UTC))
    return made


def _parts(events: Iterable[EpisodeEvent]) -> Iterator[list[EpisodeEvent]]:
    """Events in portions of one message each."""
    part: list[EpisodeEvent] = []
    size = 0
    for event in events:
        more = event.ByteSize()
        if part and (len(part) == MAX_EVENTS or size + more > MAX_BYTES):
            yield part
            part, size = [], 0
        part.append(event)
        size += more
    if part:
        yield part
