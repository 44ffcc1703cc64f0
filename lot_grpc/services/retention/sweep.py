"""Enforces the policies of namespaces: by age first, then by number.

Each kind defines what a sweep may touch (``RetentionRule``). Pinned records and RUNNING episodes
are neither deleted nor counted. Each record is deleted individually, on the condition that it has
not changed, so what is edited or used in the meantime is spared until the next sweep. Several
processes may sweep at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lot_grpc.domain.policy import NamespacePolicy, StoredPolicy
from lot_grpc.ports import Condition, Record
from lot_grpc.services.maintenance import Swept
from lot_grpc.services.operations import ResourcesByKind
from lot_grpc.services.patterns.ranked import all_but_the_best
from lot_grpc.services.resource_spec import Bound, RetentionRule
from lot_grpc.services.retention.policies import Policies
from lot_grpc.services.runtime import Runtime
from lot_grpc.services.scanning import scan
from lot_grpc.services.time_slice import TimeSlice


@dataclass(frozen=True, slots=True)
class _Retained:
    """A kind with retention rules."""

    kind: str
    collection: str
    rule: RetentionRule
    keys: tuple[str, ...]
    """What ranking and deleting one read of it."""


class RetentionSweep:
    """Applies policies, and counts what that would delete."""

    def __init__(self, runtime: Runtime, policies: Policies, resources: ResourcesByKind) -> None:
        self._store = runtime.store
        self._time = runtime.time
        self._policies = policies
        self._resources = resources
        self._retained = [
            _Retained(
                one.kind,
                one.collection.name,
                one.retention,
                (*one.seen_keys, *one.retention.keys),
            )
            for one in resources.registry.retained
            if one.retention is not None
        ]

    async def pending(self, namespace: str, policy: NamespacePolicy) -> dict[str, int]:
        """What a sweep would delete under a policy, as counts by kind; zeros are omitted."""
        pending = {}
        for retained_kind in self._retained:
            bound = retained_kind.rule.bound(policy)
            aged = await self._count(retained_kind, namespace, self._aged(retained_kind, bound))
            surplus = await self._surplus(retained_kind, namespace, bound)
            if aged + surplus:
                pending[retained_kind.kind.upper()] = aged + surplus
        return pending

    async def sweep(self) -> Swept:
        """Delete what exceeds a bound, in all namespaces; return counts by namespace and kind."""
        counts: dict[str, Mapping[str, int]] = {}
        async for stored in self._policies.all():
            deleted = await self._sweep(stored)
            if deleted:
                counts[stored.namespace] = deleted
        return Swept("deleted what was over the bounds of a policy", counts)

    async def _sweep(self, stored: StoredPolicy) -> dict[str, int]:
        counts = {}
        for retained_kind in self._retained:
            bound = retained_kind.rule.bound(stored.policy)
            deleted = await self._delete_aged(retained_kind, stored.namespace, bound)
            deleted += await self._delete_surplus(retained_kind, stored.namespace, bound)
            if deleted:
                counts[retained_kind.kind.upper()] = deleted
        return counts

    async def _delete_aged(self, retained_kind: _Retained, namespace: str, bound: Bound) -> int:
        aged = self._aged(retained_kind, bound)
        if aged is None:
            return 0
        where = [*retained_kind.rule.touched, *aged]
        records = [
            record
            async for record in scan(
                self._store, retained_kind.collection, namespace, where, payload=retained_kind.keys
            )
        ]
        return await self._delete(retained_kind, records)

    async def _delete_surplus(self, retained_kind: _Retained, namespace: str, bound: Bound) -> int:
        surplus = await self._surplus(retained_kind, namespace, bound)
        if not surplus:
            return 0
        if retained_kind.rule.rank is None:
            worst = await self._all_but_the_newest(retained_kind, namespace, bound.number)
        else:
            records = scan(
                self._store,
                retained_kind.collection,
                namespace,
                retained_kind.rule.touched,
                payload=retained_kind.keys,
            )
            worst = await all_but_the_best(records, retained_kind.rule.rank, bound.number)
        return await self._delete(retained_kind, worst)

    async def _all_but_the_newest(
        self, retained_kind: _Retained, namespace: str, keep: int
    ) -> list[Record]:
        """Counted while they are read: another process may have deleted some in the meantime."""
        newest_first = scan(
            self._store,
            retained_kind.collection,
            namespace,
            retained_kind.rule.touched,
            payload=retained_kind.keys,
            descending=True,
        )
        records = [record async for record in newest_first]
        return records[keep:][::-1]

    async def _delete(self, retained_kind: _Retained, records: Sequence[Record]) -> int:
        time_slice = TimeSlice()
        deleted = 0
        for record in records:
            deleted += await self._resources.of(retained_kind.kind).delete_as_seen(record)
            await time_slice.give_way()
        return deleted

    def _aged(self, retained_kind: _Retained, bound: Bound) -> list[Condition] | None:
        return (
            None
            if bound.age is None
            else retained_kind.rule.older_than(self._time.now() - bound.age)
        )

    async def _count(
        self, retained_kind: _Retained, namespace: str, more: Sequence[Condition] | None
    ) -> int:
        if more is None:
            return 0
        return await self._store.count(
            retained_kind.collection, namespace, [*retained_kind.rule.touched, *more]
        )

    async def _surplus(self, retained_kind: _Retained, namespace: str, bound: Bound) -> int:
        """The number of surplus records among those that are not too old."""
        if not bound.number:
            return 0
        there = await self._count(retained_kind, namespace, [])
        aged = await self._count(retained_kind, namespace, self._aged(retained_kind, bound))
        return max(0, there - aged - bound.number)
