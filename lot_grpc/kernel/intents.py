"""Intents: work recorded before it is done, so that whoever finds it unfinished completes it.

An intent is an open record: a change not yet applied to its targets, a delete in progress, work
that another write requested. Its work may be repeated at any time, by several processes; then it is
marked done or deleted. ``recover`` processes those that a dead process left.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lot_grpc.ports import Condition, Equals, IdIn, Not, Record, Scalar, Update, VectorStore

SORT_KEY = "sort_key"
"""Of a record: unique, growing with the time of creation. So another record that takes a deleted
one's id is told from it."""

_BATCH = 500
_REMEMBERED = 10_000

Finish = Callable[[Record], Awaitable[object]]


async def recover(
    store: VectorStore,
    collection: str,
    where: Condition,
    finish: Finish,
    *,
    before: int | None = None,
    begun: str = "create_time",
    payload: bool | tuple[str, ...] = True,
    leaving: tuple[type[Exception], ...] = (),
) -> int:
    """Finish open intents in all namespaces; return how many.

    Args:
        store: The store.
        collection: Their collection.
        where: The condition of open ones, which no longer holds once they are finished.
        finish: Completes one. It may be called repeatedly, and concurrently, for the same one.
        before: Only those begun then or earlier; None: all.
        begun: The key of the time at which they were begun.
        payload: The keys that ``finish`` reads.
        leaving: Errors after which one is left for later.
    """
    passed: set[str] = set()  # that are left, or still open after they were finished
    finished: set[str] = set()
    while True:
        others = [Not(IdIn(tuple(passed)))] if passed else []
        rows = await store.scroll(collection, None, [where, *others], limit=_BATCH, payload=payload)
        for row in rows:
            if row.id in finished or (before is not None and row.payload[begun] > before):
                passed.add(row.id)
                continue
            try:
                await finish(row)
                finished.add(row.id)
            except leaving:
                passed.add(row.id)
            await asyncio.sleep(0)
        if len(rows) < _BATCH:
            return len(finished)


@dataclass(frozen=True, slots=True)
class Mark:
    """The key that says whether a record is open, with its two values."""

    key: str
    open: Scalar = False
    done: Scalar = True


class Journal:
    """A collection of records that are open until their work is done."""

    def __init__(
        self,
        store: VectorStore,
        collection: str,
        mark: Mark,
        *,
        begun: str = "create_time",
        ids_return: bool = False,
    ) -> None:
        """``ids_return``: ids of deleted records may be reused, so names include the sort key.

        Otherwise the name of a record is its point.
        """
        self._store = store
        self._collection = collection
        self._mark = mark
        self._begun = begun
        self._ids_return = ids_return
        self._done_here: dict[str, None] = {}
        """What this process marked lately: it stays done, and needs no look."""

    def name(self, record: Record) -> str:
        """The name by which targets remember a record."""
        return f"{record.id}/{record.payload[SORT_KEY]}" if self._ids_return else record.id

    async def write(self, records: Sequence[Record]) -> set[str]:
        """Write those that do not exist, as open; return the points that this call wrote."""
        written = await self._store.insert(self._collection, records)
        for record in records:
            if record.id in written:  # one of the same point may have been done, and deleted
                self._done_here.pop(self.name(record), None)
        return written

    async def done(self, namespace: str, names: Collection[str]) -> set[str]:
        """Those of the records that are marked done, or no longer exist.

        Call it after reading a target: whatever was removed from it since has changed its revision.
        """
        done = {name for name in names if name in self._done_here}
        others = [name for name in names if name not in done]
        if not others:
            return done
        points = tuple({name.partition("/")[0] for name in others})
        still = await self._store.scroll(
            self._collection,
            namespace,
            [IdIn(points), Equals(self._mark.key, self._mark.open)],
            limit=len(points),
            payload=(SORT_KEY,),
        )
        return done | set(others) - {self.name(row) for row in still}

    async def finish(
        self, namespace: str, name: str, further: Mapping[str, Any] | None = None
    ) -> None:
        """Mark a record as done: all its targets have it. ``further`` is set with the mark."""
        point, _, sort_key = name.partition("/")
        await self._store.update(
            self._collection,
            namespace,
            point,
            set={self._mark.key: self._mark.done, **(further or {})},
            when=[Equals(SORT_KEY, int(sort_key))] if sort_key else [],
        )
        self._remember(name)

    async def finish_all(self, records: Collection[tuple[str, str]]) -> None:
        """Mark several records as done, each given by its namespace and name."""
        done = {self._mark.key: self._mark.done}
        updates = [
            Update(namespace, point, done, [Equals(SORT_KEY, int(sort_key))] if sort_key else [])
            for namespace, name in records
            for point, _, sort_key in [name.partition("/")]
        ]
        await self._store.update_many(self._collection, updates)
        for _, name in records:
            self._remember(name)

    async def recover(
        self,
        before: int,
        finish: Finish,
        *,
        payload: bool | tuple[str, ...] = True,
        leaving: tuple[type[Exception], ...] = (),
    ) -> int:
        """Finish open records written before a time; return how many."""
        return await recover(
            self._store,
            self._collection,
            Equals(self._mark.key, self._mark.open),
            finish,
            before=before,
            begun=self._begun,
            payload=payload,
            leaving=leaving,
        )

    def _remember(self, name: str) -> None:
        self._done_here[name] = None
        if len(self._done_here) > _REMEMBERED:
            del self._done_here[next(iter(self._done_here))]
