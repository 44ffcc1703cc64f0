"""Reads, of the near-ties below the page, only those important enough to rise onto it.

Nearly every hit may be a near-tie, and a record may be large. Few are important enough, and the
store finds these by their index.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from lot_grpc.domain.ranking import from_importance, places_from_below
from lot_grpc.ports import Condition, IdIn, Range, Record, VectorStore

_KEY: Final = "importance"
_ROUNDING: Final = 1e-9
"""Keeps rounding from excluding a tie."""


class ImportanceReader:
    """Reads the near-ties of a collection whose records have an importance."""

    def __init__(
        self, store: VectorStore, collection: str, importance: Callable[[Record], float]
    ) -> None:
        """``importance`` is that of a record, in [0, 1]."""
        self._store = store
        self._collection = collection
        self._importance = importance

    async def rising(
        self,
        namespace: str,
        near_ties: Sequence[tuple[str, float]],
        limit: int,
        weight: float,
        page: Mapping[str, Record],
    ) -> Mapping[str, Record]:
        """The records beyond the page that may be among the best ``limit``.

        Args:
            namespace: Their namespace.
            near_ties: The near-ties, most relevant first: their points, and their scores without
                what importance adds.
            limit: The size of the page, of the most relevant.
            weight: The most that importance adds to or subtracts from a score.
            page: The records of the page. What was deleted may be missing.
        """
        on_page = [one for one in near_ties[:limit] if one[0] in page]
        below = sorted(near_ties[limit:], key=lambda one: -one[1])
        if not below or not on_page or not weight:
            return {}
        found: dict[str, Record] = {}
        least, slack = self._least(on_page, page, weight), 0.0
        if below[0][1] > min(score for _, score in on_page):
            # Outcomes raised it above some of the page, but only some places are for such hits.
            best = below[: places_from_below(limit)]
            found = await self._store.get(self._collection, namespace, [one for one, _ in best])
            if len(found) == len(best):
                least, slack = max(least, self._least(best, found, weight)), _ROUNDING
            below = below[len(best) :]
        rising = [one for one, score in below if score + weight > least - slack]
        if rising:
            nearest = below[0][1]
            needed = 0.5 + (least - nearest) / (2.0 * weight)
            if slack or nearest + from_importance(needed) * weight > least:
                needed -= _ROUNDING
            where: list[Condition] = [IdIn(tuple(rising)), Range(_KEY, gt=needed)]
            more = await self._store.scroll(self._collection, namespace, where, limit=len(rising))
            found |= {record.id: record for record in more}
        return found

    def _least(
        self, those: Sequence[tuple[str, float]], records: Mapping[str, Record], weight: float
    ) -> float:
        return min(
            score + from_importance(self._importance(records[one])) * weight for one, score in those
        )
