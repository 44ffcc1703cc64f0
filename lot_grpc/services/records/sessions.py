"""Session ⇄ records: a row, and a part for each value and message.

Parts name the generation of their session, which is the sort key of its row. A session that was
cleared or lapsed has another generation than the next one of its id, so what is left of the former
one is never met by a reader.
"""

from __future__ import annotations

from base64 import b64encode
from binascii import a2b_base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from lot_grpc.domain.ids import point_id
from lot_grpc.domain.session import Session, SessionMessage
from lot_grpc.ports import EXPIRES_KEY, AnyOf, Condition, Equals, Payload, Record
from lot_grpc.services.records.collections import SORT_KEY

REVISION = "revision"
"""Grows with every write of a session."""

FORMER = "former_generations"
"""Generations of which parts may be left, as they were when the session began; they go with its
first write."""

UNSETTLED = "unsettled_requests"
"""The sequence and time of the message that a request appended, while it may be sent again."""

REQUEST = "request"
"""The request that a message came with, if that had an id."""

GENERATION = "generation"
SEQUENCE = "sequence"
SIZE = "size"
"""Of what a part holds, in bytes: key and value, or texts and metadata."""

PART, VALUE, MESSAGE = "part", "value", "message"
"""What kind of a part it is."""

OVERHEAD = 64
"""Bytes that a part takes at most beyond its size when it is sent."""

Places = Mapping[str, tuple[int, int]]
"""Sequence and time of messages, by the point of their request."""


@dataclass(frozen=True, slots=True)
class SessionRow:
    """The row of a session.

    ``cleared_sequence``: messages up to there were cleared. ``values_put`` and ``bytes_put`` are at
    least as large as its values are many and large: what was put since they were counted.
    """

    namespace: str
    session_id: str
    generation: int
    max_messages: int
    ttl: int
    create_time: int
    update_time: int
    expire_time: int
    revision: int = 1
    last_sequence: int = 0
    cleared_sequence: int = 0
    values_put: int = 0
    bytes_put: int = 0
    unsettled: Places = field(default_factory=dict)
    former: tuple[int, ...] = ()

    @property
    def point(self) -> str:
        """Where it lies."""
        return session_point(self.namespace, self.session_id)

    @property
    def gone_sequence(self) -> int:
        """Messages up to there fell out of the window or were cleared."""
        return max(self.cleared_sequence, self.last_sequence - self.max_messages)

    @property
    def message_count(self) -> int:
        """Messages in the window."""
        return self.last_sequence - self.gone_sequence

    def conditions(self) -> list[Condition]:
        """What must hold for the row to be just this one."""
        return [Equals(REVISION, self.revision), Equals(SORT_KEY, self.generation)]

    def session(self) -> Session:
        """The session, without its values and messages."""
        return Session(
            self.namespace,
            self.session_id,
            self.max_messages,
            self.ttl,
            self.last_sequence,
            self.create_time,
            self.update_time,
            self.expire_time,
        )


def session_point(namespace: str, session_id: str) -> str:
    """Where the row of a session lies."""
    return point_id(namespace, "session", session_id)


def session_record(row: SessionRow) -> Record:
    """The whole row."""
    payload: Payload = {
        "session_id": row.session_id,
        "create_time": row.create_time,
        SORT_KEY: row.generation,
        **written_payload(row),
    }
    return Record(row.point, row.namespace, payload)


def written_payload(row: SessionRow) -> Payload:
    """The keys that each write of a session writes."""
    return {
        REVISION: row.revision,
        "max_messages": row.max_messages,
        "ttl": row.ttl,
        "update_time": row.update_time,
        EXPIRES_KEY: row.expire_time,
        "last_sequence": row.last_sequence,
        "cleared_sequence": row.cleared_sequence,
        "values_put": row.values_put,
        "bytes_put": row.bytes_put,
        UNSETTLED: {point: list(place) for point, place in row.unsettled.items()},
        FORMER: list(row.former),
    }


def session_row(record: Record) -> SessionRow:
    """The row of a record."""
    payload = record.payload
    return SessionRow(
        record.namespace,
        payload["session_id"],
        payload[SORT_KEY],
        payload["max_messages"],
        payload["ttl"],
        payload["create_time"],
        payload["update_time"],
        payload[EXPIRES_KEY],
        payload[REVISION],
        payload["last_sequence"],
        payload["cleared_sequence"],
        payload["values_put"],
        payload["bytes_put"],
        {point: (place[0], place[1]) for point, place in payload[UNSETTLED].items()},
        tuple(payload[FORMER]),
    )


def session_from_record(record: Record) -> Session:
    """The session of a row, without its values and messages."""
    return session_row(record).session()


# --- parts ------------------------------------------------------------------------------------


def parts_of(session_id: str, generations: Iterable[int]) -> list[Condition]:
    """The parts of generations of a session."""
    return [Equals("session_id", session_id), AnyOf(GENERATION, tuple(generations))]


def kind_of(row: SessionRow, kind: str) -> list[Condition]:
    """The values, or the messages, of a session."""
    return [*parts_of(row.session_id, (row.generation,)), Equals(PART, kind)]


def value_point(row: SessionRow, key: str) -> str:
    """Where a value of a session lies."""
    return point_id(row.namespace, "session_value", row.session_id, str(row.generation), key)


def value_record(row: SessionRow, key: str, data: bytes) -> Record:
    """A value, base64 of its bytes."""
    payload: Payload = {
        **_part(row, VALUE, len(key.encode()) + len(data)),
        "key": key,
        "value": b64encode(data).decode(),
    }
    return Record(value_point(row, key), row.namespace, payload)


def value_from_record(record: Record) -> bytes:
    """The bytes of a value."""
    return a2b_base64(record.payload["value"])


def message_point(row: SessionRow, sequence: int) -> str:
    """Where a message of a session lies."""
    number = str(row.generation)
    return point_id(row.namespace, "session_message", row.session_id, number, str(sequence))


def message_record(row: SessionRow, message: SessionMessage, request: str) -> Record:
    """A message that has its time and sequence. ``request``: its point, empty without one."""
    texts = sum(len(text.encode()) for text in (message.role, message.content, message.name))
    payload: Payload = {
        **_part(row, MESSAGE, texts + len(message.metadata)),
        SEQUENCE: message.sequence,
        "role": message.role,
        "message_time": message.message_time,
    }
    if message.content:
        payload["content"] = message.content
    if message.name:
        payload["name"] = message.name
    if message.metadata:
        payload["metadata"] = b64encode(message.metadata).decode()
    if request:
        payload[REQUEST] = request
    return Record(message_point(row, message.sequence), row.namespace, payload)


def message_from_record(record: Record) -> SessionMessage:
    """The message of a part."""
    payload = record.payload
    return SessionMessage(
        payload["role"],
        payload.get("content", ""),
        payload.get("name", ""),
        a2b_base64(payload.get("metadata", "")),
        payload["message_time"],
        payload[SEQUENCE],
    )


def _part(row: SessionRow, kind: str, size: int) -> Payload:
    return {"session_id": row.session_id, GENERATION: row.generation, PART: kind, SIZE: size}
