"""Streams: events of an episode, changes, exports and imports."""

from __future__ import annotations

from lot_grpc.domain.errors.base import LotError


class EpisodeEndedError(LotError):
    """An event or another end for an episode that ended."""

    reason = "EPISODE_ENDED"

    def __init__(self, episode_id: str, status: str, what: str) -> None:
        super().__init__(
            f"episode {episode_id!r} has ended as {status}; {what}",
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
            f"another writer took over episode {episode_id!r}; reopen with REPLACE only if this "
            "writer should continue",
            episode_id=episode_id,
        )


class StreamIdleError(LotError):
    """Nothing came over a stream for longer than this server keeps one open."""

    reason = "STREAM_IDLE"

    def __init__(self, episode_id: str, seconds: float) -> None:
        super().__init__(
            f"no message for episode {episode_id!r} arrived within {seconds:g} s; reopen the "
            "stream and resume after last_sequence, and send messages without events as heartbeats",
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
            f"event {sequence} of episode {episode_id!r} is already stored with other content; "
            "events never change, append a new one",
            episode_id=episode_id,
            sequence=sequence,
        )


class CursorExpiredError(LotError):
    """A cursor from which changes cannot be told any more."""

    reason = "CURSOR_EXPIRED"

    def __init__(self, why: str) -> None:
        super().__init__(
            f"cannot resume from after_cursor: {why}; watch with from_start, which reports all "
            "records and then continues"
        )


class ImportFormatTooNewError(LotError):
    """An export that a later version wrote."""

    reason = "IMPORT_FORMAT_TOO_NEW"

    def __init__(self, given: str, supported: str, server_version: str) -> None:
        super().__init__(
            f"the export has {given}, written by lot-grpc {server_version or '(unknown)'}; this "
            f"server supports up to {supported}: import it with a server of that version or later",
            given=given,
            supported=supported,
            server_version=server_version,
        )


class ImportConflictError(LotError):
    """What an import brings has the id of something else."""

    reason = "IMPORT_CONFLICT"

    def __init__(self, namespace: str, resource_kind: str, id: str, *, dry_run: bool) -> None:
        so_far = "nothing was stored" if dry_run else "records before it are stored"
        super().__init__(
            f"{resource_kind.replace('_', ' ')} {id!r} already exists in namespace {namespace!r} "
            "with other "
            f"content; {so_far}. Import again with conflict_policy SKIP to retain the stored "
            "records, or OVERWRITE to replace them",
            namespace=namespace,
            resource_kind=resource_kind,
            id=id,
        )


class ImportIdleError(LotError):
    """No message of an import came for longer than this server keeps a stream open."""

    reason = "STREAM_IDLE"

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"no message of the import arrived within {seconds:g} s; acknowledged records are "
            "stored: reopen the import and resume from the last cursor",
            idle_seconds=f"{seconds:g}",
        )


class ModelSwitchedError(LotError):
    """The model was switched under a stream whose vectors are of the former one."""

    reason = "MODEL_SWITCHED"

    def __init__(self, model: str) -> None:
        super().__init__(
            f"the server switched to model {model!r} in the meantime; restart an export with "
            "vectors, or reopen an import after its last cursor",
            model=model,
        )
