"""The log behind the counters: reading and correcting it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.errors import OutcomeCorrectedError, OutcomeNotFoundError
from lot_grpc.domain.ids import ResourceRef, new_id
from lot_grpc.domain.outcomes import Correction, Outcome
from lot_grpc.domain.recorded_outcome import RecordedOutcome, correction_point
from lot_grpc.domain.request_hash import request_hash
from lot_grpc.kernel.idempotency import CREATE_TIMES, IdempotencyKey, create_times
from lot_grpc.ports import Equals, Record
from lot_grpc.services.outcomes.counting import OutcomeCounter
from lot_grpc.services.outcomes.outcomes import CountedResources, Recorded
from lot_grpc.services.paging import Fits, Page, Position, any_size, read_page
from lot_grpc.services.records.collections import OUTCOMES
from lot_grpc.services.records.outcomes import outcome_from_record
from lot_grpc.services.records.resource_refs import RESOURCE
from lot_grpc.services.runtime import Runtime

_METHOD = "CorrectOutcome"
_ENTRIES_AT_MOST = 1000
"""Of one call: more than RecordOutcome takes."""


@dataclass(frozen=True, slots=True)
class CorrectionDraft:
    """A correction. ``outcome`` counts instead of the corrected entry; None: nothing does."""

    outcome_id: str
    outcome: Outcome | None = None
    note: str = ""
    request_id: str = ""

    def hash(self) -> str:
        """Equal for equal requests."""
        return request_hash(self)


@dataclass(frozen=True, slots=True)
class LoggedOutcome:
    """An entry, and the ``outcome_id`` of the one that undid it, empty while it counts."""

    recorded: RecordedOutcome
    corrected_by_outcome_id: str


class OutcomeLog:
    """Reads and corrects the log."""

    def __init__(
        self, runtime: Runtime, counting: OutcomeCounter, counted: CountedResources
    ) -> None:
        self._store = runtime.store
        self._time = runtime.time
        self._idempotency = runtime.idempotency
        self._counting = counting
        self._counted = counted

    async def list_page(
        self,
        namespace: str,
        resource: ResourceRef,
        size: int,
        after: Position | None,
        fits: Fits[LoggedOutcome] = any_size,
    ) -> Page[LoggedOutcome, Position]:
        """A page of a resource's log, newest first. Raises the NotFoundError of its kind."""
        if not await self._counted.records(namespace, (resource,)):
            raise self._counted.missing(namespace, resource)
        theirs = [Equals(RESOURCE, resource.point(namespace))]

        async def read(records: Sequence[Record]) -> list[LoggedOutcome]:
            recorded_outcomes = [outcome_from_record(record) for record in records]
            corrected = await self._corrected(namespace, recorded_outcomes)
            return [
                LoggedOutcome(recorded, corrected.get(recorded.point, ""))
                for recorded in recorded_outcomes
            ]

        return await read_page(self._store, OUTCOMES, namespace, theirs, size, after, read, fits)

    async def correct(self, namespace: str, draft: CorrectionDraft) -> Recorded:
        """Undo an entry for all resources for which it was counted.

        Raises OutcomeNotFoundError, OutcomeCorrectedError, RequestIdReusedError.
        """
        key = IdempotencyKey(
            namespace, _METHOD, draft.request_id, draft.hash(), {"outcome_id": new_id("o")}
        )
        entry = await self._idempotency.find(key)
        if entry is not None and entry.result is not None:
            resources = [ResourceRef(*one) for one in entry.result["resources"]]
            records = await self._counted.records(namespace, resources)
            return await self._recorded(namespace, resources, entry.about(records), entry.plan)
        undone = await self._entries(namespace, draft.outcome_id)
        if entry is None:
            await self._require_standing(namespace, undone)
            entry = await self._idempotency.begin(key)
        recorded_outcomes = [
            self._correcting(recorded, entry.plan["outcome_id"], draft) for recorded in undone
        ]
        for recorded in undone:  # one that is still being counted comes first
            await self._counting.finish(recorded)
        # Whoever writes the first of them corrects them all.
        counted = await self._counting.count(recorded_outcomes[:1])
        await self._require_standing(namespace, undone[:1], entry.plan["outcome_id"])
        counted |= await self._counting.count(recorded_outcomes[1:])
        resources = [one.resource for one in undone]
        named = [[str(one.kind), one.id] for one in resources]
        result = {"resources": named, CREATE_TIMES: create_times(counted)}
        await self._idempotency.finish(entry, result)
        return await self._recorded(namespace, resources, counted, entry.plan)

    async def _entries(self, namespace: str, outcome_id: str) -> list[RecordedOutcome]:
        theirs = [Equals("outcome_id", outcome_id)]
        rows = await self._store.scroll(OUTCOMES, namespace, theirs, limit=_ENTRIES_AT_MOST)
        if not rows:
            raise OutcomeNotFoundError(namespace, outcome_id)
        return sorted(map(outcome_from_record, rows), key=_by_resource)

    async def _require_standing(
        self, namespace: str, recorded_outcomes: Sequence[RecordedOutcome], ours: str = ""
    ) -> None:
        """Raise OutcomeCorrectedError if another correction has undone it."""
        for by in (await self._corrected(namespace, recorded_outcomes)).values():
            if by != ours:
                raise OutcomeCorrectedError(recorded_outcomes[0].outcome_id, by)

    async def _corrected(
        self, namespace: str, recorded_outcomes: Sequence[RecordedOutcome]
    ) -> dict[str, str]:
        """By the point of an entry, the ``outcome_id`` of the one that undid it."""
        points = {
            correction_point(namespace, recorded.outcome_id, recorded.resource): recorded.point
            for recorded in recorded_outcomes
        }
        found = await self._store.get(OUTCOMES, namespace, list(points))
        return {points[point]: row.payload["outcome_id"] for point, row in found.items()}

    async def _recorded(
        self,
        namespace: str,
        resources: Sequence[ResourceRef],
        records: Mapping[str, Record],
        plan: Mapping[str, Any],
    ) -> Recorded:
        counted = [one for one in resources if one.kind != ResourceKind.RETRIEVAL]
        return await self._counted.recorded(plan["outcome_id"], namespace, counted, records)

    def _correcting(
        self, undone: RecordedOutcome, outcome_id: str, draft: CorrectionDraft
    ) -> RecordedOutcome:
        earlier = undone.correction
        return RecordedOutcome(
            undone.namespace,
            outcome_id,
            undone.resource,
            draft.outcome,
            self._time.now(),
            query=undone.query,
            retrieval_id=undone.retrieval_id,
            note=draft.note,
            corrects_outcome_id=undone.outcome_id,
            root=undone.root or undone.outcome_id,
            correction=Correction(
                undone.outcome,
                earlier.time if earlier else undone.create_time,
                earlier.duration if earlier else undone.duration,
            ),
        )


def _by_resource(recorded: RecordedOutcome) -> tuple[str, str]:
    return recorded.resource.kind, recorded.resource.id
