"""Reading retrievals, with what became of them."""

from __future__ import annotations

from collections.abc import Sequence

from lot_grpc.domain.errors import RetrievalNotFoundError
from lot_grpc.domain.retrieval import Receipt, Retrieval, RetrievalFilter
from lot_grpc.ports import Record
from lot_grpc.services.paging import Fits, Page, Position, any_size, read_page
from lot_grpc.services.records.collections import RETRIEVALS
from lot_grpc.services.records.retrievals import retrieval_conditions, retrieval_from_record
from lot_grpc.services.runtime import Runtime


class Receipts:
    """The receipts of all namespaces."""

    def __init__(self, runtime: Runtime) -> None:
        self._store = runtime.store
        self._retrievals = runtime.retrievals

    async def get(self, namespace: str, retrieval_id: str) -> Receipt:
        """A receipt. Raises RetrievalNotFoundError."""
        retrieval = await self._retrievals.find(namespace, retrieval_id, scores=True)
        if retrieval is None:
            raise RetrievalNotFoundError(namespace, retrieval_id)
        [receipt] = await self._joined(namespace, [retrieval])
        return receipt

    async def list_page(
        self,
        namespace: str,
        narrowed: RetrievalFilter,
        size: int,
        after: Position | None,
        fits: Fits[Receipt] = any_size,
    ) -> Page[Receipt, Position]:
        """A page of those that match a filter, newest first."""
        await self._retrievals.flush()

        async def read(records: Sequence[Record]) -> list[Receipt]:
            return await self._joined(namespace, [retrieval_from_record(one) for one in records])

        def passes(receipt: Receipt) -> bool:
            return bool(receipt.outcomes) is narrowed.has_outcome

        where = retrieval_conditions(narrowed)
        given = (self._store, RETRIEVALS, namespace, where, size, after, read, fits)
        return await read_page(*given, passes=None if narrowed.has_outcome is None else passes)

    async def _joined(self, namespace: str, retrievals: Sequence[Retrieval]) -> list[Receipt]:
        """Each with the outcomes that name it."""
        return [Receipt(one) for one in retrievals]
