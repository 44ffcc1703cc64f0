"""Sessions with their values and messages, and preferences."""

from __future__ import annotations

from google.protobuf.struct_pb2 import Struct, Value

from lot_grpc.domain.preference import Preference, PreferenceRevision
from lot_grpc.domain.session import Session, SessionMessage, SessionValue
from lot_grpc.pb.lot.v1 import preference_pb2
from lot_grpc.pb.lot.v1 import session_pb2 as pb
from lot_grpc.server.codec.generic import Decoder, Encoder, Whole
from lot_grpc.server.codec.values import (
    check_size,
    check_value,
    ttl_of,
    value_from_json,
    value_from_pb,
)
from lot_grpc.services.preferences.preferences import PreferenceDraft
from lot_grpc.services.sessions.rows import Terms
from lot_grpc.services.sessions.session_messages import Appended, MessageDraft

# --- sessions -------------------------------------------------------------------------------------

message_to_pb = Encoder(
    SessionMessage,
    pb.SessionMessage,
    values={"metadata": lambda data: Struct.FromString(data) if data else None},
)
appended_to_pb = Encoder(
    Appended,
    pb.AppendSessionMessageResponse,
    values={"message": message_to_pb},
    omit={"notices"},
)
details_to_pb = Encoder(SessionValue, pb.SessionValueDetails, omit={"data"})


def session_value_to_pb(value: SessionValue) -> Value:
    """A value of a session."""
    return Value.FromString(value.data)


session_to_pb = Encoder(
    Session,
    pb.Session,
    rename={"value_details": "values"},
    values={
        "messages": message_to_pb,
        "values": lambda values: {key: session_value_to_pb(one) for key, one in values.items()},
        "value_details": lambda values: {key: details_to_pb(one) for key, one in values.items()},
    },
    omit={"omitted_keys", "ended_early"},
)


def add_value(message: pb.Session, key: str, value: SessionValue) -> None:
    """Add a value to a session, with its details."""
    message.values[key].ParseFromString(value.data)
    message.value_details[key].CopyFrom(details_to_pb(value))


_message = Decoder(pb.SessionMessage, SessionMessage, omit={"sequence", "metadata"})


def message_from_pb(message: pb.SessionMessage, path: str) -> SessionMessage:
    """A message to append; a sequence given in it is ignored."""
    check_size(message.metadata, f"{path}.metadata")
    return _message(message, path, metadata=_bytes(message.metadata))


def draft_from_pb(request: pb.AppendSessionMessageRequest) -> MessageDraft:
    """The message to append."""
    return MessageDraft(
        request.session_id,
        message_from_pb(request.message, "message"),
        Terms(request.max_messages, ttl_of(request)),
        request.request_id,
    )


def session_value_from_pb(value: Value) -> bytes:
    """A value to store. Raises if it is too large or not a value."""
    check_value(value, "value")
    return _bytes(value)


def _bytes(given: Struct | Value) -> bytes:
    """Equal bytes for equal values, in whatever order a client wrote the keys."""
    raw: bytes = given.SerializeToString(deterministic=True)
    return raw


# --- preferences ----------------------------------------------------------------------------------

preference_to_pb = Encoder(
    Preference,
    preference_pb2.Preference,
    values={"value": Whole(lambda preference: value_from_json(preference.value))},
)
revision_to_pb = Encoder(
    PreferenceRevision,
    preference_pb2.PreferenceRevision,
    values={"value": Whole(lambda revision: value_from_json(revision.value))},
)
_preference = Decoder(
    preference_pb2.PutPreferenceRequest, PreferenceDraft, omit={"namespace", "value"}
)


def preference_from_pb(request: preference_pb2.PutPreferenceRequest) -> PreferenceDraft:
    """The preference to put."""
    return _preference(request, value=value_from_pb(request.value, "value"))
