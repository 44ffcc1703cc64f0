"""Makes the cells of outcomes that an older version recorded, which had none.

Without it what a store of an older version had learned would no longer move any ranking. The cells
follow from the log alone, so that a process that is killed does it again and comes to the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from lot_grpc.domain.cells import Cell, Fading
from lot_grpc.ports import Embedder, Equals, VectorStore
from lot_grpc.services.records.cells import cell_point, cell_record
from lot_grpc.services.records.collections import CELLS, OUTCOMES, SORT_KEY
from lot_grpc.services.records.outcomes import SETTLED, OutcomeFact, outcome_from_record
from lot_grpc.services.scanning import scan
from lot_grpc.services.store_contract import CELLS_MADE, change_contract, contract_row
from lot_grpc.services.time_slice import TimeSlice

_BATCH = 32
_WHAT = "learning from earlier outcomes"


@dataclass(slots=True)
class _Making:
    """A cell on its way, from the first outcome on its query."""

    first: OutcomeFact
    sort_key: int
    cell: Cell = field(default_factory=Cell)


async def needs_cells(store: VectorStore) -> bool:
    """Whether an older version recorded outcomes that have no cells yet."""
    return not (await contract_row(store)).get(CELLS_MADE)


async def make_cells(
    store: VectorStore,
    embedder: Embedder,
    fading: Fading,
    progress: Callable[[str, int, int], None] | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> int:
    """Make them; return how many. Once ``stop`` says so it returns with the rest left undone.

    Cells that are there stay as they are: an outcome made them since.
    """
    if not await needs_cells(store):
        return 0
    made = await _from_the_log(store, fading)
    points = list(made)
    for start in range(0, len(points), _BATCH):
        if stop():
            return start
        batch = points[start : start + _BATCH]
        await _insert(store, embedder, {point: made[point] for point in batch})
        if progress is not None:
            progress(_WHAT, min(start + _BATCH, len(points)), len(points))
    await store.flush()
    await change_contract(store, {CELLS_MADE: True})
    return len(points)


async def _from_the_log(store: VectorStore, fading: Fading) -> dict[str, _Making]:
    """By point, what the settled outcomes come to; others are still to be taken in."""
    made: dict[str, _Making] = {}
    time_slice = TimeSlice()
    async for row in scan(store, OUTCOMES, None, [Equals(SETTLED, True)]):
        await time_slice.give_way()
        fact = outcome_from_record(row)
        if not (fact.query and fact.pattern_id):
            continue
        point = cell_point(fact.namespace, fact.pattern_id, fact.query)
        making = made.setdefault(point, _Making(fact, row.payload[SORT_KEY]))
        making.cell = making.cell.record(fact.value, fact.create_time, fading)
    return made


async def _insert(store: VectorStore, embedder: Embedder, made: dict[str, _Making]) -> None:
    vectors: Sequence[Sequence[float]] = [
        (await embedder.embed_query(one.first.query)).vector for one in made.values()
    ]
    await store.insert(
        CELLS,
        [
            cell_record(
                one.first.namespace,
                point,
                one.first.pattern_id,
                one.first.query,
                vector,
                one.cell,
                [],
                one.sort_key,
            )
            for (point, one), vector in zip(made.items(), vectors, strict=True)
        ],
    )
