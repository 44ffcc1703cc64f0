"""Errors about records that do not exist, exist already, or were changed by others."""

from __future__ import annotations

from collections.abc import Sequence

from lot_grpc.domain.errors.base import LotError
from lot_grpc.domain.ids import HOUR, SELECTION_LIFE


class NotFoundError(LotError):
    """There is no ``resource_kind`` with ``id`` in ``namespace``."""

    resource_kind = ""

    def __init__(self, namespace: str, id: str, hint: str = "") -> None:
        super().__init__(
            f"no {self.resource_kind} {id!r} in namespace {namespace!r}"
            f"{'; ' + hint if hint else ''}",
            namespace=namespace,
            id=id,
        )
        self.id = id


class PatternNotFoundError(NotFoundError):
    """No such pattern."""

    reason = "PATTERN_NOT_FOUND"
    resource_kind = "pattern"


class EpisodeNotFoundError(NotFoundError):
    """No such episode. ``field`` is where the request names it, but for its own ``episode_id``."""

    reason = "EPISODE_NOT_FOUND"
    resource_kind = "episode"

    def __init__(self, namespace: str, id: str, hint: str = "", field: str = "") -> None:
        super().__init__(namespace, id, hint)
        if field:
            self.metadata = {**self.metadata, "field": field}


class MemoryNotFoundError(NotFoundError):
    """No such memory."""

    reason = "MEMORY_NOT_FOUND"
    resource_kind = "memory"


class ErrorSolutionNotFoundError(NotFoundError):
    """No such error solution."""

    reason = "ERROR_SOLUTION_NOT_FOUND"
    resource_kind = "error solution"


class PreferenceNotFoundError(NotFoundError):
    """No such preference."""

    reason = "PREFERENCE_NOT_FOUND"
    resource_kind = "preference"


class SessionNotFoundError(NotFoundError):
    """No such session, or it expired."""

    reason = "SESSION_NOT_FOUND"
    resource_kind = "session"


class SessionFullError(LotError):
    """A session is full; ``limit`` says which limit was reached."""

    reason = "SESSION_FULL"

    def __init__(self, namespace: str, session_id: str, limit: str) -> None:
        super().__init__(
            f"session {session_id!r} in namespace {namespace!r} holds at most {limit}; "
            "nothing was stored. Clear values that are no longer needed (ClearSession with keys "
            "or max_importance)",
            namespace=namespace,
            id=session_id,
            limit=limit,
        )


class RetrievalNotFoundError(NotFoundError):
    """A ``retrieval_id`` that was never given, is older than its life, or was lost in a crash."""

    reason = "RETRIEVAL_NOT_FOUND"
    resource_kind = "retrieval"


class NotInRetrievalError(LotError):
    """An outcome names records that its retrieval did not show, or that were stored anew since."""

    reason = "NOT_IN_RETRIEVAL"

    def __init__(self, retrieval_id: str, ids: Sequence[str]) -> None:
        named = ", ".join(map(repr, ids[:10])) + (", …" if len(ids) > 10 else "")
        super().__init__(
            f"retrieval {retrieval_id!r} did not show {named} (a deleted record with the same ID "
            "is another one); nothing was counted. Name only what it showed, each in the field of "
            "its kind, or send query instead of retrieval_id",
            retrieval_id=retrieval_id,
            ids=", ".join(ids[:10]),
        )


class OutcomeNotFoundError(NotFoundError):
    """No such entry in the log of outcomes, or all records that it names were deleted."""

    reason = "OUTCOME_NOT_FOUND"
    resource_kind = "outcome"


class OutcomeCorrectedError(LotError):
    """An entry of the log is undone once; ``corrected_by_outcome_id`` is what did."""

    reason = "OUTCOME_CORRECTED"

    def __init__(self, outcome_id: str, corrected_by_outcome_id: str) -> None:
        super().__init__(
            f"outcome {outcome_id!r} has already been corrected by "
            f"{corrected_by_outcome_id!r}; correct that one instead",
            outcome_id=outcome_id,
            corrected_by_outcome_id=corrected_by_outcome_id,
        )


class DecisionNotFoundError(NotFoundError):
    """No such decision."""

    reason = "DECISION_NOT_FOUND"
    resource_kind = "decision"


