"""Learning events: recording, reading, listing, deleting."""

from __future__ import annotations

from dataclasses import dataclass

from lot_grpc.domain.errors import LearningEventIdInUseError
from lot_grpc.domain.ids import new_id
from lot_grpc.domain.learning_event import (
    LearningEvent,
    LearningEventContent,
    LearningEventFilter,
)
from lot_grpc.domain.request_hash import request_hash
from lot_grpc.domain.sameness import same_values
from lot_grpc.kernel.create import Creation
from lot_grpc.ports import Record
from lot_grpc.services.learning.spec import LEARNING_EVENT
from lot_grpc.services.operations import Resources
from lot_grpc.services.records.learning_events import (
    learning_event_from_record,
    learning_event_record,
)
from lot_grpc.services.runtime import Runtime


@dataclass(frozen=True, slots=True)
class LearningEventDraft:
    """A learning event to record."""

    content: LearningEventContent
    learning_event_id: str = ""
    request_id: str = ""

    def hash(self) -> str:
        """Equal for equal requests."""
        return request_hash(self)


class LearningEvents(Resources[LearningEvent, LearningEventFilter]):
    """The learning events of all namespaces."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(LEARNING_EVENT, runtime)

    async def record(self, namespace: str, draft: LearningEventDraft) -> tuple[LearningEvent, bool]:
        """Record a learning event; return whether it was created.

        Raises LearningEventIdInUseError, RequestIdReusedError; LearningEventNotFoundError where a
        repeat meets what was deleted since.
        """

        def make(id: str) -> Record:
            event = LearningEvent(namespace, id, draft.content, self._time.now())
            return learning_event_record(event, self._time.sort_key())

        def require_same(stored: Record) -> None:
            event = learning_event_from_record(stored)
            if not same_values(event.content, draft.content):
                raise LearningEventIdInUseError(namespace, event.learning_event_id)

        creation = Creation(
            namespace=namespace,
            id=draft.learning_event_id or new_id("le"),
            request_id=draft.request_id,
            content_hash=draft.hash(),
        )
        record, created = await self._create.insert(
            LEARNING_EVENT.creation, creation, make, require_same
        )
        return learning_event_from_record(record), created
