"""Applies a change to a target exactly once, despite crashes and concurrent writers.

There are no transactions across collections. So (a) the change is recorded in a journal,
insert-only and open; (b) a compare-and-set of the target applies it and adds its name to the
target's pending changes, in the same write; (c) the change is marked done once all its targets have
it; (d) the next change of the target removes the names that are done. Wherever this stopped,
repeating it is safe: a change named by its target is applied there already, and a name is removed
only after its change was marked done.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lot_grpc.kernel.compare_and_set import compare_and_set
from lot_grpc.kernel.intents import Journal
from lot_grpc.ports import Record, VectorStore


@dataclass(frozen=True, slots=True)
class Target:
    """A record to which changes are applied, or which the first change creates.

    ``resource`` and ``id`` identify it to a caller. ``pending`` is the key of its applied changes
    that may not be marked done yet: a list, or a mapping from each to what the target remembers of
    it.
    """

    resource: str
    id: str
    namespace: str
    collection: str
    point: str
    pending: str


Write = Callable[[Record | None, Any], Awaitable[Record | None]]
"""Writes what the change makes of a target, on the condition that it still is as read.

It is given the record, None if there is none, and what its ``pending`` is to hold from then on.
Returns the record as it then stands; None if there is nothing to apply the change to. Raises
ConflictError if the target changed in between."""


def _always(remembered: object) -> bool:
    return True


async def apply_once(
    store: VectorStore,
    journal: Journal,
    change: str | None,
    target: Target,
    write: Write,
    *,
    remember: object = None,
    has: Callable[[Any], bool] = _always,
    unapplied: Record | None = None,
) -> Record | None:
    """Apply a change to a target unless it has been applied; return the target afterwards.

    Args:
        store: The store of the target.
        journal: The journal of the target's changes.
        change: The name of the open change in the journal; None for one that is not recorded, and
            may be applied again.
        target: The target.
        write: Applies the change.
        remember: What the target remembers of the change, if ``pending`` is a mapping.
        has: Whether the change is applied, given what the target remembers of it. None: always.
        unapplied: The target as read before the change was recorded.

    Raises:
        ContentionError: The change is then still open, and applied by a retry or by recovery.
    """
    known = [unapplied] if unapplied is not None else []

    async def attempt() -> Record | None:
        fresh = bool(known)
        record = known.pop() if known else await _read(store, target)
        pending = record.payload.get(target.pending) or () if record is not None else ()
        own = [change] if change is not None and not fresh else []
        # After the target was read: what was dropped from it since has changed its revision.
        done = await journal.done(target.namespace, [*own, *pending])
        if change is not None and (change in done or _remembers(pending, change, has)):
            return record
        return await write(record, _left(pending, done, change, remember))

    return await compare_and_set(target.resource, target.id, attempt)


async def _read(store: VectorStore, target: Target) -> Record | None:
    found = await store.get(target.collection, target.namespace, [target.point])
    return found.get(target.point)


def _remembers(pending: Any, change: str, has: Callable[[Any], bool]) -> bool:
    if change not in pending:
        return False
    return has(pending[change]) if isinstance(pending, Mapping) else True


def _left(pending: Any, done: set[str], change: str | None, remember: object) -> Any:
    """The remaining pending changes: a mapping if there is one, or something to remember."""
    if isinstance(pending, Mapping) or remember is not None:
        left = {one: pending[one] for one in pending if one not in done} if pending else {}
        return {**left, change: remember} if change is not None else left
    own = [change] if change is not None else []
    return [*(one for one in pending if one not in done), *own]
