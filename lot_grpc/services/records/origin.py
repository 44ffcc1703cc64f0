"""Origin and review ⇄ keys of a record, the same for every kind that has them.

A plain AGENT and a record that needs no review have no keys, so that filters on them stay fast.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

from lot_grpc.domain.origin import (
    AGENT,
    HELD_BACK,
    Origin,
    OriginKind,
    Review,
    ReviewState,
)
from lot_grpc.ports import AnyOf, Condition, Missing, Not, OneOf, Payload
from lot_grpc.services.records.fields import Filters, any_of

ORIGIN_KIND, ORIGIN_NAME = "origin_kind", "origin_name"
REVIEW, REVIEW_NOTE, REVIEW_TIME = "review", "review_note", "review_time"
REVIEW_PRINCIPAL = "review_principal"

_HELD_BACK: Final = tuple(state.value for state in HELD_BACK)

RECALLABLE: Final[Condition] = Not(AnyOf(REVIEW, _HELD_BACK))
"""Not held back by its review."""


class _Criteria(Protocol):
    @property
    def origins(self) -> tuple[OriginKind, ...]: ...
    @property
    def reviews(self) -> tuple[ReviewState, ...]: ...


def origin_payload(origin: Origin) -> Payload:
    """The keys of an origin; none of a plain AGENT."""
    payload: Payload = {}
    if origin.kind is not AGENT.kind:
        payload[ORIGIN_KIND] = origin.kind.value
    if origin.name:
        payload[ORIGIN_NAME] = origin.name
    return payload


def origin_of(payload: Mapping[str, Any]) -> Origin:
    """The origin of a record."""
    if ORIGIN_KIND not in payload and ORIGIN_NAME not in payload:
        return AGENT
    return Origin(OriginKind(payload.get(ORIGIN_KIND, AGENT.kind)), payload.get(ORIGIN_NAME, ""))


def review_payload(review: Review | None) -> Payload:
    """The keys of a review; none without one."""
    if review is None:
        return {}
    payload: Payload = {REVIEW: review.state.value}
    if review.note:
        payload[REVIEW_NOTE] = review.note
    if review.review_time is not None:
        payload[REVIEW_TIME] = review.review_time
    if review.principal:
        payload[REVIEW_PRINCIPAL] = review.principal
    return payload


def review_of(payload: Mapping[str, Any]) -> Review | None:
    """The review of a record; None if it needs none."""
    if REVIEW not in payload:
        return None
    state = ReviewState(payload[REVIEW])
    return Review(
        state,
        payload.get(REVIEW_NOTE, ""),
        payload.get(REVIEW_TIME),
        payload.get(REVIEW_PRINCIPAL, ""),
    )


def held_back(payload: Mapping[str, Any]) -> bool:
    """Whether a record is not recalled because of its review."""
    return payload.get(REVIEW) in _HELD_BACK


def origin_filters(criteria: _Criteria) -> Filters:
    """The filters by origin and review, by the request field that sets them."""
    origins = any_of(ORIGIN_KIND, criteria.origins)
    if AGENT.kind in criteria.origins:
        origins = [OneOf((*origins, Missing(ORIGIN_KIND)))]
    return {"origins": origins, "reviews": any_of(REVIEW, criteria.reviews)}


def recalled(filters: Filters) -> Filters:
    """The same; without a filter by review, what is held back is left out."""
    return {**filters, "reviews": filters["reviews"] or [RECALLABLE]}
