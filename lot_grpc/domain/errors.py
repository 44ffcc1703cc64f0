"""What can go wrong, as the caller should understand it.

Each error names its reason (a value of ``lot.v1.ErrorReason`` without its prefix) and carries
fields; the sentence says what to do next. ``server.status`` turns them into gRPC statuses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


class LotError(Exception):
    """A failure that the caller is told about. ``metadata`` holds whatever varies in the text."""

    reason: str = "INTERNAL"

    def __init__(self, message: str, **metadata: object) -> None:
        super().__init__(message)
        self.message = message
        self.metadata: Mapping[str, str] = {key: str(value) for key, value in metadata.items()}


@dataclass(frozen=True, slots=True)
class Violation:
    """One thing wrong with a request: a field path as in the proto, a rule, a sentence."""

    field: str
    rule: str
    description: str


class RequestInvalidError(LotError):
    """The request itself is wrong; the same request can never succeed.

    ``more`` counts violations that are not among the given ones.
    """

    reason = "REQUEST_INVALID"

    def __init__(self, violations: Sequence[Violation], more: int = 0) -> None:
        first = violations[0] if violations else Violation("", "", "invalid request")
        count = len(violations) + more
        others = f" (and {count - 1} more)" if count > 1 else ""
        where = f"{first.field}: " if first.field else ""
        super().__init__(f"{where}{first.description}{others}", violations=count)
        self.violations = tuple(violations)


def invalid(field: str, rule: str, description: str) -> RequestInvalidError:
    """A request with one thing wrong."""
    return RequestInvalidError([Violation(field, rule, description)])


class RequestMalformedError(LotError):
    """The bytes are no message of the request type (bad UTF-8, cut off, nested too deep)."""

    reason = "REQUEST_MALFORMED"


class PageTokenMismatchError(LotError):
    """A page token that is damaged, or was made by a list with other arguments."""

    reason = "PAGE_TOKEN_MISMATCH"


class LimitExceededError(LotError):
    """A deployment limit (settings), not the contract's own."""

    reason = "LIMIT_EXCEEDED"


class UnimplementedError(LotError):
    """A call or option that this version does not carry out yet."""

    reason = "NOT_IMPLEMENTED"


class NotFoundError(LotError):
    """``resource_kind`` with ``id`` is not in ``namespace``."""

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
    """No such session, or it lapsed."""

    reason = "SESSION_NOT_FOUND"
    resource_kind = "session"


class SessionFullError(LotError):
    """A session holds as many values as it may; ``limit`` says of what."""

    reason = "SESSION_FULL"

    def __init__(self, namespace: str, session_id: str, limit: str) -> None:
        super().__init__(
            f"session {session_id!r} in namespace {namespace!r} may hold {limit}, and nothing was "
            "put; clear what is not needed any more (ClearSession with keys or max_importance)",
            namespace=namespace,
            id=session_id,
            limit=limit,
        )


class RetrievalUnknownError(NotFoundError):
    """A ``retrieval_id`` that was never given, is older than its life, or was lost in a crash."""

    reason = "RETRIEVAL_UNKNOWN"
    resource_kind = "retrieval"


class OutcomeNotFoundError(NotFoundError):
    """No such entry in the log of outcomes, or all of its patterns were deleted."""

    reason = "OUTCOME_NOT_FOUND"
    resource_kind = "outcome"


class OutcomeCorrectedError(LotError):
    """An entry of the log is undone once; ``corrected_by`` is what did."""

    reason = "OUTCOME_CORRECTED"

    def __init__(self, outcome_id: str, corrected_by: str) -> None:
        super().__init__(
            f"outcome {outcome_id!r} was corrected by {corrected_by!r} already; "
            "to change that, correct that one",
            outcome_id=outcome_id,
            corrected_by=corrected_by,
        )


class DecisionNotFoundError(NotFoundError):
    """No such decision."""

    reason = "DECISION_NOT_FOUND"
    resource_kind = "decision"


