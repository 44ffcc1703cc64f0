"""What is known of how much a namespace holds, in this process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from lot_grpc.domain.quota import Quota, Usage, payload_bytes
from lot_grpc.ports import IdIn, Not, Record, VectorStore, Where
from lot_grpc.services.records.changes import STAMP_KEYS
from lot_grpc.services.registry import Metered, Registry
from lot_grpc.services.time_slice import TimeSlice

_BATCH: Final = 100

_RECOUNT_SECONDS: Final = 1.0
_RECOUNT_SHARE: Final = 1 / 50
"""On a shared store a count holds for so long, and counting takes no more than this share."""


class Counter:
    """How much a namespace holds, and who may write to it.

    Attributes:
        lock: Held by each write that is counted, and while everything is counted.
        quota: The limits in effect; None: to be read.
        read_time: When they were read, by the monotonic clock.
        usage: How much there is; None: to be counted before it is needed.
        reserved: What calls under way are about to add.
        users: How many writes hold it; then it is not dropped.
    """

    __slots__ = (
        "_stale_after",
        "lock",
        "passed",
        "passing",
        "quota",
        "read_time",
        "reserved",
        "usage",
        "users",
    )

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.quota: Quota | None = None
        self.read_time = 0.0
        self.usage: Usage | None = None
        self.users = 0
        self.passing = 0
        """Writes under way that are not counted, since they began before anything was."""
        self.passed = asyncio.Event()
        self.reserved = Usage()
        self._stale_after = 0.0

    @property
    def counts(self) -> bool:
        """Whether writes are counted."""
        return bool(self.quota)

    def add(self, growth: Usage) -> None:
        """A write was made that changed the usage by this much."""
        if self.usage is not None:
            self.usage += growth

    def known(self, *, exclusive: bool) -> bool:
        """Whether the usage is known, and on a shared store not too old."""
        return self.usage is not None and (exclusive or time.monotonic() < self._stale_after)

    def count(self, usage: Usage, began: float) -> None:
        """Everything was counted, from this time of the monotonic clock on."""
        now = time.monotonic()
        self.usage = usage
        self._stale_after = now + max(_RECOUNT_SECONDS, (now - began) / _RECOUNT_SHARE)


class Passing:
    """A write that is not counted, for as long as it is under way. True if there is one."""

    __slots__ = ("_counters",)

    def __init__(self, counters: Sequence[Counter]) -> None:
        """``counters`` of all namespaces that it writes to; none: it must be counted."""
        self._counters = counters

    def __enter__(self) -> bool:
        for one in self._counters:
            one.users += 1
            one.passing += 1
            one.usage = None
        return bool(self._counters)

    def __exit__(self, *_: object) -> None:
        for one in self._counters:
            one.users -= 1
            one.passing -= 1
            one.passed.set()


@dataclass(frozen=True, slots=True)
class Meter:
    """Measures records of the metered collections."""

    registry: Registry

    @property
    def collections(self) -> Mapping[str, Metered]:
        """The metered collections."""
        return self.registry.metered

    def size(self, collection: str, record: Record) -> Usage:
        """How much a record counts."""
        counted = self.collections[collection].counted
        return Usage(int(counted), payload_bytes(record.payload, STAMP_KEYS))

    async def count(self, store: VectorStore, namespace: str) -> Usage:
        """How much a namespace holds, expired records included that are not yet swept."""
        usage, time_slice = Usage(), TimeSlice()
        for collection in self.collections:
            async for record in _all(store, collection, namespace):
                usage += self.size(collection, record)
                await time_slice.give_way()
        return usage


async def _all(store: VectorStore, collection: str, namespace: str) -> AsyncIterator[Record]:
    after = ""
    while True:
        records = await store.scroll(collection, namespace, (), limit=_BATCH, after=after)
        for record in records:
            yield record
        if len(records) < _BATCH:
            break
        after = records[-1].id
    seen: tuple[str, ...] = ()
    while True:
        where: Where = [Not(IdIn(seen))] if seen else ()
        records = await store.expired(collection, limit=_BATCH, where=where)
        for record in records:
            if record.namespace == namespace:
                yield record
        if len(records) < _BATCH:
            return
        seen += tuple(record.id for record in records)
