"""Reviews of records of any kind that has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.errors import (
    ContentionError,
    EtagMismatchError,
    LotError,
    NotFoundError,
)
from lot_grpc.domain.origin import Review, ReviewState
from lot_grpc.services.operations import ResourcesByKind
from lot_grpc.services.time_slice import TimeSlice
from lot_grpc.services.time_source import TimeSource
from lot_grpc.work import current_caller


@dataclass(frozen=True, slots=True)
class ReviewItem:
    """A record to review. ``etag``: of the version that was read; empty: any version."""

    id: str
    etag: str = ""


@dataclass(frozen=True, slots=True)
class ReviewDraft:
    """Records of one kind, and the review to set."""

    resource_kind: ResourceKind
    items: tuple[ReviewItem, ...]
    state: ReviewState
    note: str = ""


@dataclass(frozen=True, slots=True)
class Reviewed:
    """The result of an item. ``review`` after the call, or ``error`` if it failed."""

    id: str
    review: Review | None = None
    changed: bool = False
    error: LotError | None = None


class RecordReviewer:
    """Sets the reviews of records."""

    def __init__(self, resources: ResourcesByKind, time_source: TimeSource) -> None:
        self._resources = resources
        self._time = time_source

    async def review(self, namespace: str, draft: ReviewDraft) -> Sequence[Reviewed]:
        """Review each by itself; one result each, in order. Store errors end the call.

        Each is one write, and a repeat of the call does what is left.
        """
        resources, time_slice = self._resources.of(draft.resource_kind), TimeSlice()
        principal = current_caller().principal.name
        results = []
        for item in draft.items:
            given = Review(draft.state, draft.note, self._time.now(), principal)
            try:
                review, changed = await resources.review(namespace, item.id, given, item.etag)
                results.append(Reviewed(item.id, review, changed))
            except (NotFoundError, EtagMismatchError, ContentionError) as error:
                results.append(Reviewed(item.id, error=error))
            await time_slice.give_way()
        return results
