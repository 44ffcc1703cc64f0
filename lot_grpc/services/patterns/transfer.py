"""Export and import of what patterns have besides their records: unique contents and lineage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lot_grpc.ports import Record, VectorStore
from lot_grpc.services.operations import TransferHooks
from lot_grpc.services.patterns.lineage import Lineage
from lot_grpc.services.records.collections import PATTERNS, REQUESTS
from lot_grpc.services.records.patterns import (
    SUPERSEDED,
    claim_point,
    pattern_from_record,
    pattern_point,
)
from lot_grpc.services.time_slice import TimeSlice
from lot_grpc.services.transfer.rows import Row
from lot_grpc.services.unique_content import UniqueContentIndex


class PatternTransfer(TransferHooks):
    """Moves claims on contents, and updates the marks of superseded patterns."""

    def __init__(
        self, store: VectorStore, content_index: UniqueContentIndex, lineage: Lineage
    ) -> None:
        self._store = store
        self._content_index = content_index
        self._lineage = lineage

    async def unique(self, namespace: str, records: Sequence[Record]) -> set[str]:
        """The ids of patterns that hold the claim on their content."""
        content_index = {
            record.id: claim_point(namespace, pattern_from_record(record).content)
            for record in records
        }
        held = await self._store.get(REQUESTS, namespace, list(content_index.values()))
        owners = {claim: row.payload["pattern_id"] for claim, row in held.items()}
        return {
            record.id
            for record in records
            if owners.get(content_index[record.id]) == record.payload["pattern_id"]
        }

    async def before_write(self, rows: Sequence[Row]) -> None:
        """Take the claims that patterns held, before they are stored: as saves do, which meet them.

        One that a pattern of another id holds here stays with that, if it is there.
        """
        claiming = [row.record for row in rows if row.claimed]
        if not claiming:
            return
        namespace = claiming[0].namespace
        owners: dict[str, str] = {}
        time_slice = TimeSlice()
        for one in claiming:
            claim = claim_point(namespace, pattern_from_record(one).content)
            owners[claim] = str(one.payload["pattern_id"])
            await time_slice.give_way()
        taken = await self._content_index.take(namespace, owners)
        for claim in owners.keys() - taken:
            owner = await self._content_index.owner(namespace, claim, owners[claim])
            point = pattern_point(namespace, owner)
            if owner != owners[claim] and not await self._store.get(PATTERNS, namespace, [point]):
                await self._content_index.move(namespace, claim, owner, owners[claim])

    async def after_write(
        self, namespace: str, rows: Mapping[str, Row], former: Mapping[str, Record]
    ) -> None:
        """Mark what patterns that came supersede, and those of them that others supersede.

        Marks that come along stay: who is named by them may come later.
        """
        given = [row.record.payload for row in rows.values()]
        ids = {one["pattern_id"] for one in given} | {one.get("supersedes") for one in given}
        points = [pattern_point(namespace, one) for one in ids if one]
        stored = (await self._store.get(PATTERNS, namespace, points)).values()
        await self._lineage.settle_all([one for one in stored if not one.payload.get(SUPERSEDED)])
        for point, one in former.items():  # replaced by one that no longer supersedes it
            old, new = one.payload.get("supersedes"), rows[point].record.payload.get("supersedes")
            if old and old != new:
                await self._lineage.settle(namespace, old)
