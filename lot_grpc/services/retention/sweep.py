"""Keeping namespaces within their policies: by age first, then by number.

What a sweep may touch is said once for each kind (``RetainedKind``). Pinned things and RUNNING
episodes are neither deleted nor counted. Each thing is deleted by itself, on the condition that it
is still as it was looked at, so what is edited or used meanwhile is spared until the next sweep.
Several processes may sweep at once.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from lot_grpc.domain.policy import NamespacePolicy, StoredPolicy
from lot_grpc.ports import Condition, Record, VectorStore
from lot_grpc.services.housekeeping import Swept
from lot_grpc.services.patterns.ranked import Rank, all_but_the_best
from lot_grpc.services.retention.policies import Policies
from lot_grpc.services.scanning import scan
from lot_grpc.services.time_slice import TimeSlice
from lot_grpc.services.time_source import TimeSource


@dataclass(frozen=True, slots=True)
class Bound:
    """How much of a kind a policy keeps: 0 and None are all. Age in microseconds."""

    number: int
    age: int | None


@dataclass(frozen=True, slots=True)
class RetainedKind:
    """A kind, as a sweep sees it.

    Args:
        kind: Its name in ``lot.v1.ResourceKind``, for example ``PATTERN``.
        collection: Where it lies; with sort keys.
        touched: What a sweep may delete.
        older_than: What holds of those last touched before a time. Its keys are indexed.
        keys: What ``rank`` and ``delete`` read of a record.
        rank: Which are better; None is the newest.
        bound: Its bound in a policy.
        delete: Deletes one that is still as the record says; False spares it.
    """

    resource_kind: str
    collection: str
    touched: Sequence[Condition]
    older_than: Callable[[int], list[Condition]]
    keys: tuple[str, ...]
    rank: Rank | None
    bound: Callable[[NamespacePolicy], Bound]
    delete: Callable[[Record], Awaitable[bool]]


class RetentionSweep:
    """Sweeps, and says what a sweep would do."""

    def __init__(
        self,
        store: VectorStore,
        time_source: TimeSource,
        policies: Policies,
        table: Sequence[RetainedKind],
    ) -> None:
        self._store = store
        self._time = time_source
        self._policies = policies
        self._table = table

    async def pending(self, namespace: str, policy: NamespacePolicy) -> dict[str, int]:
        """How many things a sweep would delete now under a policy, by kind; none left out."""
        pending = {}
        for kept in self._table:
            bound = kept.bound(policy)
            aged = await self._count(kept, namespace, self._aged(kept, bound))
            surplus = await self._surplus(kept, namespace, bound)
            if aged + surplus:
                pending[kept.resource_kind] = aged + surplus
        return pending

    async def sweep(self) -> Swept:
        """Delete what is over a bound in any namespace; say how much, by namespace and kind."""
        counts: dict[str, Mapping[str, int]] = {}
        async for stored in self._policies.all():
            deleted = await self._sweep(stored)
            if deleted:
                counts[stored.namespace] = deleted
        return Swept("deleted what was over the bounds of a policy", counts)

    async def _sweep(self, stored: StoredPolicy) -> dict[str, int]:
        counts = {}
        for kept in self._table:
            bound = kept.bound(stored.policy)
            deleted = await self._delete_aged(kept, stored.namespace, bound)
            deleted += await self._delete_surplus(kept, stored.namespace, bound)
            if deleted:
                counts[kept.resource_kind] = deleted
        return counts

    async def _delete_aged(self, kept: RetainedKind, namespace: str, bound: Bound) -> int:
        aged = self._aged(kept, bound)
        if aged is None:
            return 0
        where = [*kept.touched, *aged]
        records = [
            record
            async for record in scan(
                self._store, kept.collection, namespace, where, payload=kept.keys
            )
        ]
        return await self._delete(kept, records)

    async def _delete_surplus(self, kept: RetainedKind, namespace: str, bound: Bound) -> int:
        surplus = await self._surplus(kept, namespace, bound)
        if not surplus:
            return 0
        if kept.rank is None:
            worst = await self._all_but_the_newest(kept, namespace, bound.number)
        else:
            records = scan(self._store, kept.collection, namespace, kept.touched, payload=kept.keys)
            worst = await all_but_the_best(records, kept.rank, bound.number)
        return await self._delete(kept, worst)

    async def _all_but_the_newest(
        self, kept: RetainedKind, namespace: str, keep: int
    ) -> list[Record]:
        """Counted while they are read: another process may have deleted some meanwhile."""
        newest_first = scan(
            self._store,
            kept.collection,
            namespace,
            kept.touched,
            payload=kept.keys,
            descending=True,
        )
        records = [record async for record in newest_first]
        return records[keep:][::-1]

    async def _delete(self, kept: RetainedKind, records: Sequence[Record]) -> int:
        time_slice = TimeSlice()
        deleted = 0
        for record in records:
            deleted += await kept.delete(record)
            await time_slice.give_way()
        return deleted

    def _aged(self, kept: RetainedKind, bound: Bound) -> list[Condition] | None:
        return None if bound.age is None else kept.older_than(self._time.now() - bound.age)

    async def _count(
        self, kept: RetainedKind, namespace: str, more: Sequence[Condition] | None
    ) -> int:
        if more is None:
            return 0
        return await self._store.count(kept.collection, namespace, [*kept.touched, *more])

    async def _surplus(self, kept: RetainedKind, namespace: str, bound: Bound) -> int:
        """How many of those that are not too old are too many."""
        if not bound.number:
            return 0
        there = await self._count(kept, namespace, [])
        aged = await self._count(kept, namespace, self._aged(kept, bound))
        return max(0, there - aged - bound.number)
