"""The records of a kind that supersede each other, as callers read, review and delete them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TypeVar

from lot_grpc.domain.origin import Review
from lot_grpc.ports import Record
from lot_grpc.services.lineage.lineage import Lineage
from lot_grpc.services.operations import Resources
from lot_grpc.services.records.lineage import SUPERSEDES
from lot_grpc.services.records.origin import review_payload
from lot_grpc.services.resource_spec import ResourceSpec
from lot_grpc.services.runtime import Runtime
from lot_grpc.services.transfer.rows import Row

T = TypeVar("T")
F = TypeVar("F")


class SupersedingResources(Resources[T, F]):
    """Updates the marks of superseded records with every change of those that supersede them."""

    def __init__(self, spec: ResourceSpec, runtime: Runtime, lineage: Lineage[T]) -> None:
        super().__init__(spec, runtime)
        self._lineage = lineage

    async def _insert_records(self, records: Sequence[Record]) -> set[str]:
        return await self._lineage.insert(records)

    async def review(
        self, namespace: str, id: str, given: Review, etag: str
    ) -> tuple[Review, bool]:
        """Set the review of a record, and update the mark of what it supersedes."""
        review, changed = await super().review(namespace, id, given, etag)
        if not changed:  # a try that died may have left the mark as it was
            record = await self.find_record(namespace, id)
            if record is not None and (superseded := record.payload.get(SUPERSEDES)):
                await self._lineage.settle(namespace, superseded)
        return review, changed

    async def _write_review(self, record: Record, review: Review) -> bool:
        after = {**record.payload, **review_payload(review)}
        write = partial(super()._write_review, record, review)
        return await self._lineage.carry_out(record, after, write)

    async def _delete(self, record: Record, unchanged: Sequence[str]) -> bool:
        after = {**record.payload, SUPERSEDES: ""}
        delete = partial(super()._delete, record, unchanged)
        return await self._lineage.carry_out(record, after, delete)

    async def finish_expiry(self, record: Record) -> None:
        """Let what it superseded be recalled again, and delete what belonged to it."""
        if superseded := record.payload.get(SUPERSEDES):
            await self._lineage.settle(record.namespace, superseded)
        await super().finish_expiry(record)

    async def before_import(self, rows: Sequence[Row]) -> None:
        """Let go of what expired records superseded whose ids are taken."""
        await self._lineage.leave_expired([row.record for row in rows])

    async def after_import(
        self, namespace: str, rows: Mapping[str, Row], former: Mapping[str, Record]
    ) -> None:
        """Mark what imported records supersede, and those of them that others supersede."""
        await self._lineage.settle_imported(namespace, rows, former)
