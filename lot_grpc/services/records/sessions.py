"""Session ⇄ records: a row, and a part for each value and message.

Parts name the generation of their session, which is the sort key of its row. A session that was
cleared or lapsed has another generation than the next one of its id, so what is left of the former
one is never met by a reader.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from lot_grpc.domain.ids import point_id
from lot_grpc.domain.session import DEFAULT_IMPORTANCE, Session, SessionMessage, SessionValue
from lot_grpc.ports import (
    EXPIRES_KEY,
    AnyOf,
    Condition,
    Equals,
    Missing,
    OneOf,
    Payload,
    Range,
    Record,
)
from lot_grpc.services.records.collections import SORT_KEY
from lot_grpc.services.records.fields import FieldCodec

REVISION = "revision"
"""Grows with every write of a session."""

FORMER = "former_generations"
"""Generations of which parts may be left, as they were when the session began; they go with its
first write."""

PENDING = "pending_requests"
"""The sequence and time of the message that a request appended, while it may be sent again."""

LATEST = "latest"
"""The message appended last; the others are parts."""

GENERATION = "generation"
SEQUENCE = "sequence"
SIZE = "size"
"""Of what a part holds, in bytes: key, category and value, or texts and metadata."""

IMPORTANCE = "importance"
"""Of a value; one that an earlier version put has none."""

PART, VALUE, MESSAGE = "part", "value", "message"
"""What kind of a part it is."""

OVERHEAD = 64
"""Bytes that a part takes at most beyond its size when it is sent."""

Places = Mapping[str, tuple[int, int]]
"""Sequence and time of messages, by the point of their request."""


@dataclass(frozen=True, slots=True)
class SessionRow:
    """The row of a session.

    ``gone_sequence``: messages up to there fell out of the window or were cleared. ``latest``: the
    payload of the message of ``last_sequence``, empty where that is gone. ``values_put`` and
    ``bytes_put`` are at least as large as its values are many and large: what was put since they
    were counted.
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
    gone_sequence: int = 0
    values_put: int = 0
    bytes_put: int = 0
    latest: Payload = field(default_factory=dict)
    pending: Places = field(default_factory=dict)
    former: tuple[int, ...] = ()

    @property
    def point(self) -> str:
        """Where it lies."""
        return session_point(self.namespace, self.session_id)

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


_ROW = FieldCodec(
    SessionRow,
    sparse=False,
    skip={"namespace"},
    rename={
        "generation": SORT_KEY,
        "expire_time": EXPIRES_KEY,
        "pending": PENDING,
        "former": FORMER,
    },
)
_NEVER_REWRITTEN = frozenset({"session_id", "create_time", SORT_KEY, LATEST})
_VALUE = FieldCodec(
    SessionValue, always={"category", IMPORTANCE, "update_time"}, rename={"data": "value"}
)
_MESSAGE = FieldCodec(SessionMessage, always={"message_time", SEQUENCE})


def session_point(namespace: str, session_id: str) -> str:
    """Where the row of a session lies."""
    return point_id(namespace, "session", session_id)


def session_record(row: SessionRow) -> Record:
    """The whole row."""
    return Record(row.point, row.namespace, _ROW.write(row))


def written_payload(row: SessionRow) -> Payload:
    """The keys that each write of a session writes; a message is one more."""
    return {key: value for key, value in _ROW.write(row).items() if key not in _NEVER_REWRITTEN}


def session_row(record: Record) -> SessionRow:
    """The row of a record."""
    return _ROW.read(record.payload, namespace=record.namespace)


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


def value_record(row: SessionRow, key: str, value: SessionValue) -> Record:
    """A value, base64 of its bytes."""
    size = len(key.encode()) + len(value.category.encode()) + len(value.data)
    payload: Payload = {
        **_part(row, VALUE, size),
        "key": key,
        **_VALUE.write(value),
    }
    return Record(value_point(row, key), row.namespace, payload)


def value_from_record(record: Record) -> SessionValue:
    """A value."""
    return _VALUE.read(record.payload)


def importance_of(payload: Payload) -> float:
    """That of a value's part."""
    importance: float = payload.get(IMPORTANCE, DEFAULT_IMPORTANCE)
    return importance


def at_most_important(importance: float) -> Condition:
    """The values of at most this importance."""
    most = Range(IMPORTANCE, lte=importance)
    return OneOf((most, Missing(IMPORTANCE))) if importance >= DEFAULT_IMPORTANCE else most


def message_point(row: SessionRow, sequence: int) -> str:
    """Where a message of a session lies."""
    number = str(row.generation)
    return point_id(row.namespace, "session_message", row.session_id, number, str(sequence))


def message_payload(message: SessionMessage) -> Payload:
    """A message that has its time and sequence, as the row or a part keeps it."""
    texts = sum(len(text.encode()) for text in (message.role, message.content, message.name))
    return {**_MESSAGE.write(message), SIZE: texts + len(message.metadata)}


def message_record(row: SessionRow, message: Payload) -> Record:
    """The part of a message."""
    point = message_point(row, message[SEQUENCE])
    return Record(point, row.namespace, {**_part(row, MESSAGE, message[SIZE]), **message})


def message_from_payload(payload: Payload) -> SessionMessage:
    """A message as the row or a part keeps it."""
    given = {name: payload[name] for name in ("message_time", SEQUENCE)}
    return _MESSAGE.read(payload, **given)


def _part(row: SessionRow, kind: str, size: int) -> Payload:
    return {"session_id": row.session_id, GENERATION: row.generation, PART: kind, SIZE: size}
