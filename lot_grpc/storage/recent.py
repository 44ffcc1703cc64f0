"""A cache of recently read records, decoded.

Decoding a record takes Edge and Python 20 us, and a recall reads one or two dozen (measured). Only
the embedded store writes to its folder, so what it has read stays valid until it writes itself.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from sys import intern
from typing import Any

from lot_grpc.ports import Record

_LARGEST = 16 * 2**10
"""Maximum size of the values of a cached record, in bytes."""

_ENTRY = 400
"""Bytes of an entry besides its payload: the record, its id, and its place in the cache."""

_NUMBER = 28


class RecentRecords:
    """The most recently read records, without vectors, in about ``limit`` bytes.

    Every write must ``forget`` its ids.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._used = 0
        self._records: OrderedDict[str, tuple[Record, int]] = OrderedDict()

    def get(self, id: str) -> Record | None:
        """The record, which must not be changed. It becomes the most recently read."""
        found = self._records.get(id)
        if found is None:
            return None
        self._records.move_to_end(id)
        return found[0]

    def keep(self, record: Record) -> None:
        """Cache a record as it is in the store, unless it is too large."""
        left = _room_left(list(record.payload.values()), _LARGEST)
        if left < 0:
            return
        payload = {intern(key): value for key, value in record.payload.items()}
        size = _LARGEST - left + payload.__sizeof__() + _ENTRY
        self.pop(record.id)
        self._records[record.id] = Record(record.id, record.namespace, payload), size
        self._used += size
        while self._used > self._limit:
            _, (_, freed) = self._records.popitem(last=False)
            self._used -= freed

    def pop(self, id: str) -> Record | None:
        """Remove and return a record that is about to be changed."""
        found = self._records.pop(id, None)
        if found is None:
            return None
        self._used -= found[1]
        return found[0]

    def keep_changed(self, old: Record, changed: Mapping[str, Any]) -> None:
        """Cache ``old`` with these keys, which were just written."""
        if all(map(_as_given, changed.values())):
            self.keep(Record(old.id, old.namespace, {**old.payload, **changed}))

    def forget(self, ids: Iterable[str]) -> None:
        """Remove records that are about to be written."""
        for one in ids:
            self.pop(one)

    def clear(self) -> None:
        """Remove all records, before a write that may touch any."""
        self._records.clear()
        self._used = 0


def _room_left(value: dict[str, Any] | list[Any], room: int) -> int:
    """What ``value`` leaves of ``room`` bytes; below 0 (not exact) if it is too large."""
    items: Iterable[Any] = value
    room -= value.__sizeof__()
    if isinstance(value, dict):
        room -= sum(map(str.__sizeof__, value))
        items = value.values()
    for item in items:  # mostly strings and numbers; few need recursion
        if isinstance(item, str):
            room -= item.__sizeof__()
        elif isinstance(item, dict | list):
            room = _room_left(item, room)
        else:
            room -= _NUMBER
        if room < 0:
            break
    return room


def _as_given(value: Any) -> bool:
    """Whether a value is certain to come back from the store unchanged."""
    if isinstance(value, list):
        return all(type(item) is str for item in value)
    return type(value) in (str, int, float, bool)
