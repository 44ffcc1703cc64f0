"""Reads what changed between two positions, from the stamps of stored records.

The feed is a view of the present state, not a log: a record that changed twice appears once, with
its last change. So it is correct however late it is read, and nothing is stored for watchers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from lot_grpc.domain.change import ChangeType, Positions
from lot_grpc.ports import AllOf, Condition, Equals, OneOf, Order, Range, Record, VectorStore
from lot_grpc.services.records.changes import GENERATION, STORED_BY, STORED_SEQ
from lot_grpc.services.records.collections import CHANGE_SEQ, TOMBSTONES, WRITER_ID
from lot_grpc.services.registry import Registry
from lot_grpc.services.resource_spec import ResourceSpec

_BATCH = 500
_BY_NUMBER = Order(CHANGE_SEQ)
_STAMP_KEYS = (WRITER_ID, CHANGE_SEQ, STORED_BY, STORED_SEQ)
_STONE_KEYS: tuple[str, ...] = (WRITER_ID, CHANGE_SEQ, "resource_kind", "id", "done", GENERATION)


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a record: which one, by which process and when, without its contents.

    ``stored`` is the stamp of the write that created it, None if an older version did. ``learned``:
    the server learned it. ``cleared``: not one record, but all of the kind; then ``resource_kind``
    None means everything.
    """

    namespace: str
    resource_kind: str | None
    id: str
    writer_id: str
    seq: int
    deleted: bool = False
    stored: tuple[str, int] | None = None
    learned: bool = False
    cleared: bool = False

    def concerns(self, resource_kinds: Collection[str]) -> bool:
        """Whether it is of one of these kinds."""
        return self.resource_kind is None or self.resource_kind in resource_kinds

    def type_since(self, since: Positions) -> ChangeType:
        """What it is to a reader who knows all up to ``since``."""
        if self.cleared:
            return ChangeType.CLEARED
        if self.deleted:
            return ChangeType.DELETED
        if self.stored is None or self.stored[1] <= since.get(self.stored[0], 0):
            return ChangeType.UPDATED
        return ChangeType.PATTERN_LEARNED if self.learned else ChangeType.STORED


@dataclass(frozen=True, slots=True)
class ChangeRange:
    """Changes in the order of their numbers, and the positions after all of them."""

    changes: list[Change]
    reached: dict[str, int]


class Feed:
    """Reads the changes of all namespaces."""

    def __init__(self, store: VectorStore, registry: Registry) -> None:
        self._store = store
        self._registry = registry

    async def read(
        self,
        after: Positions,
        ends: Positions,
        namespace: str | None = None,
        *,
        resource_kinds: Collection[str],
        collections: Collection[str] | None = None,
    ) -> ChangeRange:
        """The next changes after ``after``; there are more until ``reached`` gets to ``ends``.

        ``namespace`` None: all. ``collections``: those that have changed, if that is known; others
        are not read.
        """
        open_ends = {one: end for one, end in ends.items() if end > after.get(one, 0)}
        reached = {**after, **open_ends}
        if not open_ends:
            return ChangeRange([], reached)
        where = OneOf(
            tuple(_between(one, after.get(one, 0), end) for one, end in open_ends.items())
        )
        found: list[tuple[ResourceSpec | None, Record]] = []
        bound: int | None = None
        for collection in self._collections(resource_kinds):
            if collections is not None and collection not in collections:
                continue
            records = await self._scroll(collection, namespace, where)
            watched = self._registry.watched_collections.get(collection)
            found += ((watched, record) for record in records)
            if len(records) == _BATCH:  # records after the last of them are not read yet
                last = records[-1].payload[CHANGE_SEQ]
                bound = last if bound is None else min(bound, last)
        if bound is not None:
            found = [one for one in found if one[1].payload[CHANGE_SEQ] < bound]
            for one, end in open_ends.items():
                reached[one] = max(after.get(one, 0), min(end, bound - 1))
        changes = [
            change
            for watched, record in found
            if (change := self._change(watched, record)) is not None
            and change.concerns(resource_kinds)
        ]
        changes.sort(key=lambda one: (one.seq, one.writer_id))
        return ChangeRange(changes, reached)

    async def _scroll(
        self, collection: str, namespace: str | None, where: Condition
    ) -> list[Record]:
        keys = _STONE_KEYS
        watched = self._registry.watched_collections.get(collection)
        if watched is not None and watched.watch is not None:
            keys = (*_STAMP_KEYS, watched.id_key, *watched.watch.learned_keys)
        return await self._store.scroll(
            collection, namespace, [where], limit=_BATCH, order=_BY_NUMBER, payload=keys
        )

    def _collections(self, resource_kinds: Iterable[str]) -> list[str]:
        watched = self._registry.watched
        return [*(watched[kind].collection.name for kind in resource_kinds), TOMBSTONES]

    def _change(self, watched: ResourceSpec | None, record: Record) -> Change | None:
        """The change of a stamped record; None for a delete in progress or of other kinds."""
        payload = record.payload
        by, seq = payload[WRITER_ID], payload[CHANGE_SEQ]
        if watched is None and GENERATION in payload:
            cleared = payload["resource_kind"] or None
            return Change(record.namespace, cleared, "", by, seq, cleared=True)
        if watched is None:
            if not payload["done"] or payload["resource_kind"] not in self._registry.watched:
                return None
            kind = self._registry.watched[payload["resource_kind"]].kind
            return Change(record.namespace, kind, payload["id"], by, seq, deleted=True)
        stored = (payload[STORED_BY], payload[STORED_SEQ]) if STORED_SEQ in payload else None
        learned = watched.watch is not None and watched.watch.learned(payload)
        return Change(
            record.namespace,
            watched.kind,
            payload[watched.id_key],
            by,
            seq,
            stored=stored,
            learned=learned,
        )


def _between(writer_id: str, after: int, end: int) -> Condition:
    return AllOf((Equals(WRITER_ID, writer_id), Range(CHANGE_SEQ, gt=after, lte=end)))


def short_of(reached: Positions, ends: Positions) -> bool:
    """Whether there are more changes to read."""
    return any(reached.get(one, 0) < end for one, end in ends.items())
