"""Which memories are true at a time, as conditions of a search."""

from __future__ import annotations

from lot_grpc.domain.query import MemoryFilter
from lot_grpc.ports import Condition, Not, OneOf
from lot_grpc.services.records.collections import MEMORIES
from lot_grpc.services.records.memories import known_by, untrue_at
from lot_grpc.services.runtime import Runtime


class Validity:
    """Makes the conditions on what is true."""

    def __init__(self, runtime: Runtime) -> None:
        self._store = runtime.store
        self._time = runtime.time

    async def conditions(
        self, namespace: str, criteria: MemoryFilter, as_of: int | None = None
    ) -> list[Condition]:
        """The conditions on what is true as of a time; None: now.

        A filter for superseded memories only ignores when they were superseded. Any condition makes
        a search a tenth slower; with the embedded store a count, which takes a fortieth of a
        search, first finds whether there is anything to omit.
        """
        time = self._time.now() if as_of is None else as_of
        untrue = untrue_at(time, superseded=bool(criteria.superseded))
        if as_of is not None:
            return [*map(Not, untrue), known_by(as_of)]
        counted = self._store.exclusive
        if counted and not await self._store.count(MEMORIES, namespace, [OneOf(tuple(untrue))]):
            return []
        return [*map(Not, untrue)]
