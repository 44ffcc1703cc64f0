"""The events that a recorder takes, and the one that it makes of an exception."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from google.protobuf.message import DecodeError

from lot_client.contract import check_event, sayable
from lot_client.fields import EpisodeErrorFields
from lot_client.messages import build
from lot_client.pb.lot.v1.episode_pb2 import EpisodeEvent

MAX_TYPE_BYTES = 1024
MAX_MESSAGE_BYTES = 64 * 1024


def make_event(
    event_type: str, data: Mapping[str, Any] | None, agent_role: str, event_time: datetime | None
) -> EpisodeEvent:
    """An event that keeps the contract, with the time of now where it has none.

    Raises:
        TypeError, ValueError: it does not.
    """
    fields = {
        "event_type": event_type,
        "data": data,
        "agent_role": agent_role,
        "event_time": event_time or datetime.now(UTC),
    }
    try:
        made = build(EpisodeEvent, fields)
        check_event(made)
    except DecodeError as error:  # protobuf copies a Struct by way of bytes, up to its own depth
        raise ValueError("data is nested too deep: at most 16 levels") from error
    return made


def error_fields(error: BaseException) -> EpisodeErrorFields:
    """What an episode keeps of an exception."""
    text = repr(error)
    with contextlib.suppress(Exception):
        text = str(error)
    return {
        "type": sayable(type(error).__name__, MAX_TYPE_BYTES),
        "message": sayable(text, MAX_MESSAGE_BYTES),
    }


def error_event(error: BaseException) -> EpisodeEvent:
    """The event that tells of an exception, as learning reads it."""
    return make_event("error", {"error": error_fields(error)}, "", None)
