"""Session ⇄ records: a row, and a part for each value and message.

Parts name the generation of their session, which is the sort key of its row. After a session was
cleared or has expired, the next one with its id has another generation, so a reader never sees
leftover parts of the former.
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
"""Increases with every write of a session."""

FORMER = "former_generations"
"""Generations with possible leftover parts when the session began; its first write deletes them."""

PENDING = "pending_requests"
"""The sequence and time of the message that a request appended, while it may be repeated."""

LATEST = "latest"
"""The last message appended; the others are parts."""

GENERATION = "generation"
SEQUENCE = "sequence"
SIZE = "size"
"""Size of a part's contents in bytes: key, category and value, or texts and metadata."""

IMPORTANCE = "importance"
"""On a value; one stored by an earlier version has none."""

PART, VALUE, MESSAGE = "part", "value", "message"
"""The kind of part."""

OVERHEAD = 64
"""Maximum overhead of a part beyond its size when it is sent, in bytes."""

Places = Mapping[str, tuple[int, int]]
"""Sequence and time of messages, by the point of the request."""


@dataclass(frozen=True, slots=True)
class SessionRow:
    """The row of a session.

    ``gone_sequence``: messages up to it left the window or were cleared. ``latest``: the payload of
    the message with ``last_sequence``, empty if that is gone. ``values_put`` and ``bytes_put`` are
    upper bounds of the number and size of its values: they include all puts since the last count.
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
        """Its point id."""
        return session_point(self.namespace, self.session_id)

    @property
    def message_count(self) -> int:
        """Messages in the window."""
        return self.last_sequence - self.gone_sequence

    def conditions(self) -> list[Condition]:
        """The conditions for the row to be unchanged."""
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
    """The point id of the row of a session."""
    return point_id(namespace, "session", session_id)


def session_record(row: SessionRow) -> Record:
    """The whole row."""
    return Record(row.point, row.namespace, _ROW.write(row))


def written_payload(row: SessionRow) -> Payload:
    """The keys that every write of a session writes; a message adds one more."""
    return {key: value for key, value in _ROW.write(row).items() if key not in _NEVER_REWRITTEN}


def session_row(record: Record) -> SessionRow:
    """Decode the row of a record."""
    return _ROW.read(record.payload, namespace=record.namespace)


def session_from_record(record: Record) -> Session:
    """The session of a row, without its values and messages."""
    return session_row(record).session()


# --- parts ------------------------------------------------------------------------------------


def parts_of(session_id: str, generations: Iterable[int]) -> list[Condition]:
    """Conditions for the parts of a session's generations."""
    return [Equals("session_id", session_id), AnyOf(GENERATION, tuple(generations))]


def kind_of(row: SessionRow, kind: str) -> list[Condition]:
    """Conditions for the values, or the messages, of a session."""
    return [*parts_of(row.session_id, (row.generation,)), Equals(PART, kind)]


def value_point(row: SessionRow, key: str) -> str:
    """The point id of a value of a session."""
    return point_id(row.namespace, "session_value", row.session_id, str(row.generation), key)


def value_record(row: SessionRow, key: str, value: SessionValue) -> Record:
    """Encode a value, as base64 of its bytes."""
    size = len(key.encode()) + len(value.category.encode()) + len(value.data)
    payload: Payload = {
        **_part(row, VALUE, size),
        "key": key,
        **_VALUE.write(value),
    }
    return Record(value_point(row, key), row.namespace, payload)


def value_from_record(record: Record) -> SessionValue:
    """Decode a value."""
    return _VALUE.read(record.payload)


def importance_of(payload: Payload) -> float:
    """The importance in the part of a value."""
    importance: float = payload.get(IMPORTANCE, DEFAULT_IMPORTANCE)
    return importance


def at_most_important(importance: float) -> Condition:
    """Values with at most this importance."""
    most = Range(IMPORTANCE, lte=importance)
    return OneOf((most, Missing(IMPORTANCE))) if importance >= DEFAULT_IMPORTANCE else most


def message_point(row: SessionRow, sequence: int) -> str:
    """The point id of a message of a session."""
    number = str(row.generation)
    return point_id(row.namespace, "session_message", row.session_id, number, str(sequence))


def message_payload(message: SessionMessage) -> Payload:
    """Encode a message with its time and sequence, as the row or a part stores it."""
    texts = sum(len(text.encode()) for text in (message.role, message.content, message.name))
    return {**_MESSAGE.write(message), SIZE: texts + len(message.metadata)}


def message_record(row: SessionRow, message: Payload) -> Record:
    """The part of a message."""
    point = message_point(row, message[SEQUENCE])
    return Record(point, row.namespace, {**_part(row, MESSAGE, message[SIZE]), **message})


def message_from_payload(payload: Payload) -> SessionMessage:
    """Decode a message from the row or a part."""
    given = {name: payload[name] for name in ("message_time", SEQUENCE)}
    return _MESSAGE.read(payload, **given)


def _part(row: SessionRow, kind: str, size: int) -> Payload:
    return {"session_id": row.session_id, GENERATION: row.generation, PART: kind, SIZE: size}
