"""Writing the heads of groups, and marking their members.

A head and its members name each other. The head is written first, and a run that dies in between is
completed by the next. Concurrent edits are never overwritten.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.pattern import Pattern, PatternContent, search_text
from lot_grpc.kernel.compare_and_set import compare_and_set, replace_as_read, update_as_read
from lot_grpc.ports import Record, VectorStore
from lot_grpc.services.distillation.groups import Group
from lot_grpc.services.indexer import Indexer
from lot_grpc.services.patterns.lineage import Lineage
from lot_grpc.services.records.collections import PATTERNS, SORT_KEY
from lot_grpc.services.records.counters import PENDING, STATS_REVISION
from lot_grpc.services.records.groups import (
    MADE,
    PARENT,
    Seen,
    head_keys,
    made_hashes,
    untouched,
)
from lot_grpc.services.records.patterns import (
    pattern_from_record,
    pattern_point,
    pattern_record,
    preserved_in_edits,
)
from lot_grpc.services.time_slice import TimeSlice
from lot_grpc.services.time_source import TimeSource

_EMBEDDED_AT_ONCE = 8


class Heads:
    """The heads of groups in the store."""

    def __init__(self, store: VectorStore, indexer: Indexer, time_source: TimeSource) -> None:
        self._store = store
        self._indexer = indexer
        self._time = time_source
        self._lineage = Lineage(store, time_source)

    async def write(self, namespace: str, groups: Sequence[Group]) -> None:
        """Write heads, the inner ones first."""
        for start in range(0, len(groups), _EMBEDDED_AT_ONCE):
            some = groups[start : start + _EMBEDDED_AT_ONCE]
            new = [group for group in some if group.head is None]
            await self._insert(namespace, new)
            for group in some:
                if group.head is not None:
                    await self._rewrite(namespace, group)

    async def _insert(self, namespace: str, groups: Sequence[Group]) -> None:
        patterns = [group.pattern for group in groups if group.pattern]
        if not patterns:
            return
        indexed = await self._indexer.vectors([search_text(one.content) for one in patterns])
        records = [
            pattern_record(
                pattern,
                self._time.sort_key(),
                one.vectors,
                {
                    STATS_REVISION: 0,
                    PENDING: [],
                    **head_keys(group.level, group.key, pattern.content, pattern.outcomes),
                },
            )
            for group, pattern, one in zip(groups, patterns, indexed, strict=True)
        ]
        await self._lineage.insert(records)
        stored = await self._store.get(PATTERNS, namespace, [one.id for one in records])
        for group, record in zip(groups, records, strict=True):
            if record.id in stored:
                group.pattern = pattern_from_record(stored[record.id])

    async def _rewrite(self, namespace: str, group: Group) -> None:
        """Replace a head that got members, on top of whatever came between.

        Raises ContentionError.
        """
        assert group.pattern is not None
        made = group.pattern.content
        point = pattern_point(namespace, group.pattern_id)

        async def attempt() -> None:
            found = await self._store.get(PATTERNS, namespace, [point], vectors=True)
            if point not in found:
                return  # deleted in the meantime; the next run regroups its members
            record = found[point]
            old, pattern = pattern_from_record(record), remade(record, made)
            if pattern == old:
                return
            texts = search_text(old.content), search_text(pattern.content)
            indexed = await self._indexer.vectors_after_edit(record, *texts)
            pattern = replace(
                pattern,
                revision=old.revision + 1,
                update_time=max(self._time.now(), old.update_time),
            )
            preserved = preserved_in_edits(record.payload)
            preserved[MADE] = {**preserved[MADE], **_made_now(record, made)}
            new = pattern_record(pattern, record.payload[SORT_KEY], indexed.vectors, preserved)
            await replace_as_read(self._store, PATTERNS, record, new, "revision", STATS_REVISION)
            group.pattern = pattern

        await compare_and_set(ResourceKind.PATTERN, group.pattern_id, attempt)

    async def mark(self, namespace: str, group: Group, time_slice: TimeSlice) -> None:
        """Let the members name their head, where they do not yet."""
        if not group.pattern_id:
            return
        for one in group.members:
            if one.parent != group.pattern_id:
                await self._mark_one(namespace, one.point, one.parent, group.pattern_id, one)
            await time_slice.give_way()
        for below in group.groups:
            parent = below.pattern.content.parent_pattern_id if below.pattern else ""
            if below.pattern is not None and parent != group.pattern_id:
                point = pattern_point(namespace, below.pattern_id)
                if await self._mark_one(namespace, point, parent, group.pattern_id, None):
                    content = replace(below.pattern.content, parent_pattern_id=group.pattern_id)
                    below.pattern = replace(below.pattern, content=content)

    async def _mark_one(
        self, namespace: str, point: str, before: str, head: str, known: Seen | None
    ) -> bool:
        """Set the parent unless it was changed otherwise. As for a counter, the etag stays.

        Raises ContentionError.
        """
        known_payloads = (
            [{STATS_REVISION: known.stats_revision, SORT_KEY: known.sort_key}] if known else []
        )

        async def attempt() -> bool:
            record: Record | None
            if known_payloads:
                record = Record(point, namespace, known_payloads.pop())
            else:
                record = (await self._store.get(PATTERNS, namespace, [point])).get(point)
                if record is None or record.payload.get(PARENT, "") != before:
                    return False
            await update_as_read(self._store, PATTERNS, record, {PARENT: head}, STATS_REVISION)
            return True

        return await compare_and_set(ResourceKind.PATTERN, head, attempt)


def remade(head: Record, made: PatternContent) -> Pattern:
    """The stored head with its regenerated fields, except those that a caller has edited."""
    stored = pattern_from_record(head)
    fields = untouched(stored.content, head.payload[MADE])
    return replace(
        stored, content=replace(stored.content, **{name: getattr(made, name) for name in fields})
    )


def _made_now(head: Record, made: PatternContent) -> dict[str, str]:
    fields = untouched(pattern_from_record(head).content, head.payload[MADE])
    hashes = made_hashes(made)
    return {name: hashes[name] for name in fields}
