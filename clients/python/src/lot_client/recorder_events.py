"""The events that a recorder sends, and the one for an exception."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from google.protobuf.message import DecodeError
from google.protobuf.struct_pb2 import ListValue, Struct

from lot_client.contract import MAX_DATA_BYTES, MAX_DATA_DEPTH, check_event
from lot_client.fields import EpisodeErrorFields
from lot_client.messages import build
from lot_client.pb.lot.v1.episode_pb2 import EpisodeEvent

MAX_TYPE_BYTES = 1024
MAX_MESSAGE_BYTES = 64 * 1024
_LIMITS = [MAX_DATA_BYTES >> n for n in range(10)]
"""Of each text in bytes, the first that makes the data fit."""


def make_event(
    event_type: str, data: Mapping[str, Any] | None, agent_role: str, event_time: datetime | None
) -> tuple[EpisodeEvent, bool]:
    """An event that conforms to the contract, and whether any of its texts were shortened.

    Its default time is now. The content of texts never fails: NUL and lone surrogates are escaped,
    and if the data is too large its longest texts are cut in the middle, with a note of how much
    was removed. An exception becomes its type and message.

    Raises:
        TypeError, ValueError: the data is not JSON, nested too deep, or has too many items.
    """
    fields = {
        "event_type": event_type,
        "data": data,
        "agent_role": agent_role,
        "event_time": event_time or datetime.now(UTC),
    }
    try:
        made = _built(fields)
        check_event(made)
    except (TypeError, ValueError, RecursionError):
        pass  # for most events it is enough: what is below looks at every value
    else:
        return made, False
    fields |= {"event_type": escaped(event_type), "agent_role": escaped(agent_role)}
    wording = _Wording(sys.maxsize)
    made = _built(fields | {"data": wording.of(data)})
    limit = _limit_for(made.data.ByteSize(), wording.lengths)
    if limit is not None:
        made = _built(fields | {"data": _Wording(limit).of(data)})
    check_event(made)
    return made, limit is not None


def _limit_for(size: int, lengths: list[int]) -> int | None:
    """Maximum bytes of each text, so that the data fits; None if it fits or never would."""
    if size <= MAX_DATA_BYTES:
        return None
    room = MAX_DATA_BYTES - (size - sum(lengths))
    fitting = (each for each in _LIMITS if sum(min(n, each) for n in lengths) <= room)
    return next(fitting, None)


def error_fields(error: BaseException) -> EpisodeErrorFields:
    """An exception as an episode stores it."""
    text = repr(error)
    with contextlib.suppress(Exception):
        text = str(error)
    return printed_fields(text) | {"type": shorten(escaped(type(error).__name__), MAX_TYPE_BYTES)}


def printed_fields(text: str) -> EpisodeErrorFields:
    """A printed error as an episode stores it."""
    return {"message": shorten(escaped(text), MAX_MESSAGE_BYTES)}


def error_event(error: BaseException) -> EpisodeEvent:
    """The event for an exception, as learning reads it."""
    return make_event("error", {"error": error_fields(error)}, "", None)[0]


def escaped(value: Any) -> Any:
    r"""A text, or the texts in a list or dict, as the contract accepts it.

    NUL becomes the four characters `\x00`, a lone surrogate the six of `\udc80`.
    """
    if isinstance(value, str):
        return value.replace("\0", r"\x00").encode(errors="backslashreplace").decode()
    if isinstance(value, list | tuple):
        return [escaped(item) for item in value]
    if isinstance(value, Mapping):
        return {escaped(key): escaped(item) for key, item in value.items()}
    return value


def shorten(text: str, max_bytes: int) -> str:
    """The text, or its head and tail with a note of how much was left out."""
    data = text.encode()
    if len(data) <= max_bytes:
        return text
    half = (max_bytes - 48) // 2
    head, tail = data[:half].decode(errors="ignore"), data[-half:].decode(errors="ignore")
    return f"{head}\n[{len(data) - 2 * half:,} bytes left out]\n{tail}"


class _Wording:
    """Converts data to fit the contract, with texts of at most ``limit`` bytes."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.lengths: list[int] = []
        """Of the texts in bytes."""

    def of(self, data: Any) -> Any:
        """The data of an event."""
        if data is None:
            return None
        if isinstance(data, Mapping | Struct):
            return self._value(data, "data", 0)
        raise TypeError(f"data must be a dict, not {type(data).__name__}")

    def _value(self, value: Any, where: str, depth: int) -> Any:
        if isinstance(value, str):
            text = shorten(escaped(value), self._limit)
            self.lengths.append(len(text.encode()))
            return text
        if isinstance(value, BaseException):
            value = error_fields(value)
        if isinstance(value, Mapping | list | tuple) and depth >= MAX_DATA_DEPTH:
            raise ValueError(f"data must be nested at most {MAX_DATA_DEPTH} deep")
        if isinstance(value, Mapping):
            return {
                self._key(key, where): self._value(item, f"{where}[{key!r}]", depth + 1)
                for key, item in value.items()
            }
        if isinstance(value, list | tuple):
            return [self._value(v, f"{where}[{n}]", depth + 1) for n, v in enumerate(value)]
        if value is None or isinstance(value, bool | int | float | Struct | ListValue):
            return value
        kind = type(value).__name__
        hint = (
            "decode it"
            if isinstance(value, bytes | bytearray)
            else "convert it, for example with str()"
        )
        raise TypeError(
            f"{where} is of type {kind}, which is not JSON; {hint} before you record it"
        )

    def _key(self, key: Any, where: str) -> str:
        if not isinstance(key, str):
            raise TypeError(f"{where} has the key {key!r}, which is not a string; convert it")
        return str(escaped(key))


def _built(fields: Mapping[str, Any]) -> EpisodeEvent:
    try:
        return build(EpisodeEvent, fields)
    except DecodeError as error:  # protobuf copies a Struct by way of bytes, up to its own depth
        raise ValueError(f"data must be nested at most {MAX_DATA_DEPTH} deep") from error
