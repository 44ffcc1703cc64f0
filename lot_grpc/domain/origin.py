"""Who wrote a record, how far that is trusted, and whether it needs a review.

Trust belongs to the text: whatever an agent may read and follow. An edit never raises it, and only
a review approves.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Any, Final, TypeVar

from lot_grpc.domain.errors import OriginRaisedError, OriginReservedError


class OriginKind(StrEnum):
    """The kind of an origin, the most trusted first."""

    PERSON = "person"
    TOOL = "tool"
    AGENT = "agent"
    EXTRACTION = "extraction"
    MODEL = "model"
    IMPORT = "import"


_TRUST: Final = tuple(OriginKind)


@dataclass(frozen=True, slots=True)
class Origin:
    """Who wrote a text. ``name`` empty: not given."""

    kind: OriginKind = OriginKind.AGENT
    name: str = ""

    def less_trusted_than(self, other: Origin) -> bool:
        """Whether it is trusted less."""
        return _TRUST.index(self.kind) > _TRUST.index(other.kind)


AGENT: Final = Origin()
"""Who writes if the caller does not say."""

BY_SERVER: Final = Origin(OriginKind.EXTRACTION)
"""The origin of what the server makes."""


class ReviewState(StrEnum):
    """The state of a review."""

    PENDING = "pending"
    APPROVED = "approved"
    REJECTED = "rejected"


HELD_BACK: Final = (ReviewState.PENDING, ReviewState.REJECTED)
"""The states in which a record is not recalled."""


@dataclass(frozen=True, slots=True)
class Review:
    """A review.

    ``review_time``: when it was set, in microseconds since 1970; None: by a write. ``principal``:
    the name of who set it then; empty without authentication.
    """

    state: ReviewState
    note: str = ""
    review_time: int | None = None
    principal: str = ""


PENDING: Final = Review(ReviewState.PENDING)

_NO_TEXT: Final = frozenset(
    {
        "origin", "tags", "labels", "pinned", "importance", "confidence", "expire_time",
        "source_episode_ids", "source_pattern_ids", "parent_pattern_id",
    }
)  # fmt: skip
"""The fields of a content that are not its text. All others count, also those that decide what is
found or hidden: a regular expression, what it supersedes."""

C = TypeVar("C", bound=Any)


def review_of_new(origin: Origin, review_origins: Collection[OriginKind]) -> Review | None:
    """The review of a new record, by the policy's ``review_origins``."""
    return PENDING if origin.kind in review_origins else None


def require_settable(origin: Origin, resource_kind: str) -> None:
    """Raise OriginReservedError for an origin that only the server sets."""
    if origin.kind is OriginKind.EXTRACTION:
        raise OriginReservedError(f"{resource_kind}.origin.kind", origin.kind.name)


@dataclass(frozen=True, slots=True)
class Editor:
    """Who edits, as far as the call says.

    Attributes:
        origin: The given origin; None: none was given.
        named: It was named as a field to set. Otherwise it may be what the caller read.
        alone: The edit changes nothing else.
    """

    origin: Origin | None = None
    named: bool = False
    alone: bool = False

    def apply(self, old: C, new: C, resource_kind: str, id: str) -> C:
        """The edited content of a record with its origin. Both contents have an ``origin``.

        Raises OriginReservedError, OriginRaisedError.
        """
        before: Origin = old.origin
        by = self._who(before)
        if by.kind is not before.kind:
            require_settable(by, resource_kind)
        if not self.alone or by == before:
            return self.sign(old, new)
        if not by.less_trusted_than(before):
            raise OriginRaisedError(resource_kind, id, by.kind.name, before.kind.name)
        lowered: C = replace(new, origin=by)
        return lowered

    def sign(self, old: C, new: C) -> C:
        """The same for an edit that may be the server's own."""
        before: Origin = old.origin
        by = self._who(before) if _text_changed(old, new) else before
        signed: C = replace(new, origin=before if before.less_trusted_than(by) else by)
        return signed

    def review_after(
        self, before: Origin, review: Review | None, review_origins: Collection[OriginKind]
    ) -> Review | None:
        """The review after an edit that ``rewrites`` a record with this origin and review."""
        return PENDING if self._who(before).kind in review_origins else review

    def _who(self, before: Origin) -> Origin:
        """Who edits a record with this origin; without a claim, nobody more trusted than that."""
        if self.origin is not None and (self.named or self.origin != before):
            return self.origin
        return before if before.less_trusted_than(AGENT) else AGENT


NO_EDITOR: Final = Editor()
SERVER: Final = Editor(BY_SERVER, named=True)
"""Extraction and distillation, as they rewrite what they made."""


def rewrites(old: Any, new: Any) -> bool:
    """Whether an edit changes the text or the origin, so that its review may no longer apply."""
    return old.origin != new.origin or _text_changed(old, new)


def rewritten(stored: C, content: Any, review_origins: Collection[OriginKind]) -> C:
    """A stored record that the server rewrites with a new content, with its origin and review."""
    signed = SERVER.sign(stored.content, content)
    review = stored.review
    if rewrites(stored.content, signed):
        review = SERVER.review_after(stored.content.origin, review, review_origins)
    changed: C = replace(stored, content=signed, review=review)
    return changed


def _text_changed(old: Any, new: Any) -> bool:
    return any(
        getattr(old, one.name) != getattr(new, one.name)
        for one in fields(new)
        if one.name not in _NO_TEXT
    )
