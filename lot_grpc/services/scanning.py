"""Scans all records that match conditions, in batches that yield to other calls."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

from lot_grpc.ports import Condition, Equals, IdIn, Not, Order, Range, Record, VectorStore
from lot_grpc.services.records.collections import SORT_KEY
from lot_grpc.services.time_slice import TimeSlice

_BATCH = 100


async def scan(
    store: VectorStore,
    collection: str,
    namespace: str | None,
    where: Sequence[Condition],
    *,
    payload: bool | tuple[str, ...] = True,
    vectors: bool = False,
    descending: bool = False,
    key: str = SORT_KEY,
    batch: int = _BATCH,
) -> AsyncGenerator[Record, None]:
    """Every record of a collection that has ``key``, in its order; concurrent writes may be missed.

    ``payload`` names the keys to read, True is all; ``descending`` is newest first; ``key`` is an
    indexed integer; ``batch`` are read at once.
    """
    keys = payload if isinstance(payload, bool) else (*payload, key)
    order = Order(key, descending=descending)
    time_slice = TimeSlice()
    behind: list[Condition] = []
    edge: int | None = None
    seen: tuple[str, ...] = ()  # several records may have one key
    while True:
        records = await store.scroll(
            collection,
            namespace,
            [*where, *behind],
            limit=batch,
            order=order,
            payload=keys,
            vectors=vectors,
        )
        for record in records:
            yield record
            await time_slice.give_way()
        if len(records) < batch:
            return
        last = records[-1].payload[key]
        at_edge = tuple(record.id for record in records if record.payload[key] == last)
        seen = at_edge + (seen if last == edge else ())
        edge = last
        if key != SORT_KEY and len(seen) >= batch:  # very many: the rest of them by sort key
            theirs = [*where, Equals(key, edge), Not(IdIn(seen))]
            async for record in scan(
                store, collection, namespace, theirs, payload=payload, vectors=vectors
            ):
                yield record
            behind = [Range(key, lt=edge) if descending else Range(key, gt=edge)]
        else:
            bound = Range(key, lte=edge) if descending else Range(key, gte=edge)
            behind = [bound, Not(IdIn(seen))]
