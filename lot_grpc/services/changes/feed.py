"""What changed between two positions, read from the stamps of what is stored.

The feed is a view of the present state, not a log: a thing that changed twice is there once, by its
last change. So what is told is always true, however late it is told, and nothing has to be kept for
those who watch.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from lot_grpc.domain.change import ChangeType, Positions, ResourceKind
from lot_grpc.ports import AllOf, Condition, Equals, OneOf, Order, Range, Record, VectorStore
from lot_grpc.services.records.changes import (
    BY_COLLECTION,
    GENERATION,
    STORED_BY,
    STORED_SEQ,
    WATCHED,
    Watched,
)
from lot_grpc.services.records.collections import CHANGE_SEQ, PATTERNS, TOMBSTONES, WRITER_ID

_BATCH = 500
_BY_NUMBER = Order(CHANGE_SEQ)
_STAMP_KEYS = (WRITER_ID, CHANGE_SEQ, STORED_BY, STORED_SEQ)
_STONE_KEYS: tuple[str, ...] = (WRITER_ID, CHANGE_SEQ, "resource_kind", "id", "done", GENERATION)
_SOURCES = ("kind", "source_episode_ids", "source_pattern_ids")
_LEARNED_KINDS = ("learned", "distilled")


@dataclass(frozen=True, slots=True)
class Change:
    """That a thing was changed, by whom and when; not the thing itself.

    ``stored`` is the stamp of the write that made it, None where an older version did. ``learned``:
    it is a pattern with sources. ``cleared``: not one thing, but all of the kind; then
    ``resource_kind`` None is everything.
    """

    namespace: str
    resource_kind: ResourceKind | None
    id: str
    writer_id: str
    seq: int
    deleted: bool = False
    stored: tuple[str, int] | None = None
    learned: bool = False
    cleared: bool = False

    def concerns(self, resource_kinds: Collection[ResourceKind]) -> bool:
        """Whether it is of one of these kinds."""
        return self.resource_kind is None or self.resource_kind in resource_kinds

    @property
    def place(self) -> tuple[Watched, str] | None:
        """Where the thing lies, and its record; None for a clear."""
        if self.resource_kind is None or self.cleared:
            return None
        watched = WATCHED[self.resource_kind]
        return watched, watched.point(self.namespace, self.id)

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
    """Changes in the order of their numbers, and the positions behind all of them."""

    changes: list[Change]
    reached: dict[str, int]


class Feed:
    """Reads changes of all namespaces."""

    def __init__(self, store: VectorStore) -> None:
        self._store = store

    async def read(
        self,
        after: Positions,
        ends: Positions,
        namespace: str | None = None,
        resource_kinds: Collection[ResourceKind] = tuple(WATCHED),
        collections: Collection[str] | None = None,
    ) -> ChangeRange:
        """The next changes behind ``after``; there are more while ``reached`` is short of ``ends``.

        ``namespace`` None: of all. ``collections`` None: of all that the kinds lie in.
        """
        open_ends = {one: end for one, end in ends.items() if end > after.get(one, 0)}
        reached = {**after, **open_ends}
        if not open_ends:
            return ChangeRange([], reached)
        where = OneOf(
            tuple(_between(one, after.get(one, 0), end) for one, end in open_ends.items())
        )
        found: list[tuple[Watched | None, Record]] = []
        bound: int | None = None
        for collection in _collections(resource_kinds) if collections is None else collections:
            records = await self._scroll(collection, namespace, where)
            found += ((BY_COLLECTION.get(collection), record) for record in records)
            if len(records) == _BATCH:  # what lies behind the last of them is not read yet
                last = records[-1].payload[CHANGE_SEQ]
                bound = last if bound is None else min(bound, last)
        if bound is not None:
            found = [one for one in found if one[1].payload[CHANGE_SEQ] < bound]
            for one, end in open_ends.items():
                reached[one] = max(after.get(one, 0), min(end, bound - 1))
        changes = [
            change
            for watched, record in found
            if (change := _change(watched, record)) is not None and change.concerns(resource_kinds)
        ]
        changes.sort(key=lambda one: (one.seq, one.writer_id))
        return ChangeRange(changes, reached)

    async def _scroll(
        self, collection: str, namespace: str | None, where: Condition
    ) -> list[Record]:
        keys = _STONE_KEYS
        if collection != TOMBSTONES:
            keys = (*_STAMP_KEYS, BY_COLLECTION[collection].id_key)
        if collection == PATTERNS:
            keys = (*keys, *_SOURCES)
        return await self._store.scroll(
            collection, namespace, [where], limit=_BATCH, order=_BY_NUMBER, payload=keys
        )


def _collections(resource_kinds: Iterable[ResourceKind]) -> list[str]:
    return [*(WATCHED[resource_kind].collection for resource_kind in resource_kinds), TOMBSTONES]


def _between(writer_id: str, after: int, end: int) -> Condition:
    return AllOf((Equals(WRITER_ID, writer_id), Range(CHANGE_SEQ, gt=after, lte=end)))


def _change(watched: Watched | None, record: Record) -> Change | None:
    """The change that a stamp tells of; None for a delete that is under way or of other kinds."""
    payload = record.payload
    by, seq = payload[WRITER_ID], payload[CHANGE_SEQ]
    if watched is None and GENERATION in payload:
        cleared = ResourceKind(payload["resource_kind"]) if payload["resource_kind"] else None
        return Change(record.namespace, cleared, "", by, seq, cleared=True)
    if watched is None:
        if not payload["done"] or payload["resource_kind"] not in WATCHED:
            return None
        resource_kind = ResourceKind(payload["resource_kind"])
        return Change(record.namespace, resource_kind, payload["id"], by, seq, deleted=True)
    stored = (payload[STORED_BY], payload[STORED_SEQ]) if STORED_SEQ in payload else None
    learned = watched.resource_kind is ResourceKind.PATTERN and (
        payload["kind"] in _LEARNED_KINDS
        or any(payload.get(key) for key in ("source_episode_ids", "source_pattern_ids"))
    )
    identity = payload[watched.id_key]
    return Change(
        record.namespace, watched.resource_kind, identity, by, seq, False, stored, learned
    )


def short_of(reached: Positions, ends: Positions) -> bool:
    """Whether there is more to read."""
    return any(reached.get(one, 0) < end for one, end in ends.items())
