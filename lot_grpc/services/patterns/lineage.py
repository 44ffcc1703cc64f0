"""Where a pattern comes from: what it superseded, and the groups it was distilled into."""

from __future__ import annotations

from lot_grpc.domain.pattern import Pattern
from lot_grpc.ports import Equals, Order, VectorStore
from lot_grpc.services.lineage.lineage import MOST_OF_A_RELATION, Lineage, Relation, Relative
from lot_grpc.services.patterns.spec import PATTERN
from lot_grpc.services.records.collections import PATTERNS, SORT_KEY
from lot_grpc.services.records.patterns import pattern_from_record, pattern_point
from lot_grpc.services.time_source import TimeSource


class PatternLineage(Lineage[Pattern]):
    """The lineage of all patterns."""

    def __init__(self, store: VectorStore, time_source: TimeSource) -> None:
        super().__init__(PATTERN, store, time_source)

    async def read(self, namespace: str, id: str) -> list[Relative[Pattern]]:
        """Also its group and the groups above, and the members it was distilled from."""
        return [
            *await super().read(namespace, id),
            *await self._relatives(namespace, id, Relation.GROUP, "parent_pattern_id"),
            *await self._members(namespace, id),
        ]

    async def _members(self, namespace: str, id: str) -> list[Relative[Pattern]]:
        where = [Equals("parent_pattern_id", id)]
        rows = await self._store.scroll(
            PATTERNS, namespace, where, limit=MOST_OF_A_RELATION, order=Order(SORT_KEY)
        )
        found = {row.id: row for row in rows}
        point = pattern_point(namespace, id)
        own = (await self._store.get(PATTERNS, namespace, [point])).get(point)
        sources = own.payload.get("source_pattern_ids", ()) if own else ()
        points = [pattern_point(namespace, one) for one in sources[:MOST_OF_A_RELATION]]
        if more := [one for one in points if one not in found]:
            found |= await self._store.get(PATTERNS, namespace, more)
        found.pop(point, None)
        members = list(found.values())[:MOST_OF_A_RELATION]
        return [Relative(Relation.MEMBER, pattern_from_record(one), 1) for one in members]
