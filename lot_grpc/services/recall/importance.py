"""Reads the page, and of the near-ties below it only those important enough to rise onto it.

Nearly every hit may be a near-tie, and a record may be large. Few are important enough, and the
store finds these by their index.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from lot_grpc.domain.fusion import Relevance
from lot_grpc.domain.ranking import from_importance
from lot_grpc.ports import Condition, IdIn, Range, Record, VectorStore

_KEY: Final = "importance"
_ROUNDING: Final = 1e-9
"""Keeps rounding from excluding a tie."""


class ImportanceReader:
    """Reads the near-ties of a collection whose records have an importance."""

    def __init__(
        self,
        store: VectorStore,
        collection: str,
        importance: Callable[[Record], float] | None,
    ) -> None:
        """``importance`` is that of a record, in [0, 1]; None where records have none."""
        self._store = store
        self._collection = collection
        self._importance = importance

    async def read(
        self,
        namespace: str,
        near: Sequence[Relevance],
        limit: int,
        weight: float,
        known: Mapping[str, Record],
    ) -> Mapping[str, Record] | None:
        """The records that can be among the best ``limit``.

        None if records have no importance, or if one of the page was deleted meanwhile, so that
        others move up.

        Args:
            namespace: Their namespace.
            near: The near-ties, best first.
            limit: The size of the page.
            weight: The most that importance adds to a relevance or takes from it.
            known: Records that were read already.
        """
        if self._importance is None:
            return None
        page, below = near[:limit], near[limit:]
        records = {one.id: known[one.id] for one in page if one.id in known}
        if unread := [one.id for one in page if one.id not in known]:
            records |= await self._store.get(self._collection, namespace, unread)
        if len(records) < len(page):
            return None
        if not below:
            return records
        least = min(
            one.value + from_importance(self._importance(records[one.id])) * weight for one in page
        )
        # A tie stays below.
        rising = [one.id for one in below if one.value + weight > least]
        if rising:
            nearest = below[0].value
            needed = 0.5 + (least - nearest) / (2.0 * weight)
            if nearest + from_importance(needed) * weight > least:
                needed -= _ROUNDING
            where: list[Condition] = [IdIn(tuple(rising)), Range(_KEY, gt=needed)]
            found = await self._store.scroll(self._collection, namespace, where, limit=len(rising))
            records |= {record.id: record for record in found}
        return records
