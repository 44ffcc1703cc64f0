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

_HEAVIEST = 8192
"""Maximum weight of a cached record: its characters, and 16 for every other value."""


class RecentRecords:
    """The last ``entries`` records read, without vectors. Every write must ``forget`` its ids.

    Takes about 5 KB per entry.
    """

    def __init__(self, entries: int) -> None:
        self._entries = entries
        self._records: OrderedDict[str, Record] = OrderedDict()

    def get(self, id: str) -> Record | None:
        """The record, which must not be changed. It becomes the most recently read."""
        found = self._records.get(id)
        if found is not None:
            self._records.move_to_end(id)
        return found

    def keep(self, record: Record) -> None:
        """Cache a record as it is in the store, unless it is too large."""
        if _room_left(record.payload, _HEAVIEST) < 0:
            return
        payload = {intern(key): value for key, value in record.payload.items()}
        self._records[record.id] = Record(record.id, record.namespace, payload)
        if len(self._records) > self._entries:
            self._records.popitem(last=False)

    def pop(self, id: str) -> Record | None:
        """Remove and return a record that is about to be changed."""
        return self._records.pop(id, None)

    def keep_changed(self, old: Record, changed: Mapping[str, Any]) -> None:
        """Cache ``old`` with these keys, which were just written."""
        if all(map(_as_given, changed.values())):
            self.keep(Record(old.id, old.namespace, {**old.payload, **changed}))

    def forget(self, ids: Iterable[str]) -> None:
        """Remove records that are about to be written."""
        for one in ids:
            self._records.pop(one, None)

    def clear(self) -> None:
        """Remove all records, before a write that may touch any."""
        self._records.clear()


def _room_left(value: dict[str, Any] | list[Any], room: int) -> int:
    """What ``value`` leaves of ``room``. Below 0 means too heavy, and is not exact."""
    items: Iterable[Any] = value
    if isinstance(value, dict):
        room -= sum(map(len, value))
        items = value.values()
    for item in items:  # mostly strings and numbers; few need recursion
        if isinstance(item, str):
            room -= len(item)
        elif isinstance(item, dict | list):
            room = _room_left(item, room)
        else:
            room -= 16
        if room < 0:
            break
    return room


def _as_given(value: Any) -> bool:
    """Whether a value is certain to come back from the store unchanged."""
    if isinstance(value, list):
        return all(type(item) is str for item in value)
    return type(value) in (str, int, float, bool)
