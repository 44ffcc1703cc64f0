"""All records that conditions let through, in batches that give way to other calls."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from lot_grpc.ports import Condition, IdIn, Not, Order, Range, Record, VectorStore
from lot_grpc.services.pacing import Pace
from lot_grpc.services.records.collections import SORT_KEY

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
) -> AsyncIterator[Record]:
    """Every record of a collection with sort keys, by them; what comes meanwhile may be left out.

    ``payload`` names the keys to read, True is all; ``descending`` is newest first.
    """
    keys = payload if isinstance(payload, bool) else (*payload, SORT_KEY)
    order = Order(SORT_KEY, descending=descending)
    pace = Pace()
    edge: int | None = None
    seen: tuple[str, ...] = ()  # two processes may make one sort key
    while True:
        conditions = list(where)
        if edge is not None:
            behind = Range(SORT_KEY, lte=edge) if descending else Range(SORT_KEY, gte=edge)
            conditions += [behind, Not(IdIn(seen))]
        records = await store.scroll(
            collection,
            namespace,
            conditions,
            limit=_BATCH,
            order=order,
            payload=keys,
            vectors=vectors,
        )
        for record in records:
            yield record
            await pace.give_way()
        if len(records) < _BATCH:
            return
        last = records[-1].payload[SORT_KEY]
        at_edge = tuple(record.id for record in records if record.payload[SORT_KEY] == last)
        seen = at_edge + (seen if last == edge else ())
        edge = last
