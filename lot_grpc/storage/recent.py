"""Records read lately, decoded.

To decode a record costs Edge and Python 20 us, and a recall looks at a dozen or two (measured). The
embedded store alone writes to its folder, so what it read stays true until it writes there itself.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from sys import intern
from typing import Any

from lot_grpc.ports import Record

_HEAVIEST = 8192
"""Weight of a record that is still kept: characters, and 16 for every other value."""


class RecentRecords:
    """The ``entries`` records read last, without vectors. Every write must ``forget`` its ids.

    Takes about 5 KB an entry.
    """

    def __init__(self, entries: int) -> None:
        self._entries = entries
        self._records: OrderedDict[str, Record] = OrderedDict()

    def get(self, id: str) -> Record | None:
        """The record, not to be changed. It thereby counts as just read."""
        found = self._records.get(id)
        if found is not None:
            self._records.move_to_end(id)
        return found

    def keep(self, record: Record) -> None:
        """Remember a record as it is in the store, unless it is a large one."""
        if _room_left(record.payload, _HEAVIEST) < 0:
            return
        payload = {intern(key): value for key, value in record.payload.items()}
        self._records[record.id] = Record(record.id, record.namespace, payload)
        if len(self._records) > self._entries:
            self._records.popitem(last=False)

    def pop(self, id: str) -> Record | None:
        """The record, which is about to be changed and is forgotten with this."""
        return self._records.pop(id, None)

    def keep_changed(self, old: Record, changed: Mapping[str, Any]) -> None:
        """Remember ``old`` with these keys, as they were just written."""
        if all(map(_as_given, changed.values())):
            self.keep(Record(old.id, old.namespace, {**old.payload, **changed}))

    def forget(self, ids: Iterable[str]) -> None:
        """These are about to be written."""
        for one in ids:
            self._records.pop(one, None)

    def clear(self) -> None:
        """Any may be about to be written."""
        self._records.clear()


def _room_left(value: dict[str, Any] | list[Any], room: int) -> int:
    """What is left of ``room`` with ``value`` in it. Less than 0 is too heavy, and not exact."""
    items: Iterable[Any] = value
    if isinstance(value, dict):
        room -= sum(map(len, value))
        items = value.values()
    for item in items:  # mostly strings and numbers, so that few are looked into
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
    """Whether a value surely comes back from the store just as it went there."""
    if isinstance(value, list):
        return all(type(item) is str for item in value)
    return type(value) in (str, int, float, bool)
