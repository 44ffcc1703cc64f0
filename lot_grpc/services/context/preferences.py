"""The preferences of a context, limited in number."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from lot_grpc.domain.preference import LEARNED, Preference, task_hash
from lot_grpc.ports import Condition, Equals, Not, Order, Record, VectorStore
from lot_grpc.services.records.collections import PREFERENCES, SORT_KEY
from lot_grpc.services.records.preferences import (
    TASK_HASH,
    preference_conditions,
    preference_from_record,
)

MOST: Final = 50
"""Preferences in all, the newest ones by creation."""

MOST_LEARNED: Final = 5
"""Maximum number of those learned from feedback on other tasks, if no categories are given."""

MOST_OF_TASK: Final = 10
"""Of those that feedback taught about the task, the latest."""

_NEWEST_FIRST = Order(SORT_KEY, descending=True)


async def liked(
    store: VectorStore, namespace: str, task: str, categories: tuple[str, ...]
) -> tuple[Preference, ...]:
    """Those of the categories, or of all.

    Of all, what was learned of this very task comes first, the latest at its head; then what was
    set, then what else was learned of late.
    """
    if categories:
        found = await _newest(store, namespace, preference_conditions(categories), MOST)
        return tuple(preference_from_record(one) for one in found)
    own = Equals(TASK_HASH, task_hash(task))
    learned = Equals("category", LEARNED)
    of_task, others, extracted = await asyncio.gather(
        _newest(store, namespace, [own], MOST),
        _newest(store, namespace, [Not(learned)], MOST),
        _newest(store, namespace, [learned], MOST_LEARNED),
    )
    of_task.sort(key=lambda one: int(one.payload["update_time"]), reverse=True)
    records = {one.id: one for one in (*of_task[:MOST_OF_TASK], *others, *extracted)}
    return tuple(preference_from_record(one) for one in list(records.values())[:MOST])


async def _newest(
    store: VectorStore, namespace: str, where: Sequence[Condition], limit: int
) -> list[Record]:
    return await store.scroll(PREFERENCES, namespace, where, limit=limit, order=_NEWEST_FIRST)