class LearningEventNotFoundError(NotFoundError):
    """No such learning event."""

    reason = "LEARNING_EVENT_NOT_FOUND"
    resource_kind = "learning event"


class SelectionUnknownError(NotFoundError):
    """A ``selection_id`` that was never given, or is older than its life."""

    reason = "SELECTION_UNKNOWN"
    resource_kind = "selection"

    def __init__(self, namespace: str, id: str) -> None:
        super().__init__(namespace, id, "selections are kept for 30 days; name state and action")


class InUseError(LotError):
    """An id is taken by other content. Choose another id, or update the one that is there."""

    resource_kind = ""
    advice = "use another id"

    def __init__(self, namespace: str, id: str) -> None:
        super().__init__(
            f"{self.resource_kind} {id!r} exists in namespace {namespace!r} with other content; "
            f"{self.advice}",
            namespace=namespace,
            id=id,
        )
        self.id = id


class PatternIdInUseError(InUseError):
    """The pattern id is taken."""

    reason = "PATTERN_ID_IN_USE"
    resource_kind = "pattern"
    advice = "use another id, or UpdatePattern"


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


class RequestIdReusedError(LotError):
    """A ``request_id`` came again with other content."""

    reason = "REQUEST_ID_REUSED"

    def __init__(self, request_id: str, method: str) -> None:
        super().__init__(
            f"request_id {request_id!r} was used for another {method} within the last 24 h; "
            "use a new request_id for new content",
            request_id=request_id,
            method=method,
        )


class EtagMismatchError(LotError):
    """The thing was edited since the caller read it."""

    reason = "ETAG_MISMATCH"

    def __init__(self, resource_kind: str, id: str, given: str, current: str) -> None:
        super().__init__(
            f"{resource_kind} {id!r} was edited since: etag is {current!r}, given {given!r}; "
            "get it again and repeat the edit",
            id=id,
            given=given,
            current=current,
        )


class ContentionError(LotError):
    """Too many writers at once on one thing; the call was not carried out."""

    reason = "CONTENTION"

    def __init__(self, resource_kind: str, id: str) -> None:
        super().__init__(
            f"{resource_kind} {id!r} is being written by too many callers at once; "
            "retry with the same request_id",
            resource_kind=resource_kind,
            id=id,
        )


class EpisodeEndedError(LotError):
    """An event or another end for an episode that ended."""

    reason = "EPISODE_ENDED"

    def __init__(self, episode_id: str, status: str, what: str) -> None:
        super().__init__(
            f"episode {episode_id!r} ended as {status}; {what}",
            episode_id=episode_id,
            status=status,
        )


class EpisodeStreamOpenError(LotError):
    """Another stream is recording the episode."""

    reason = "EPISODE_STREAM_OPEN"

    def __init__(self, episode_id: str, hint: str) -> None:
        super().__init__(
            f"episode {episode_id!r} is being recorded by an open stream; {hint}",
            episode_id=episode_id,
        )


class WriterReplacedError(LotError):
    """Another stream took the episode over; what was acknowledged here is kept."""

    reason = "WRITER_REPLACED"

    def __init__(self, episode_id: str) -> None:
        super().__init__(
            f"another writer took over episode {episode_id!r}; "
            "reopen with TAKE_OVER only if this writer should go on",
            episode_id=episode_id,
        )


class StreamIdleError(LotError):
    """Nothing came over a stream for longer than this server keeps one open."""

    reason = "STREAM_IDLE"

    def __init__(self, episode_id: str, seconds: float) -> None:
        super().__init__(
            f"nothing came for episode {episode_id!r} within {seconds:g} s; open again and go on "
            "from last_sequence, and send a message without events now and then as a heartbeat",
            episode_id=episode_id,
            idle_seconds=f"{seconds:g}",
        )


class StreamNotOpenedError(LotError):
    """The first message of a stream did not open it, or a later one opened it again."""

    reason = "STREAM_NOT_OPENED"


