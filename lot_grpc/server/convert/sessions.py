"""Sessions, their values and messages."""

from __future__ import annotations

from google.protobuf.struct_pb2 import Struct, Value

from lot_grpc.domain.session import Session, SessionMessage, SessionValue
from lot_grpc.pb.lot.v1 import session_pb2 as pb
from lot_grpc.server.convert.values import (
    check_size,
    check_value,
    duration_to_pb,
    micros_from_pb,
    time_from_pb,
    time_to_pb,
)
from lot_grpc.services.sessions.rows import Terms
from lot_grpc.services.sessions.session_messages import MessageDraft

_MICROS = 1_000_000


def session_to_pb(session: Session) -> pb.Session:
    """A session; in a change without its values and messages."""
    message = pb.Session(
        session_id=session.session_id,
        messages=[message_to_pb(one) for one in session.messages],
        max_messages=session.max_messages,
        ttl=duration_to_pb(session.ttl / _MICROS),
        expire_time=time_to_pb(session.expire_time),
        create_time=time_to_pb(session.create_time),
        update_time=time_to_pb(session.update_time),
        namespace=session.namespace,
        last_sequence=session.last_sequence,
    )
    for key, value in session.values.items():
        add_value(message, key, value)
    return message


def add_value(message: pb.Session, key: str, value: SessionValue) -> None:
    """A value of a session, with its details."""
    message.values[key].ParseFromString(value.data)
    message.value_details[key].CopyFrom(details_to_pb(value))


def message_to_pb(message: SessionMessage) -> pb.SessionMessage:
    """A message with its sequence."""
    told = pb.SessionMessage(
        role=message.role,
        content=message.content,
        name=message.name,
        sequence=message.sequence,
    )
    if message.metadata:
        told.metadata.ParseFromString(message.metadata)
    if message.message_time is not None:
        told.message_time.CopyFrom(time_to_pb(message.message_time))
    return told


def message_from_pb(message: pb.SessionMessage, path: str) -> SessionMessage:
    """A message to append; it has no sequence yet, whatever it says."""
    check_size(message.metadata, f"{path}.metadata")
    return SessionMessage(
        role=message.role,
        content=message.content,
        name=message.name,
        metadata=_bytes(message.metadata),
        message_time=time_from_pb(message, "message_time", path),
    )


def draft_from_pb(request: pb.AppendSessionMessageRequest) -> MessageDraft:
    """What is to be appended."""
    return MessageDraft(
        request.session_id,
        message_from_pb(request.message, "message"),
        Terms(request.max_messages, micros_from_pb(request, "ttl", "")),
        request.request_id,
    )


def value_to_pb(value: SessionValue) -> Value:
    """A value of a session."""
    message = Value()
    message.ParseFromString(value.data)
    return message


def details_to_pb(value: SessionValue) -> pb.SessionValueDetails:
    """The details of a value of a session."""
    details = pb.SessionValueDetails(category=value.category, importance=value.importance)
    if value.update_time is not None:
        details.update_time.CopyFrom(time_to_pb(value.update_time))
    return details


def value_from_pb(value: Value) -> bytes:
    """A value to keep. Raises for one that is too large, or is none."""
    check_value(value, "value")
    return _bytes(value)


def _bytes(given: Struct | Value) -> bytes:
    """The same for the same values, in whatever order a client wrote them."""
    raw: bytes = given.SerializeToString(deterministic=True)
    return raw
