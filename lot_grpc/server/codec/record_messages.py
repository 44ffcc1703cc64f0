"""A cache of serialized messages of recently recalled records: most recalls return the same."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from google.protobuf.message import Message

from lot_grpc.ports import Payload, Record

_LIMIT: int = 8 * 2**20
_LARGEST = 16 * 2**10
_ENTRY = 1024
"""Overhead of an entry, in bytes."""
_PAYLOAD = 3
"""The estimated size of a payload, as a multiple of its message."""


class RecordMessages:
    """The serialized messages of the most recently recalled records, in about ``limit`` bytes.

    A message is reused only for a record with an equal payload, so writes need not invalidate it.
    """

    def __init__(self, limit: int = _LIMIT) -> None:
        self._free = limit
        self._known: OrderedDict[str, tuple[Payload, bytes]] = OrderedDict()

    def of(self, record: Record, make: Callable[[], Message]) -> bytes:
        """The record's message, from the cache if its payload is equal."""
        known = self._known.get(record.id)
        if known is not None and known[0] == record.payload:
            self._known.move_to_end(record.id)
            return known[1]
        message = make().SerializeToString()
        if known is not None:
            self._free += _size(self._known.pop(record.id)[1])
        if len(message) <= _LARGEST:
            self._known[record.id] = record.payload, message
            self._free -= _size(message)
            while self._free < 0:
                self._free += _size(self._known.popitem(last=False)[1][1])
        return message


def _size(message: bytes) -> int:
    return _ENTRY + (1 + _PAYLOAD) * len(message)
