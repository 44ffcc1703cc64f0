"""The worst of many records, without blocking the event loop for a large sort."""

from __future__ import annotations

import heapq
from collections.abc import AsyncIterator
from typing import Any

from lot_grpc.ports import Equals, Payload, Record
from lot_grpc.services.records.collections import SORT_KEY
from lot_grpc.services.resource_spec import Rank
from lot_grpc.services.time_slice import TimeSlice

RANK_KEYS = ("reliability", "success_rate", "usage_count", SORT_KEY)

NOT_PINNED = Equals("pinned", False)

_RUN = 1000


def pattern_rank(payload: Payload) -> tuple[float, ...]:
    """Orders patterns by reliability, success rate, use, and then age, the newer first."""
    return tuple(payload[key] for key in RANK_KEYS)


async def all_but_the_best(records: AsyncIterator[Record], rank: Rank, keep: int) -> list[Record]:
    """All records but the best ``keep``, the worst first.

    Sorted in runs that are merged, each step a short one.
    """
    time_slice = TimeSlice()
    runs: list[list[tuple[tuple[Any, ...], str, Record]]] = [[]]
    total = 0
    async for record in records:
        if len(runs[-1]) == _RUN:
            runs[-1].sort(key=_by_rank)
            runs.append([])
        runs[-1].append((rank(record.payload), record.id, record))
        total += 1
    runs[-1].sort(key=_by_rank)
    worst: list[Record] = []
    for _, _, record in heapq.merge(*runs, key=_by_rank):
        if len(worst) >= total - keep:
            break
        worst.append(record)
        await time_slice.give_way()
    return worst


def _by_rank(one: tuple[tuple[Any, ...], str, Record]) -> tuple[tuple[Any, ...], str]:
    return one[:2]
