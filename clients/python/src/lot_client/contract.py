"""What the contract asks of an event, as far as a client can see it before it sends."""

from __future__ import annotations

import math

from google.protobuf.struct_pb2 import Struct, Value

from lot_client.pb.lot.v1.episode_pb2 import EpisodeEvent

MAX_NAME_BYTES = 256
"""Of an event's type, and of its role."""
MAX_DATA_BYTES = 256 * 1024
MAX_DATA_DEPTH = 16
YEAR_9999_END = 253_402_300_800
"""Seconds since 1970, behind the last instant."""


def check_event(event: EpisodeEvent) -> None:
    """Refuse what the server would refuse: there it would end the stream of all events.

    Raises:
        ValueError: says which rule is broken.
    """
    if not event.event_type:
        raise ValueError("event_type must not be empty")
    for name, text in (("event_type", event.event_type), ("agent_role", event.agent_role)):
        if len(text) > MAX_NAME_BYTES or len(text.encode()) > MAX_NAME_BYTES:
            raise ValueError(f"{name} must be at most {MAX_NAME_BYTES} bytes")
        if "\0" in text:
            raise ValueError(f"{name} must not hold the character NUL")
    if not 0 <= event.event_time.seconds < YEAR_9999_END:
        raise ValueError("event_time must be from 1970 to the end of the year 9999")
    if event.HasField("data"):
        size = event.data.ByteSize()
        if size > MAX_DATA_BYTES:
            raise ValueError(f"data must be at most {MAX_DATA_BYTES:,} bytes, is {size:,}")
        _check_struct(event.data, 1)


def _check_struct(struct: Struct, depth: int) -> None:
    for key, value in struct.fields.items():
        if "\0" in key:
            raise ValueError("data must not hold the character NUL")
        _check_value(value, depth)


def _check_value(value: Value, depth: int) -> None:
    kind = value.WhichOneof("kind")
    if kind == "number_value" and not math.isfinite(value.number_value):
        raise ValueError("data must hold neither NaN nor infinity")
    if kind == "string_value" and "\0" in value.string_value:
        raise ValueError("data must not hold the character NUL")
    if kind in {"struct_value", "list_value"} and depth >= MAX_DATA_DEPTH:
        raise ValueError(f"data must be nested at most {MAX_DATA_DEPTH} deep")
    if kind == "struct_value":
        _check_struct(value.struct_value, depth + 1)
    elif kind == "list_value":
        for item in value.list_value.values:
            _check_value(item, depth + 1)


def sayable(text: str, max_bytes: int) -> str:
    """``text`` as the contract takes it: no NUL, nothing that UTF-8 has not, cut to a size."""
    data = text.replace("\0", "\ufffd").encode(errors="replace")
    return data[:max_bytes].decode(errors="ignore")
