"""Compare-and-set: read a record, decide, and write on the condition that it has not changed.

This is the only retry loop of the services. It is bounded, and pauses for a random time before each
further attempt, so that the same writers do not collide again.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from lot_grpc.domain.errors import ContentionError, EtagMismatchError
from lot_grpc.kernel.intents import SORT_KEY
from lot_grpc.ports import Condition, Equals, Missing, Record, Update, VectorStore

T = TypeVar("T")

ATTEMPTS = 50

_FIRST_PAUSE_SECONDS = 0.001
_LONGEST_PAUSE_SECONDS = 0.2


class ConflictError(Exception):
    """Another writer came in between: nothing was written, and the attempt must start over.

    Only for use inside ``compare_and_set``; no caller ever sees it.
    """


async def compare_and_set(
    resource: str, id: str, attempt: Callable[[], Awaitable[T]], attempts: int = 0
) -> T:
    """The result of the first attempt that raises no ConflictError.

    There are at most ``attempts``; 0: ``ATTEMPTS``. Each attempt reads again. It may leave behind
    what the next attempt, or a repeat, finds or removes.

    Raises:
        ContentionError: All attempts met a conflict; nothing was written. It names ``resource`` and
            ``id``.
    """
    for number in range(attempts or ATTEMPTS):
        if number:
            await _pause(number - 1)
        try:
            return await attempt()
        except ConflictError:
            continue
    raise ContentionError(resource, id)


async def _pause(number: int) -> None:
    longest = min(_LONGEST_PAUSE_SECONDS, _FIRST_PAUSE_SECONDS * 2**number)
    await asyncio.sleep(random.uniform(0, longest))  # noqa: S311


def require_etag(resource: str, id: str, etag: str, current: str) -> None:
    """Raise EtagMismatchError unless ``etag`` is the current one, or empty for any."""
    if etag and etag != current:
        raise EtagMismatchError(resource, id, etag, current)


def as_read(record: Record, *keys: str) -> list[Condition]:
    """The conditions that it is the record that was read, and its keys have not changed since.

    Its sort key tells it from another that has reused its id, with the same revision maybe.
    """
    values = {key: record.payload.get(key) for key in (*keys, SORT_KEY)}
    return [Missing(key) if value is None else Equals(key, value) for key, value in values.items()]


async def update_as_read(
    store: VectorStore, collection: str, record: Record, changes: Mapping[str, Any], *keys: str
) -> Record:
    """Set ``changes`` in a record if it is as read by its ``keys``; return the new record.

    The first key is the revision, which every write increments. Raises ConflictError.
    """
    changes = {**changes, keys[0]: record.payload.get(keys[0], 0) + 1}
    if not await store.update(
        collection, record.namespace, record.id, set=changes, when=as_read(record, *keys)
    ):
        raise ConflictError
    return Record(record.id, record.namespace, {**record.payload, **changes})


async def update_those_as_read(
    store: VectorStore,
    collection: str,
    changed: Sequence[tuple[Record, Mapping[str, Any]]],
    *keys: str,
) -> dict[str, Record]:
    """Like ``update_as_read``, for several records; return those that were updated, by point."""
    updates = [
        Update(
            record.namespace,
            record.id,
            {**changes, keys[0]: record.payload.get(keys[0], 0) + 1},
            as_read(record, *keys),
        )
        for record, changes in changed
    ]
    updated = await store.update_many(collection, updates)
    return {
        record.id: Record(record.id, record.namespace, {**record.payload, **update.set})
        for (record, _), update in zip(changed, updates, strict=True)
        if record.id in updated
    }


async def replace_as_read(
    store: VectorStore, collection: str, record: Record, new: Record, *keys: str
) -> None:
    """Replace a record and its vectors if it is as read by its ``keys``. Raises ConflictError."""
    if not await store.replace(collection, new, as_read(record, *keys)):
        raise ConflictError


async def insert_new(store: VectorStore, collection: str, record: Record) -> Record:
    """Insert a record that did not exist when it was read. Raises ConflictError."""
    if record.id not in await store.insert(collection, [record]):
        raise ConflictError
    return record
