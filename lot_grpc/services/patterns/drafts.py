"""A pattern to save, and the result of saving it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from lot_grpc.domain.errors import LotError, invalid
from lot_grpc.domain.origin import OriginKind
from lot_grpc.domain.pattern import Pattern, PatternContent
from lot_grpc.domain.request_hash import request_hash
from lot_grpc.kernel.create import Creation
from lot_grpc.ports import Record
from lot_grpc.regexes import check_regex
from lot_grpc.services.expiry import check_expiry
from lot_grpc.services.indexer import Indexed


class Dedupe(StrEnum):
    """What a save does when the same content exists already."""

    EXACT = "exact"
    NONE = "none"
    SEMANTIC = "semantic"


@dataclass(frozen=True, slots=True)
class PatternDraft:
    """A pattern to save. ``dedupe`` None: EXACT, or NONE with a ``pattern_id``.

    ``ttl`` in microseconds from the save, instead of ``content.expire_time``.
    """

    content: PatternContent
    pattern_id: str = ""
    initial_success_rate: float = 1.0
    request_id: str = ""
    dedupe: Dedupe | None = None
    ttl: int | None = None

    @property
    def exact(self) -> bool:
        """Whether the content must be unique."""
        return (self.dedupe or Dedupe.EXACT) is not Dedupe.NONE and not self.pattern_id

    @property
    def semantic(self) -> bool:
        """Whether it may be merged with a pattern of nearly the same meaning."""
        return self.dedupe is Dedupe.SEMANTIC

    @property
    def alone(self) -> bool:
        """Whether it depends on other patterns, so that it is saved after the rest of its batch."""
        return self.semantic or bool(self.content.supersedes)

    def check(self, now: int) -> None:
        """Raise RequestInvalidError if it cannot be saved as requested."""
        self.content.check()
        check_regex(self.content.task_type_pattern, "pattern.task_type_pattern")
        check_expiry("pattern", self.content.expire_time, now)
        if self.dedupe in (Dedupe.EXACT, Dedupe.SEMANTIC) and self.pattern_id:
            raise invalid(
                "dedupe",
                "dedupe.pattern_id",
                f"{self.dedupe.name} identifies the pattern by its content; omit pattern_id, or "
                "use NONE",
            )

    def hash(self) -> str:
        """Equal for equal requests."""
        return request_hash(self)


@dataclass(frozen=True, slots=True)
class Saved:
    """The result of saving a draft.

    The flags say that the model did not read all of its text or code. ``unchanged_fields``: fields
    in which a repeat differs from the stored pattern, which stays as it is.
    """

    pattern: Pattern
    created: bool
    text_truncated: bool = False
    code_truncated: bool = False
    unchanged_fields: tuple[str, ...] = ()
    merged_at: float | None = None
    """The similarity at which it was merged with a pattern of other content; None: it was not."""


@dataclass(slots=True, kw_only=True)
class SaveWork(Creation):
    """A draft being saved.

    ``outcome_id`` identifies the success that a repeat counts. ``review_origins`` is the policy's.
    """

    draft: PatternDraft
    outcome_id: str
    claimed: bool = False
    indexed: Indexed | None = None
    review_origins: Collection[OriginKind] = ()
    record: Record | None = None
    result: Saved | LotError | None = None
    claim: str = ""

    @property
    def open(self) -> bool:
        """Whether it is not finished yet."""
        return self.result is None
