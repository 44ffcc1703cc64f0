"""Sessions: values by key and a window of the latest messages, until they expire."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lot_grpc.domain.preference import GENERAL

DEFAULT_MAX_MESSAGES = 50
"""Of the window of a session."""

DEFAULT_TTL = 24 * 3600 * 1_000_000
"""How long a session lives after a write, in microseconds."""

MAX_VALUES = 1000
"""Values of a session."""

MAX_VALUES_BYTES = 8 * 2**20
"""All values of a session together."""

DEFAULT_IMPORTANCE = 0.5
"""Of a value."""


@dataclass(frozen=True, slots=True)
class SessionValue:
    """A value: a serialized ``google.protobuf.Value``, which the server never looks into.

    ``importance`` in [0, 1]. ``update_time`` in microseconds since 1970, None: an earlier version
    put it.
    """

    data: bytes
    category: str = GENERAL
    importance: float = DEFAULT_IMPORTANCE
    update_time: int | None = None


@dataclass(frozen=True, slots=True)
class SessionMessage:
    """A message of a conversation.

    ``metadata`` is a serialized ``google.protobuf.Struct``, empty where there is none; the server
    never looks into it. ``message_time`` in microseconds since 1970, None: when it is appended.
    ``sequence`` is its number in the session, 0 until it has one.
    """

    role: str
    content: str = ""
    name: str = ""
    metadata: bytes = b""
    message_time: int | None = None
    sequence: int = 0


@dataclass(frozen=True, slots=True)
class Session:
    """A session. Times in microseconds.

    ``last_sequence`` is that of the message appended last, 0 before the first. ``messages`` are in
    the order of their sequences. ``omitted_keys`` are of values that were not read, for their size;
    ``ended_early``: nor were older messages.
    """

    namespace: str
    session_id: str
    max_messages: int
    ttl: int
    last_sequence: int
    create_time: int
    update_time: int
    expire_time: int
    values: Mapping[str, SessionValue] = field(default_factory=dict)
    messages: tuple[SessionMessage, ...] = ()
    omitted_keys: tuple[str, ...] = ()
    ended_early: bool = False
