"""Reading receipts: retrievals with their outcomes."""

from __future__ import annotations

from collections.abc import Sequence

from lot_grpc.domain.errors import RetrievalNotFoundError
from lot_grpc.domain.retrieval import Receipt, Retrieval, RetrievalFilter
from lot_grpc.ports import Equals, Record
from lot_grpc.services.operations import Resources
from lot_grpc.services.paging import Fits, Page, Position, any_size, read_each, read_page
from lot_grpc.services.records.collections import OUTCOMES, RETRIEVALS
from lot_grpc.services.records.resource_refs import RESOURCE
from lot_grpc.services.records.retrievals import retrieval_conditions
from lot_grpc.services.retrievals.spec import RETRIEVAL
from lot_grpc.services.retrievals.used import receipts_of
from lot_grpc.services.runtime import Runtime


class Receipts(Resources[Retrieval, RetrievalFilter]):
    """The retrievals of all namespaces."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(RETRIEVAL, runtime)
        self._retrievals = runtime.retrievals

    async def receipt(self, namespace: str, retrieval_id: str) -> Receipt:
        """A retrieval with its outcomes. Raises RetrievalNotFoundError."""
        retrieval = await self._retrievals.find(namespace, retrieval_id, scores=True)
        if retrieval is None:
            raise RetrievalNotFoundError(namespace, retrieval_id)
        [receipt] = await receipts_of(self._store, namespace, [retrieval])
        return receipt

    async def receipts_page(
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
            found = await read_each(records, self.read)
            return await receipts_of(self._store, namespace, found)

        def passes(receipt: Receipt) -> bool:
            return bool(receipt.outcomes) is narrowed.has_outcome

        where = retrieval_conditions(narrowed)
        given = (self._store, RETRIEVALS, namespace, where, size, after, read, fits)
        return await read_page(*given, passes=None if narrowed.has_outcome is None else passes)

    async def finish_expiry(self, record: Record) -> None:
        """Delete the outcomes of an expired retrieval of which nothing was used."""
        own = [Equals(RESOURCE, record.id)]
        await self._store.delete(OUTCOMES, record.namespace, own)
