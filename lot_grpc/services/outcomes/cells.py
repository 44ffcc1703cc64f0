"""Keeps the cells: one a pattern and query, at most ``MAX_CELLS`` a pattern.

A cell takes an outcome in as other targets do (``kernel.apply_once``), but that any cell of the
pattern may have it. Where a pattern has too many, the two with the nearest queries become one: (a)
the one is frozen: it names the other and counts nothing any more; (b) a conditional write of the
other adds its sums and names it in ``taken_in``, in the same point; (c) the frozen one is deleted.
Whoever meets a frozen cell finishes that first.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from lot_grpc.domain.cells import MAX_CELLS, Cell, Fading
from lot_grpc.kernel.compare_and_set import (
    ConflictError,
    compare_and_set,
    insert_new,
    replace_as_read,
    update_as_read,
)
from lot_grpc.kernel.intents import recover
from lot_grpc.ports import Condition, Equals, IdIn, Missing, Not, Record, SearchQuery, VectorStore
from lot_grpc.services.outcomes.history import History
from lot_grpc.services.outcomes.pending_outcomes import PendingOutcomes
from lot_grpc.services.outcomes.query_vectors import QueryVectors
from lot_grpc.services.records.cells import (
    MERGING,
    REVISION,
    TAKEN_IN,
    UNSETTLED,
    cell_from_payload,
    cell_payload,
    cell_point,
    cell_record,
)
from lot_grpc.services.records.collections import CELLS, QUERY_VECTOR
from lot_grpc.services.records.outcomes import OutcomeFact
from lot_grpc.services.time_slice import TimeSlice
from lot_grpc.services.time_source import TimeSource

_MERGED_AT_ONCE = 8
"""So many too many are merged at once: to read all cells of a pattern costs more than to merge."""


class Cells:
    """The cells of all namespaces."""

    def __init__(
        self,
        store: VectorStore,
        time_source: TimeSource,
        pending: PendingOutcomes,
        history: History,
        vectors: QueryVectors,
        fading: Fading,
    ) -> None:
        self._store = store
        self._time = time_source
        self._pending = pending
        self._history = history
        self._vectors = vectors
        self._fading = fading

    async def take_in(
        self, fact: OutcomeFact, vector: Sequence[float] | None, *, new: bool
    ) -> None:
        """Add an outcome to the cell of its query, once.

        ``vector`` is the query's, if at hand. ``new``: this call wrote the fact, so no cell can
        have it yet. Raises ContentionError.
        """
        point = cell_point(fact.namespace, fact.pattern_id, fact.query)
        untouched = [new]

        async def attempt() -> None:
            record = await self._read(fact.namespace, point)
            if not (untouched and untouched.pop()) and await self._taken(fact):
                return
            if record is None and fact.correction is not None:  # it was merged into another
                record = await self._nearest(fact, await self._vector(fact, vector))
                if record is None:
                    return
            if record is None:
                await self._insert(fact, point, await self._vector(fact, vector))
                await self._keep_few(fact.namespace, fact.pattern_id)
            elif record.payload.get(MERGING):
                await self._finish_merge(record)
                raise ConflictError
            else:
                await self._add(fact, record)

        await compare_and_set("cell of pattern", fact.pattern_id, attempt)

    async def finish_merges(self, before: int) -> int:
        """Finish what a dead process began, whenever it did; return how many."""
        return await recover(self._store, CELLS, Not(Missing(MERGING)), self._finish_merge)

    # --- taking in ----------------------------------------------------------------------------

    async def _taken(self, fact: OutcomeFact) -> bool:
        """Whether the fact is settled, or any cell of the pattern has it.

        Asked after the cell was read: who took it in since has changed that cell's revision.
        """
        if fact.point in await self._pending.done(fact.namespace, [fact.point]):
            return True
        holding = [Equals("pattern_id", fact.pattern_id), Equals(UNSETTLED, fact.point)]
        return bool(await self._store.count(CELLS, fact.namespace, holding))

    async def _vector(self, fact: OutcomeFact, vector: Sequence[float] | None) -> Sequence[float]:
        if vector is not None:
            return vector
        return await self._vectors.of(fact.namespace, fact.query, fact.retrieval_id)

    async def _nearest(self, fact: OutcomeFact, vector: Sequence[float]) -> Record | None:
        theirs: list[Condition] = [Equals("pattern_id", fact.pattern_id), Missing(MERGING)]
        search = SearchQuery(QUERY_VECTOR, vector, 1, theirs)
        [found] = await self._store.search(CELLS, fact.namespace, [search])
        return await self._read(fact.namespace, next(iter(found))) if found else None

    async def _insert(self, fact: OutcomeFact, point: str, vector: Sequence[float]) -> None:
        cell = Cell().record(fact.value, fact.create_time, self._fading)
        record = cell_record(
            fact.namespace,
            point,
            fact.pattern_id,
            fact.query,
            vector,
            cell,
            [fact.point],
            self._time.sort_key(),
        )
        await insert_new(self._store, CELLS, record)

    async def _add(self, fact: OutcomeFact, record: Record) -> None:
        """Add to a cell that is there. Raises ConflictError if it changed meanwhile."""
        payload = record.payload
        done = await self._pending.done(fact.namespace, payload[UNSETTLED])
        cell = await self._with(fact, cell_from_payload(payload), payload)
        left = [*(one for one in payload[UNSETTLED] if one not in done), fact.point]
        changed = {**cell_payload(cell), UNSETTLED: left}
        await update_as_read(self._store, CELLS, record, changed, REVISION)

    async def _with(self, fact: OutcomeFact, cell: Cell, payload: dict[str, Any]) -> Cell:
        correction = fact.correction
        if correction is None:
            return cell.record(fact.value, fact.create_time, self._fading)
        later = (await self._history.behind(fact, payload[UNSETTLED])).in_cell
        weight = cell.weight_of(correction.time, later, self._fading)
        if correction.undone is not None:
            cell = cell.without(correction.undone.value_in_rates, weight)
        return cell.along(fact.value, weight) if fact.outcome else cell

    # --- merging ------------------------------------------------------------------------------

    async def _keep_few(self, namespace: str, pattern_id: str) -> None:
        """Merge the nearest cells of a pattern that has too many."""
        theirs: list[Condition] = [Equals("pattern_id", pattern_id), Missing(MERGING)]
        if await self._store.count(CELLS, namespace, theirs) <= MAX_CELLS:
            return
        cells = await self._store.scroll(
            CELLS, namespace, theirs, limit=2 * MAX_CELLS, vectors=True
        )
        time_slice = TimeSlice()
        for one, other in _nearest_pairs(cells, len(cells) - MAX_CELLS + _MERGED_AT_ONCE):
            if await self._freeze(other, one):
                await self._finish_merge(await self._read(namespace, other.id))
            await time_slice.give_way()

    async def _freeze(self, record: Record, into: Record) -> bool:
        """False if it changed, or took in another one that may still be there."""
        payload = record.payload
        if payload.get(TAKEN_IN) and await self._store.get(
            CELLS, record.namespace, payload[TAKEN_IN]
        ):
            return False
        with suppress(ConflictError):
            await update_as_read(self._store, CELLS, record, {MERGING: [into.id]}, REVISION)
            return True
        return False

    async def _finish_merge(self, frozen: Record | None) -> None:
        """Bring a frozen cell into the other one, or thaw it where that one cannot take it."""
        if frozen is None or not frozen.payload.get(MERGING):
            return
        namespace, (point,) = frozen.namespace, frozen.payload[MERGING]

        async def attempt() -> None:
            into = (await self._store.get(CELLS, namespace, [point], vectors=True)).get(point)
            if into is None or into.payload.get(MERGING):
                with suppress(ConflictError):  # thaw it
                    await update_as_read(self._store, CELLS, frozen, {MERGING: []}, REVISION)
                return
            if frozen.id not in into.payload.get(TAKEN_IN, ()):
                await self._absorb(into, frozen)
            theirs: list[Condition] = [IdIn((frozen.id,)), Equals(MERGING, point)]
            await self._store.delete(CELLS, namespace, theirs)

        await compare_and_set("cell of pattern", frozen.payload["pattern_id"], attempt)

    async def _absorb(self, into: Record, frozen: Record) -> None:
        payload = into.payload
        frozen_vector = await self._store.get(CELLS, frozen.namespace, [frozen.id], vectors=True)
        if frozen.id not in frozen_vector:  # another process finished it
            return
        one, other = cell_from_payload(payload), cell_from_payload(frozen.payload)
        there = await self._store.get(CELLS, into.namespace, payload.get(TAKEN_IN, []))
        changed = {
            **payload,
            **cell_payload(one.merge(other, self._fading)),
            REVISION: payload[REVISION] + 1,
            UNSETTLED: [*payload[UNSETTLED], *frozen.payload[UNSETTLED]],
            TAKEN_IN: [*there, frozen.id],
        }
        vector = _between(
            _vector_of(into), one.trials, _vector_of(frozen_vector[frozen.id]), other.trials
        )
        new = Record(into.id, into.namespace, changed, {QUERY_VECTOR: vector})
        await replace_as_read(self._store, CELLS, into, new, REVISION)

    async def _read(self, namespace: str, point: str) -> Record | None:
        return (await self._store.get(CELLS, namespace, [point])).get(point)


def _vector_of(record: Record) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.asarray(record.vectors[QUERY_VECTOR], np.float32)


def _between(
    one: np.ndarray[Any, np.dtype[np.float32]],
    weight: float,
    other: np.ndarray[Any, np.dtype[np.float32]],
    other_weight: float,
) -> list[float]:
    """The mean direction of two, by what was learned from each."""
    mean = one * max(weight, 1e-6) + other * max(other_weight, 1e-6)
    length = float(np.linalg.norm(mean))
    vector: list[float] = (mean / length if length else one).tolist()
    return vector


def _nearest_pairs(cells: Sequence[Record], search: int) -> list[tuple[Record, Record]]:
    """Pairs of the nearest queries, each cell in one pair at most; the older one first."""
    ordered = sorted(cells, key=lambda cell: (cell.payload["sort_key"], cell.id))
    vectors = np.stack([_vector_of(cell) for cell in ordered])
    cosines = vectors @ vectors.T
    rows, columns = np.triu_indices(len(ordered), k=1)
    pairs: list[tuple[Record, Record]] = []
    used: set[int] = set()
    for place in np.argsort(-cosines[rows, columns], kind="stable"):
        one, other = int(rows[place]), int(columns[place])
        if one in used or other in used:
            continue
        used.update((one, other))
        pairs.append((ordered[one], ordered[other]))
        if len(pairs) == search:
            break
    return pairs
