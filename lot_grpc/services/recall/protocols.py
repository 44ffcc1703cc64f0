"""What ranks hits besides their relevance."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from lot_grpc.domain.context_stats import Evidence
from lot_grpc.ports import Condition, Record


class Matching(Protocol):
    """Finds resources that declare themselves relevant to a query."""

    async def matching(
        self, namespace: str, texts: Sequence[str], where: Sequence[Condition]
    ) -> Collection[str]:
        """The points of those relevant to any of the texts, among ``where``."""


class Learned(Protocol):
    """Looks up what outcomes on similar queries say about resources."""

    async def nothing(self, namespace: str) -> bool:
        """Whether there is none in the namespace; False if that is not known without a search."""

    async def of(
        self, namespace: str, vector: Sequence[float], records: Sequence[Record]
    ) -> Mapping[str, Evidence]:
        """By point, for those with any outcomes; ``vector`` is the query's."""
