"""Applying a change to a target exactly once, whatever dies in between, and whoever else writes.

There is no transaction over records of different collections. So (a) the change is written down in
a journal, insert-only and open; (b) a compare-and-set of the target brings what the change makes of
it, and the change's name into the target's pending ones, in the same write; (c) the change is
marked done once all of its targets have it; (d) the next change of the target drops the names that
are done. From wherever that stopped, doing it again is safe: a change that is named by its target
is applied there already, and a name is dropped only after its change was marked done.
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
    """A record that takes changes in, or is made by the first.

    ``resource`` and ``id`` are its names to a caller. ``pending`` is the key under which it names
    the changes that it has and that may not be done: a list, or a mapping from each to what the
    target remembers of it.
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
    """Let a target take in a change, unless it has; return the target as it then stands.

    Args:
        store: Where the target is.
        journal: What the changes of the target are written down in.
        change: The change's name in the journal, where it is open; None for one that is not written
            down, and may be applied again.
        target: The target.
        write: What the change makes of it.
        remember: What the target remembers of the change, where ``pending`` is a mapping.
        has: Whether a target that remembers this of the change has it. Without it: always.
        unapplied: The target as it was read before the change was written down.

    Raises:
        ContentionError: The change is still open then, and applied by a retry or by recovery.
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
    """The pending changes from then on: in a mapping if there is one, or something to remember."""
    if isinstance(pending, Mapping) or remember is not None:
        left = {one: pending[one] for one in pending if one not in done} if pending else {}
        return {**left, change: remember} if change is not None else left
    own = [change] if change is not None else []
    return [*(one for one in pending if one not in done), *own]
