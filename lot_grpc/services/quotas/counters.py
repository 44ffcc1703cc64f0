"""The counters of all namespaces, with their quotas, and the turns of those who write."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Collection, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

from lot_grpc.domain.errors import QuotaExceededError
from lot_grpc.domain.policy import NamespacePolicy
from lot_grpc.domain.quota import Quota, Usage
from lot_grpc.ports import VectorStore
from lot_grpc.services.quotas.counter import Counter, Meter, Passing
from lot_grpc.services.records.collections import POLICIES
from lot_grpc.services.records.policies import policy_from_record, policy_point

_LOOK_SECONDS: Final = 5.0
"""How long the quota of a shared store, which another process may set, is taken as read."""
_MOST_COUNTERS: Final = 10_000


class Counters:
    """Counts what namespaces hold of the metered collections of a store.

    Attributes:
        default: The quota of namespaces whose policy sets none.
    """

    def __init__(self, store: VectorStore, meter: Meter, default: Quota) -> None:
        self.default = default
        self._store = store
        self._meter = meter
        self._counters: dict[str, Counter] = {}
        self._invalidations = 0
        """How often something happened that may have changed any namespace."""
        self._edits = 0
        """How often a policy was written."""

    def in_effect(self, policy: NamespacePolicy) -> Quota:
        """The limits of a namespace with this policy."""
        return policy.quota.or_else(self.default)

    async def limit_of(self, namespace: str) -> Quota:
        """The limits of a namespace."""
        return (await self.of(namespace)).quota or Quota()

    def require(self, namespace: str, counter: Counter, growth: Usage) -> None:
        """Raise QuotaExceededError if the namespace has no room for this much."""
        quota, used = counter.quota or Quota(), counter.usage or Usage()
        if refused := quota.refused(used + counter.reserved, growth):
            unit, limit, held, added = refused
            raise QuotaExceededError(namespace, unit, limit=limit, used=held, added=added)

    def passing(self, namespaces: Collection[str]) -> Passing:
        """A write to namespaces without a quota, as far as that is known without a look."""
        counters = []
        for namespace in namespaces:
            counter = self._counters.get(namespace)
            if counter is None or counter.counts or self._to_be_read(counter):
                return Passing(())
            counters.append(counter)
        return Passing(counters)

    @asynccontextmanager
    async def writing(
        self, namespaces: Collection[str], *, counted: bool = False
    ) -> AsyncIterator[Mapping[str, Counter]]:
        """The turn of a write; yields the counters of those namespaces that are counted.

        ``counted``: their usage must be known. Whatever fails in between leaves it in doubt.
        """
        everyone: dict[str, Counter] = {}
        passing: list[Counter] = []
        try:
            for name in sorted(set(namespaces)):
                everyone[name] = await self.of(name)
                everyone[name].users += 1
            counters = {name: one for name, one in everyone.items() if one.counts}
            for name, one in everyone.items():
                if name not in counters:
                    passing.append(one)
                    one.passing += 1
                    one.usage = None
            async with AsyncExitStack() as turn:
                for name, one in counters.items():
                    await turn.enter_async_context(one.lock)
                    if counted and not one.known(exclusive=self._store.exclusive):
                        await self._count(name, one)
                try:
                    yield counters
                except QuotaExceededError:
                    raise
                except BaseException:
                    self.invalidate(counters)
                    raise
        finally:
            for one in everyone.values():
                one.users -= 1
            for one in passing:
                one.passing -= 1
                one.passed.set()

    async def _count(self, namespace: str, counter: Counter) -> None:
        """Count everything, once the writes that are not counted have ended."""
        while True:
            while counter.passing:
                counter.passed.clear()
                await counter.passed.wait()
            invalidations, began = self._invalidations, time.monotonic()
            usage = await self._meter.count(self._store, namespace)
            if invalidations == self._invalidations:
                counter.count(usage, began)
                return

    def invalidate(self, counters: Mapping[str, Counter] | None) -> None:
        """Let these namespaces be counted again before their usage is needed; None: all."""
        if counters is None:
            self._invalidations += 1  # also for those that are being counted
            counters = self._counters
        for one in counters.values():
            one.usage = None

    def counting(self) -> list[str]:
        """The namespaces whose writes are counted."""
        return [name for name, one in self._counters.items() if one.counts]

    async def of(self, namespace: str) -> Counter:
        """The counter of a namespace, with its quota read."""
        counter = self._counters.get(namespace)
        if counter is None:
            self._drop_unused()
            counter = self._counters[namespace] = Counter()
        while self._to_be_read(counter):
            edits, read_time = self._edits, time.monotonic()
            counter.users += 1
            try:
                quota = await self._read_quota(namespace)
            finally:
                counter.users -= 1
            if edits == self._edits:  # else it may be an old one
                counter.quota, counter.read_time = quota, read_time
        return counter

    def _to_be_read(self, counter: Counter) -> bool:
        """Whether its quota may have changed since it was read."""
        return counter.quota is None or not (
            self._store.exclusive or time.monotonic() - counter.read_time < _LOOK_SECONDS
        )

    async def _read_quota(self, namespace: str) -> Quota:
        point = policy_point(namespace)
        found = await self._store.get(POLICIES, namespace, [point])
        if point not in found:
            return self.default
        return self.in_effect(policy_from_record(found[point]).policy)

    def policy_written(self, namespaces: Iterable[str] | None) -> None:
        """Read the quota again of namespaces whose policy was written; None: of all."""
        self._edits += 1
        for namespace in self._counters if namespaces is None else namespaces:
            if namespace in self._counters:
                self._counters[namespace].quota = None

    def _drop_unused(self) -> None:
        if len(self._counters) > _MOST_COUNTERS:
            unused = next((name for name, one in self._counters.items() if not one.users), None)
            if unused is not None:
                del self._counters[unused]
