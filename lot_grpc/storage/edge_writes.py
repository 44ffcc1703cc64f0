"""Writes to one shard of the Edge store. Each call is short and holds the GIL.

The read and the write of a call are atomic: there is no ``await`` here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from qdrant_edge import ScrollRequest, UpdateMode, UpdateOperation

from lot_grpc.ports import (
    EXPIRES_KEY,
    NAMESPACE_KEY,
    Micros,
    MultiVector,
    Record,
    Update,
    Where,
)
from lot_grpc.storage.checks import distinct
from lot_grpc.storage.conditions import is_expired
from lot_grpc.storage.edge_points import point, point_vectors
from lot_grpc.storage.edge_reads import applicable, current
from lot_grpc.storage.edge_shard import EDGE_ERRORS, Shard

_CHUNK = 512
"""Size limit of one operation, which no other task can interrupt, in records without vectors."""


def insert(shard: Shard, records: Sequence[Record], now: Micros) -> set[str]:
    """Insert records whose id is free, in one operation; return their ids."""
    fresh = distinct(records)
    expiring = shard.expired_at(now) is not None
    with EDGE_ERRORS:
        if found := shard.raw.retrieve(list(fresh), [EXPIRES_KEY] if expiring else False, False):
            expired = [str(p.id) for p in found if is_expired(p.payload or {}, now)]
            for taken in {str(p.id) for p in found}.difference(expired):
                del fresh[taken]
            if expired:
                shard.raw.update(shard.deleting(expired))
        if fresh:
            # Their ids are free and nothing can run in between; InsertOnly would check again.
            _upsert(shard, list(fresh.values()), UpdateMode.Upsert, added=len(fresh))
    return set(fresh)


def put(shard: Shard, records: Sequence[Record]) -> None:
    """Insert or replace whole records."""
    with EDGE_ERRORS:
        ids: set[Any] = {record.id for record in records}
        added = len(ids) - len(shard.raw.retrieve(list(ids), False, False))
        _upsert(shard, records, UpdateMode.Upsert, added=added)


def replace(shard: Shard, record: Record, when: Where, now: Micros) -> bool:
    """Replace payload and vectors of an existing record in one operation."""
    with EDGE_ERRORS:
        if current(shard, record.namespace, record.id, when, now, whole=False) is None:
            return False
        _upsert(shard, [record], UpdateMode.UpdateOnly)
    return True


def update(
    shard: Shard,
    namespace: str,
    id: str,
    set: Mapping[str, Any],
    unset: Sequence[str],
    when: Where,
    now: Micros,
) -> bool:
    """Set and remove keys in one operation."""
    with EDGE_ERRORS:
        payload = current(shard, namespace, id, when, now, whole=bool(unset))
        if payload is None:
            return False
        shard.note_payloads((set,))
        if unset:
            shard.recent.forget([id])
            kept = {key: value for key, value in payload.items() if key not in unset}
            changed = {**kept, **{k: v for k, v in set.items() if k not in unset}}
            shard.raw.update(UpdateOperation.overwrite_payload([id], changed))
            shard.wrote(1, added=0)
        else:
            _set(shard, [id], shard.recent.differing(id, set))
    return True


def update_many(shard: Shard, updates: Sequence[Update], now: Micros) -> set[str]:
    """Update records that meet their conditions; neighbours with equal changes share a write."""
    with EDGE_ERRORS:
        updated = applicable(shard, updates, now)
        shard.note_payloads(one.set for one in updated)
        changes = [(shard.recent.differing(one.id, one.set), one.id) for one in updated]
        for _, alike in groupby(changes, key=lambda one: repr(one[0])):  # 1 equals 1.0 and True
            same = list(alike)
            _set(shard, [point_id for _, point_id in same], same[0][0])
    return {one.id for one in updated}


def set_vectors(shard: Shard, records: Sequence[Record], now: Micros) -> None:
    """Set named vectors of existing records."""
    ids: list[Any] = [record.id for record in records]
    shard.note_vectors(records)
    with EDGE_ERRORS:
        living = {
            str(found.id): found.payload.get(NAMESPACE_KEY)
            for found in shard.raw.retrieve(ids, [NAMESPACE_KEY, EXPIRES_KEY], False)
            if found.payload and not is_expired(found.payload, now)
        }
        # Edge fails for a missing id, after it has written the others.
        points = [
            point_vectors(record)
            for record in records
            if record.vectors and living.get(record.id) == record.namespace
        ]
        if points:
            shard.recent.forget(ids)
            shard.raw.update(UpdateOperation.update_vectors(points))
            shard.wrote(len(points), added=0)


def delete(shard: Shard, chosen: Any, limit: int) -> tuple[int, bool]:
    """Delete up to ``limit`` matches of a filter; return how many, and whether there are more."""
    request = ScrollRequest(limit=limit, filter=chosen, with_payload=False, with_vector=False)
    with EDGE_ERRORS:
        found, more = shard.raw.scroll(request)
        if found:
            shard.recent.clear()
            shard.raw.update(shard.deleting([one.id for one in found]))
            shard.wrote(len(found), added=0)
    return len(found), more is not None


def chunks(records: Sequence[Record]) -> Iterator[Sequence[Record]]:
    """The records in order, split into chunks of one operation each."""
    start = cost = 0
    for end, record in enumerate(records):
        more = _cost(record)
        if cost + more > _CHUNK and end > start:
            yield records[start:end]
            start, cost = end, 0
        cost += more
    if start < len(records):
        yield records[start:]


def _cost(record: Record) -> int:
    """The cost of writing it, in records without vectors."""
    several = (v for v in record.vectors.values() if isinstance(v, MultiVector))
    return (4 if record.vectors else 1) + sum(2 * len(vector.vectors) for vector in several)


def _set(shard: Shard, ids: list[Any], changed: Mapping[str, Any]) -> None:
    """Set the keys of ``changed`` in existing records.

    Pass only keys that differ: Edge takes 5 us per indexed key, changed or not.
    """
    if not changed:
        return
    recent = [shard.recent.pop(one) for one in ids]
    shard.raw.update(UpdateOperation.set_payload(ids, dict(changed)))
    shard.wrote(len(ids), added=0)
    for record in recent:
        if record is not None:
            shard.recent.keep_changed(record, changed)


def _upsert(shard: Shard, records: Sequence[Record], mode: UpdateMode, added: int = 0) -> None:
    shard.create()
    shard.note(records)
    points = [point(record) for record in records]
    shard.raw.update(UpdateOperation.upsert_points(points, update_mode=mode))
    shard.wrote(len(points), added)