class EventSequenceGapError(LotError):
    """An event came before its predecessor."""

    reason = "EVENT_SEQUENCE_GAP"

    def __init__(self, episode_id: str, expected: int, given: int) -> None:
        super().__init__(
            f"episode {episode_id!r} expects event {expected}, got {given}; resend from {expected}",
            episode_id=episode_id,
            expected=expected,
            given=given,
        )


class EventConflictError(LotError):
    """A stored sequence came again with other content."""

    reason = "EVENT_CONFLICT"

    def __init__(self, episode_id: str, sequence: int) -> None:
        super().__init__(
            f"event {sequence} of episode {episode_id!r} is stored with other content; "
            "events are never changed, append a new one",
            episode_id=episode_id,
            sequence=sequence,
        )


class CursorTooOldError(LotError):
    """A cursor from which changes cannot be told any more."""

    reason = "CURSOR_TOO_OLD"

    def __init__(self, why: str) -> None:
        super().__init__(
            f"after_cursor cannot be gone on from: {why}; watch with from_start, which tells all "
            "that is there and then goes on"
        )


class NamespaceClearingError(LotError):
    """A write to a namespace that is being cleared, or of a call from before it was."""

    reason = "NAMESPACE_CLEARING"

    def __init__(self, namespace: str, why: str) -> None:
        super().__init__(
            f"namespace {namespace!r} {why}; nothing was written, call again once it is done",
            namespace=namespace,
        )
        self.namespace = namespace


class ImportFormatTooNewError(LotError):
    """An export that a later version wrote."""

    reason = "IMPORT_FORMAT_TOO_NEW"

    def __init__(self, given: str, supported: str, server_version: str) -> None:
        super().__init__(
            f"the export has {given}, written by lot-grpc {server_version or '(unknown)'}; this "
            f"server knows up to {supported}: import it with a server of that version or later",
            given=given,
            supported=supported,
            server_version=server_version,
        )


class ImportConflictError(LotError):
    """What an import brings has the id of something else."""

    reason = "IMPORT_CONFLICT"

    def __init__(self, namespace: str, resource_kind: str, id: str, *, dry_run: bool) -> None:
        so_far = "nothing was stored" if dry_run else "what came before it is stored"
        super().__init__(
            f"{resource_kind.replace('_', ' ')} {id!r} is in namespace {namespace!r} "
            f"with other content; {so_far}. Import again with conflict SKIP to keep the stored "
            "ones, or OVERWRITE to replace them",
            namespace=namespace,
            resource_kind=resource_kind,
            id=id,
        )


class ImportIdleError(LotError):
    """No message of an import came for longer than this server keeps a stream open."""

    reason = "STREAM_IDLE"

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"no message of the import came within {seconds:g} s; what was acknowledged is stored: "
            "open again and go on behind the last cursor",
            idle_seconds=f"{seconds:g}",
        )


class OverloadedError(LotError):
    """The server is at its limit of calls or streams."""

    reason = "OVERLOADED"


class ShuttingDownError(LotError):
    """The server drains before it stops."""

    reason = "SHUTTING_DOWN"


class DeadlineTooLongError(LotError):
    """A call ran into the server's own limit of time."""

    reason = "CALL_TIME_LIMIT"


class StoreUnavailableError(LotError):
    """The store cannot be reached, or answered wrongly. The cause is in the log."""

    reason = "STORE_UNAVAILABLE"


class StorageFullError(LotError):
    """A write was refused because the disk is nearly full. Reads go on."""

    reason = "STORAGE_FULL"

    def __init__(self, free_bytes: int, needed_bytes: int, path: str) -> None:
        super().__init__(
            f"{free_bytes // 2**20} MiB free at the data folder, "
            f"writes need {needed_bytes // 2**20} MiB; "
            "free some space (reads go on, writes resume by themselves)",
            free_bytes=free_bytes,
            needed_bytes=needed_bytes,
        )
        self.path = path


