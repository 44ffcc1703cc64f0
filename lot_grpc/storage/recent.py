"""A cache of recently read records, decoded.

Decoding a record takes Edge and Python 20 us, and a recall reads one or two dozen (measured). Only
the embedded store writes to its folder, so what it has read stays valid until it writes itself.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from sys import intern
from typing import Any, TypeAlias

from lot_grpc.ports import Record

_LARGEST = 16 * 2**10
"""Maximum size of a cached record, in bytes."""

_ENTRY = 400
"""Bytes of an entry besides its payload: the record, its id, and its place in the cache."""

_NUMBER = 28

CachedRecord: TypeAlias = "tuple[Record, int]"
"""A cached record and its size in bytes."""


class RecentRecords:
    """The most recently read records, without vectors, in about ``limit`` bytes.

    Every write must ``forget`` its ids.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._used = 0
        self._records: OrderedDict[str, CachedRecord] = OrderedDict()

    def get(self, id: str) -> Record | None:
        """The record, which must not be changed. It becomes the most recently read."""
        found = self._records.get(id)
        if found is None:
            return None
        self._records.move_to_end(id)
        return found[0]

    def keep(self, record: Record) -> None:
        """Cache a record as it is in the store, unless it is too large."""
        payload = {intern(key): value for key, value in record.payload.items()}
        size = _ENTRY + payload.__sizeof__() + _bytes(list(payload.values()))
        self._keep(Record(record.id, record.namespace, payload), size)

    def pop(self, id: str) -> CachedRecord | None:
        """Remove and return a record that is about to be changed, for ``keep_changed``."""
        found = self._records.pop(id, None)
        if found is not None:
            self._used -= found[1]
        return found

    def keep_changed(self, old: CachedRecord, changed: Mapping[str, Any]) -> None:
        """Cache ``old`` with these keys, which were just written."""
        record, size = old
        payload = record.payload.copy()
        for key, value in changed.items():
            if not _as_given(value):
                return
            if key in payload:
                size -= _bytes(payload[key])
            size += _bytes(value)
            payload[intern(key)] = value
        size += payload.__sizeof__() - record.payload.__sizeof__()
        self._keep(Record(record.id, record.namespace, payload), size)

    def _keep(self, record: Record, size: int) -> None:
        self.pop(record.id)
        if size > _LARGEST:
            return
        self._records[record.id] = record, size
        self._used += size
        while self._used > self._limit:
            _, (_, freed) = self._records.popitem(last=False)
            self._used -= freed

    def differing(self, id: str, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """The items that differ from those of a cached record; all if it is not cached."""
        found = self._records.get(id)
        if found is None:
            return given
        payload = found[0].payload
        return {
            key: value
            for key, value in given.items()
            if key not in payload or not _is_same(payload[key], value)
        }

    def forget(self, ids: Iterable[str]) -> None:
        """Remove records that are about to be written."""
        for one in ids:
            self.pop(one)

    def clear(self) -> None:
        """Remove all records, before a write that may touch any."""
        self._records.clear()
        self._used = 0


def _bytes(value: Any) -> int:
    """The size of a value; not exact if it is too large."""
    if isinstance(value, str):
        return value.__sizeof__()
    if not isinstance(value, dict | list):
        return _NUMBER
    size: int = value.__sizeof__()
    items: Iterable[Any] = value
    if isinstance(value, dict):
        size += sum(map(str.__sizeof__, value))
        items = value.values()
    for item in items:
        size += item.__sizeof__() if isinstance(item, str) else _bytes(item)
        if size > _LARGEST:
            break
    return size


def _is_same(stored: Any, value: Any) -> bool:
    """Whether two values are stored identically; False if unsure."""
    if type(stored) is not type(value) or not _as_given(value):
        return False
    if type(value) is float:  # 0.0 equals -0.0
        return bool(value.hex() == stored.hex())
    return bool(stored == value)


def _as_given(value: Any) -> bool:
    """Whether a value is certain to come back from the store unchanged."""
    if isinstance(value, list):
        return all(type(item) is str for item in value)
    return type(value) in (str, int, float, bool)
