"""Learning events: record, list."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from lot_grpc.domain.errors import LearningEventIdInUseError
from lot_grpc.domain.ids import content_hash
from lot_grpc.domain.learning_event import (
    LearningEvent,
    LearningEventContent,
    LearningEventFilter,
)
from lot_grpc.domain.sameness import same_values
from lot_grpc.ports import Record, VectorStore
from lot_grpc.services.moments import Moments
from lot_grpc.services.once import Insertion, Once
from lot_grpc.services.paging import Fits, Position, any_size, each, read_page
from lot_grpc.services.records.collections import LEARNING_EVENTS
from lot_grpc.services.records.learning_events import (
    learning_event_conditions,
    learning_event_from_record,
    learning_event_record,
)


@dataclass(frozen=True, slots=True)
class LearningEventDraft:
    """A learning event to record."""

    content: LearningEventContent
    learning_event_id: str = ""
    request_id: str = ""


class LearningEvents:
    """The learning events of all namespaces."""

    def __init__(self, store: VectorStore, moments: Moments, once: Once) -> None:
        self._store = store
        self._moments = moments
        self._once = once

    async def record(self, namespace: str, draft: LearningEventDraft) -> tuple[LearningEvent, bool]:
        """Record one; say whether it was created.

        Raises LearningEventIdInUseError, RequestIdReusedError.
        """

        def make(id: str) -> Record:
            event = LearningEvent(namespace, id, draft.content, self._moments.now())
            return learning_event_record(event, self._moments.sort_key())

        def require_same(stored: Record) -> None:
            event = learning_event_from_record(stored)
            if not same_values(event.content, draft.content):
                raise LearningEventIdInUseError(namespace, event.learning_event_id)

        record, created = await self._once.insert(
            Insertion(
                namespace,
                LEARNING_EVENTS,
                "RecordLearningEvent",
                "le",
                content_hash([asdict(draft.content), draft.learning_event_id]),
                make,
                require_same,
                draft.learning_event_id,
                draft.request_id,
            )
        )
        return learning_event_from_record(record), created

    async def list_page(
        self,
        namespace: str,
        asked: LearningEventFilter,
        size: int,
        after: Position | None,
        fits: Fits[LearningEvent] = any_size,
    ) -> tuple[list[LearningEvent], Position | None]:
        """A page, newest first, and where the next one begins."""
        where, read = learning_event_conditions(asked), each(learning_event_from_record)
        return await read_page(
            self._store, LEARNING_EVENTS, namespace, where, size, after, read, fits
        )
