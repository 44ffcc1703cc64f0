"""Applies a change to a target exactly once, despite crashes and concurrent writers.

There are no transactions across collections. So (a) the change is recorded in a journal,
insert-only and open; (b) a compare-and-set of the target applies it and adds its name to the
target's pending changes, in the same write; (c) the change is marked done once all its targets have
it; (d) the next change of the target removes the names that are done. Wherever this stopped,
repeating it is safe: a change named by its target is applied there already, and a name is removed
only after its change was marked done.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lot_grpc.kernel.compare_and_set import compare_and_set, update_those_as_read
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

    Raises:
        ContentionError: The change is then still open, and applied by a retry or by recovery.
    """

    async def attempt() -> Record | None:
        record = await _read(store, target)
        pending = record.payload.get(target.pending) or () if record is not None else ()
        own = [change] if change is not None else []
        # After the target was read: what was dropped from it since has changed its revision.
        done = await journal.done(target.namespace, [*own, *pending])
        if change is not None and (change in done or _remembers(pending, change, has)):
            return record
        return await write(record, _left(pending, done, change, remember))

    return await compare_and_set(target.resource, target.id, attempt)


@dataclass(frozen=True, slots=True)
class NewChanges:
    """Changes to a target that were recorded after it was read, so none of them is applied yet.

    ``names``: those of the changes in the journal. ``values``: the target's keys with the changes.
    """

    target: Record
    names: Sequence[str]
    values: Mapping[str, Any]


async def apply_new(
    store: VectorStore,
    journal: Journal,
    collection: str,
    batch: Sequence[NewChanges],
    pending: str,
    revision: str,
) -> dict[str, Record]:
    """Apply new changes to several targets, with one conditional write each.

    Args:
        store: The store of the targets.
        journal: The journal that has the changes, not marked as done.
        collection: That of the targets.
        batch: The changes; each target is named once.
        pending: The key of the list of a target's pending changes.
        revision: The key that every write of a target increments.

    Returns:
        The targets afterwards, by point. A target that had changed meanwhile is missing: nothing
        was written to it, and each of its changes must be applied with ``apply_once``.
    """
    done: set[str] = set()
    for namespace in {each.target.namespace for each in batch}:
        targets = (each.target for each in batch if each.target.namespace == namespace)
        done |= await journal.done(
            namespace, {name for target in targets for name in target.payload[pending]}
        )
    changed = []
    for each in batch:
        left = [name for name in each.target.payload[pending] if name not in done]
        changed.append((each.target, {**each.values, pending: [*left, *each.names]}))
    return await update_those_as_read(store, collection, changed, revision) if changed else {}


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