class LearningEventNotFoundError(NotFoundError):
    """No such learning event."""

    reason = "LEARNING_EVENT_NOT_FOUND"
    resource_kind = "learning event"


class SelectionNotFoundError(NotFoundError):
    """A ``selection_id`` that was never given, or is older than its life."""

    reason = "SELECTION_NOT_FOUND"
    resource_kind = "selection"

    def __init__(self, namespace: str, id: str) -> None:
        days = SELECTION_LIFE // (24 * HOUR)
        hint = f"selections are retained for {days} days; set state and action instead"
        super().__init__(namespace, id, hint)


class InUseError(LotError):
    """An id is taken by other content. Choose another id, or update the existing record."""

    resource_kind = ""
    advice = "use another ID"

    def __init__(self, namespace: str, id: str) -> None:
        super().__init__(
            f"{self.resource_kind} {id!r} already exists in namespace {namespace!r} with other "
            "content; "
            f"{self.advice}",
            namespace=namespace,
            id=id,
        )
        self.id = id


class PatternIdInUseError(InUseError):
    """The pattern id is taken."""

    reason = "PATTERN_ID_IN_USE"
    resource_kind = "pattern"
    advice = "use another ID, or UpdatePattern"


class EpisodeIdInUseError(InUseError):
    """The episode id is taken."""

    reason = "EPISODE_ID_IN_USE"
    resource_kind = "episode"


class MemoryIdInUseError(InUseError):
    """The memory id is taken."""

    reason = "MEMORY_ID_IN_USE"
    resource_kind = "memory"


class DecisionIdInUseError(InUseError):
    """The decision id is taken."""

    reason = "DECISION_ID_IN_USE"
    resource_kind = "decision"


class LearningEventIdInUseError(InUseError):
    """The learning event id is taken."""

    reason = "LEARNING_EVENT_ID_IN_USE"
    resource_kind = "learning event"


class ErrorSolutionIdInUseError(InUseError):
    """The error solution id is taken."""

    reason = "ERROR_SOLUTION_ID_IN_USE"
    resource_kind = "error solution"


class EtagMismatchError(LotError):
    """The record was edited since the caller read it."""

    reason = "ETAG_MISMATCH"

    def __init__(self, resource_kind: str, id: str, given: str, current: str) -> None:
        super().__init__(
            f"{resource_kind} {id!r} was edited in the meantime: its etag is {current!r}, not "
            f"{given!r}; "
            "read it again and repeat the edit",
            id=id,
            given=given,
            current=current,
        )


class ContentionError(LotError):
    """Too many concurrent writers of one record; the call was not carried out."""

    reason = "CONTENTION"

    def __init__(self, resource_kind: str, id: str) -> None:
        super().__init__(
            f"{resource_kind} {id!r} is being written by too many callers at once; "
            "retry with the same request_id",
            resource_kind=resource_kind,
            id=id,
        )


class NamespaceClearingError(LotError):
    """A write to a namespace that is being cleared, or of a call from before it was.

    ``resource_kinds``: what is cleared; none: everything.
    """

    reason = "NAMESPACE_CLEARING"

    def __init__(self, namespace: str, why: str, resource_kinds: Sequence[str] = ()) -> None:
        super().__init__(
            f"namespace {namespace!r} {why}; nothing was written, retry once the clear is done",
            namespace=namespace,
        )
        self.namespace = namespace
        self.resource_kinds = resource_kinds


class OriginReservedError(LotError):
    """The request sets an origin that only the server sets."""

    reason = "ORIGIN_RESERVED"

    def __init__(self, field: str, given: str) -> None:
        super().__init__(
            f"{field}: only the server sets {given}; set the origin of the writer: "
            "PERSON, TOOL, AGENT, MODEL or IMPORT",
            field=field,
            given=given,
        )


class OriginRaisedError(LotError):
    """An edit of the origin alone, to one that is not less trusted."""

    reason = "ORIGIN_RAISED"

    def __init__(self, resource_kind: str, id: str, given: str, current: str) -> None:
        super().__init__(
            f"the origin of {resource_kind} {id!r} is {current}, and an edit of the origin alone "
            f"can only lower it, not make it {given} or rename it; approve the record with "
            "ReviewRecords, or store it as a new one",
            id=id,
            given=given,
            current=current,
        )