class CompactOfflineOnlyError(LotError):
    """Compacting the embedded store would stop all other calls."""

    reason = "COMPACT_OFFLINE_ONLY"

    def __init__(self, backend: str) -> None:
        super().__init__(
            "compacting the embedded store stops all other calls for up to minutes; stop the "
            "server and run `lot-grpc compact`, or restart it: it compacts before it serves",
            backend=backend,
        )


class ReindexRunningError(LotError):
    """Another call reindexes already."""

    reason = "REINDEX_RUNNING"

    def __init__(self) -> None:
        super().__init__(
            "another Reindex is at work on this server; wait for its end, and call again to see "
            "that all is done"
        )


class ReindexOfflineOnlyError(LotError):
    """Other servers may work on the store, and would go on with the former model."""

    reason = "REINDEX_OFFLINE_ONLY"

    def __init__(self) -> None:
        super().__init__(
            "other servers may share this store, and none of them would know of the switch: stop "
            "them all, run `lot-grpc reindex --offline` with the new model configured, and start "
            "them with it"
        )


class ModelSwitchedError(LotError):
    """The model was switched under a stream whose vectors are of the former one."""

    reason = "MODEL_SWITCHED"

    def __init__(self, model: str) -> None:
        super().__init__(
            f"the server went over to the model {model!r} meanwhile: begin an export with vectors "
            "anew; open an import again behind its last cursor",
            model=model,
        )


class EmbeddingModelUnavailableError(LotError):
    """A model that was asked for by name cannot be opened on this server."""

    reason = "EMBEDDING_MODEL_UNAVAILABLE"

    def __init__(self, model: str, why: str) -> None:
        super().__init__(f"the model {model!r} cannot be used: {why}", model=model)


class EmbeddingFailedError(LotError):
    """The model could not embed or rerank a text. The cause is in the log."""

    reason = "EMBEDDING_FAILED"


class EmbeddingUnavailableError(EmbeddingFailedError):
    """The remote model cannot be reached or is overloaded; the same call may succeed later."""

    reason = "EMBEDDING_UNAVAILABLE"


class RerankerUnavailableError(LotError):
    """``rerank`` was asked for and there is no cross-encoder that works."""

    reason = "RERANKER_UNAVAILABLE"

    def __init__(self) -> None:
        super().__init__(
            "this server has no reranker that works: leave rerank out, or have the operator run "
            "lot-grpc check, which says what is missing"
        )


# --- the service cannot start -----------------------------------------------------------------


class StartupError(LotError):
    """The service refuses to serve; the sentence says what the operator should do."""

    reason = "STARTUP"


class ServingEndedError(StartupError):
    """The server no longer takes calls, and only a restart helps."""

    reason = "SERVING_ENDED"


class StoreLockedError(StartupError):
    """Another process has the data folder open."""

    reason = "STORE_LOCKED"


class ModelUnavailableError(StartupError):
    """The embedding model's files are missing or damaged."""

    reason = "MODEL_UNAVAILABLE"


class ModelAbsentError(ModelUnavailableError):
    """The embedding model is not on this machine, and may not be downloaded."""


class EmbeddingModelMismatchError(StartupError):
    """The store's vectors were made by another model than the configured one."""

    reason = "EMBEDDING_MODEL_MISMATCH"


class SchemaVersionMismatchError(StartupError):
    """The store was written by a newer version of this service, or too old a one."""

    reason = "SCHEMA_VERSION_MISMATCH"


class KnowledgePackInvalidError(StartupError):
    """A file of knowledge (``LOT_SEED_PACKS``) that cannot be read, or says something impossible.

    ``entry`` and ``field`` are empty where it is about the whole file, or the whole entry.
    """

    reason = "KNOWLEDGE_PACK_INVALID"

    def __init__(self, file: str, entry: str, field: str, problem: str) -> None:
        where = ": ".join(part for part in (file, entry, field) if part)
        super().__init__(f"knowledge pack {where}: {problem}", file=file, entry=entry, field=field)
