"""Which facts are done with: what counting drops from the aggregate that took them in."""

from __future__ import annotations

from collections.abc import Sequence

from lot_grpc.ports import IdIn, VectorStore


async def settled_among(
    store: VectorStore, collection: str, namespace: str, points: Sequence[str], flag: str
) -> set[str]:
    """Those of the facts whose ``flag`` is set, or that are gone with their time.

    Ask after reading the aggregate: what was dropped from it since has changed its revision.
    """
    if not points:
        return set()
    rows = await store.scroll(
        collection, namespace, [IdIn(tuple(points))], limit=len(points), payload=(flag,)
    )
    return set(points) - {row.id for row in rows if not row.payload[flag]}
