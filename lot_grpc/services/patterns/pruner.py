"""Pruning: deleting patterns that did not prove useful.

First it is decided which, then each is deleted by itself (``Patterns.delete_as_seen``), on the
condition that it is still as it was looked at. A call that dies half-way has deleted some of them.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from lot_grpc.domain.errors import invalid
from lot_grpc.domain.query import PatternFilter
from lot_grpc.ports import Condition, Order, Range, Record, VectorStore
from lot_grpc.services.patterns.patterns import Patterns
from lot_grpc.services.patterns.ranked import NOT_PINNED, RANK_KEYS, all_but_the_best, pattern_rank
from lot_grpc.services.patterns.spec import PATTERN
from lot_grpc.services.records.collections import PATTERNS, SORT_KEY
from lot_grpc.services.records.patterns import pattern_conditions
from lot_grpc.services.scanning import scan
from lot_grpc.services.time_slice import TimeSlice

IDS_REPORTED = 1000
"""How many of the deleted are named."""


@dataclass(frozen=True, slots=True)
class PruneDraft:
    """What to prune: those ``criteria`` lets through, not pinned, used ``min_usage_count`` times.

    ``max_success_rate``: all at most this good; None is none. ``max_remaining`` of the others, the
    best; 0 is all.
    """

    criteria: PatternFilter
    max_success_rate: float | None = None
    min_usage_count: int = 0
    max_remaining: int = 0
    dry_run: bool = False

    def check(self) -> None:
        """Raise RequestInvalidError if there is no criterion."""
        if self.max_success_rate is None and not self.max_remaining:
            raise invalid(
                "",
                "prune_patterns.criterion",
                "set max_success_rate, max_remaining or both (max_success_rate 1 deletes all "
                "patterns that match the filter)",
            )

    def touched(self) -> list[Condition]:
        """The conditions on what the call may delete."""
        where = [*pattern_conditions(self.criteria), NOT_PINNED]
        if self.min_usage_count:
            where.append(Range("usage_count", gte=self.min_usage_count))
        return where


@dataclass(frozen=True, slots=True)
class Pruned:
    """What was, or would be, deleted; ``pattern_ids`` the first of them, the worst first.

    ``skipped`` were edited, used or given feedback meanwhile. ``oldest_remaining_time`` in
    microseconds, None if nothing is kept; ``elapsed`` in seconds.
    """

    deleted: int
    skipped: int
    remaining: int
    pattern_ids: tuple[str, ...]
    oldest_remaining_time: int | None
    elapsed: float


class PatternPruner:
    """Prunes patterns."""

    def __init__(self, store: VectorStore, patterns: Patterns) -> None:
        self._store = store
        self._patterns = patterns

    async def prune(self, namespace: str, draft: PruneDraft) -> Pruned:
        """Delete what the draft selects; with ``dry_run`` only return it."""
        draft.check()
        started = time.perf_counter()
        doomed = await self._doomed(namespace, draft)
        deleted_now = doomed if draft.dry_run else await self._delete(doomed)
        where = pattern_conditions(draft.criteria)
        left = await self._store.count(PATTERNS, namespace, where)
        return Pruned(
            deleted=len(deleted_now),
            skipped=len(doomed) - len(deleted_now),
            remaining=left - len(deleted_now) if draft.dry_run else left,
            pattern_ids=tuple(
                record.payload["pattern_id"] for record in deleted_now[:IDS_REPORTED]
            ),
            oldest_remaining_time=await self._oldest(
                namespace, where, deleted_now if draft.dry_run else []
            ),
            elapsed=time.perf_counter() - started,
        )

    async def _doomed(self, namespace: str, draft: PruneDraft) -> list[Record]:
        """What to delete, the worst first: bad patterns, and the surplus of the others."""
        where = draft.touched()
        doomed: list[Record] = []
        if draft.max_success_rate is not None:
            bad = [*where, Range("success_rate", lte=draft.max_success_rate)]
            doomed += await self._all_but_the_best(namespace, bad, 0)
            where.append(Range("success_rate", gt=draft.max_success_rate))
        if draft.max_remaining:
            doomed += await self._all_but_the_best(namespace, where, draft.max_remaining)
        return doomed

    async def _all_but_the_best(
        self, namespace: str, where: list[Condition], keep: int
    ) -> list[Record]:
        if await self._store.count(PATTERNS, namespace, where) <= keep:
            return []
        keys = (*PATTERN.seen_keys, *RANK_KEYS)
        records = scan(self._store, PATTERNS, namespace, where, payload=keys)
        return await all_but_the_best(records, pattern_rank, keep)

    async def _delete(self, doomed: list[Record]) -> list[Record]:
        time_slice = TimeSlice()
        deleted = []
        for record in doomed:
            if await self._patterns.delete_as_seen(record):
                deleted.append(record)
            await time_slice.give_way()
        return deleted

    async def _oldest(
        self, namespace: str, where: list[Condition], deleted_now: list[Record]
    ) -> int | None:
        """The creation time of the oldest remaining pattern."""
        if not deleted_now:
            oldest = await self._store.scroll(
                PATTERNS,
                namespace,
                where,
                limit=1,
                order=Order(SORT_KEY),
                payload=("create_time",),
            )
            return int(oldest[0].payload["create_time"]) if oldest else None
        without = {record.id for record in deleted_now}
        keys = ("create_time",)
        async for record in scan(self._store, PATTERNS, namespace, where, payload=keys):
            if record.id not in without:
                return int(record.payload["create_time"])
        return None
