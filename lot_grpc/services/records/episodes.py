"""Episode and its events ⇄ Record."""

from __future__ import annotations

import hashlib
from binascii import a2b_base64, b2a_base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lot_grpc.domain.episode import (
    Episode,
    EpisodeEnd,
    EpisodeError,
    EpisodeEvent,
    EpisodeStart,
    EpisodeStatus,
)
from lot_grpc.domain.ids import content_hash, point_id, point_ids
from lot_grpc.domain.json_values import as_doubles
from lot_grpc.domain.query import EpisodeFilter
from lot_grpc.domain.text_form import visible
from lot_grpc.ports import Condition, Equals, Missing, Not, Payload, Record, Vector
from lot_grpc.services.records.collections import SORT_KEY
from lot_grpc.services.records.counters import (
    STATS_REVISION,
    outcomes_from_payload,
    uncounted,
)
from lot_grpc.services.records.fields import (
    FieldCodec,
    Filters,
    after,
    all_conditions,
    all_of,
    any_of,
    before,
    label_keys,
    label_pairs,
)

WRITER_EPOCH = "writer_epoch"
WRITER_BASE = "writer_base"
WRITER_BASE_EPOCH = "writer_base_epoch"
WRITER_UNTIL = "writer_until"
"""Until when an open stream holds the episode, in microseconds; 0 or absent if none does. Stored
only if several processes share the store."""

ACTIVE_TIME = "active_time"
"""On a running episode: it was active then, and may have been since. Events do not update it; the
search for abandoned episodes does (``abandoner``)."""
ABANDONING = "abandoning"
"""Whether it is being abandoned; absent means no."""

EXTRACTION = "extraction"
"""Whether patterns are to be extracted from the episode: REQUESTED from its end on, then DONE;
absent if not requested."""
REQUESTED, DONE = "requested", "done"
REUSE = "reuse"
"""Whether its uses of other episodes are to be counted: REQUESTED from its end on, then DONE;
absent if it named none."""
USED_EPISODES = "used_episode_ids"
REUSED_COUNT, REUSE_REVISION = "reused_count", "reuse_revision"
PENDING_REUSES = "pending_reuses"
"""Reports that an episode has counted and that may still be repeated."""

EXTRACTED_PATTERNS, EXTRACTED_SOLUTIONS = "extracted_pattern_ids", "extracted_error_solution_ids"
"""The patterns and the error solutions extracted from it."""

_START = FieldCodec(EpisodeStart, skip={"start_time"})
_END = FieldCodec(EpisodeEnd, skip={"status", "error", "approach", "end_time"})
_EPISODE = FieldCodec(
    Episode,
    sparse=False,
    skip={
        "namespace",
        "start",
        "status",
        "end",
        "end_time",
        "event_count",
        REUSED_COUNT,
        "outcomes",
    },
)


@dataclass(frozen=True, slots=True)
class CommittedPrefix:
    """Which events of an episode are committed: up to ``number``, and after it from ``epoch`` on.

    The rest was stored too late by a writer that had been replaced. Without a second process all
    events are committed.
    """

    number: int = 0
    epoch: int = 0

    def holds(self, event: Mapping[str, Any]) -> bool:
        """Whether an event is committed, by its payload."""
        sequence: int = event["sequence"]
        epoch: int = event["epoch"]
        return sequence <= self.number or epoch >= self.epoch


def episode_point(namespace: str, episode_id: str) -> str:
    """The point id of an episode."""
    return point_id(namespace, "episode", episode_id)


def base_payload(epoch: int, last: int) -> Payload:
    """The keys that record what the writer of an epoch found."""
    return {WRITER_BASE: last, WRITER_BASE_EPOCH: epoch}


def committed_prefix_of(payload: Mapping[str, Any]) -> CommittedPrefix:
    """What the last writer found when it took over the episode."""
    return CommittedPrefix(payload.get(WRITER_BASE, 0), payload.get(WRITER_BASE_EPOCH, 0))


@dataclass(frozen=True, slots=True)
class Stage:
    """The state of an episode, as far as a reader of its events needs it.

    ``birth`` distinguishes it from a later episode with the same id. ``event_count`` is 0 until it
    has ended; ``epoch`` is that of the valid writer.
    """

    birth: int
    status: EpisodeStatus
    event_count: int
    epoch: int
    committed: CommittedPrefix

    @property
    def over(self) -> bool:
        """Whether it gets no more events, unless it is reopened."""
        return self.status is not EpisodeStatus.RUNNING


STAGE_KEYS = (SORT_KEY, "status", "event_count", WRITER_EPOCH, WRITER_BASE, WRITER_BASE_EPOCH)
"""The keys that ``stage_of`` reads."""


def stage_of(payload: Mapping[str, Any]) -> Stage:
    """The stage of the episode of a record."""
    return Stage(
        birth=payload[SORT_KEY],
        status=EpisodeStatus(payload["status"]),
        event_count=payload.get("event_count", 0),
        epoch=payload[WRITER_EPOCH],
        committed=committed_prefix_of(payload),
    )


def start_hash(start: EpisodeStart) -> str:
    """A hash that is equal for equal starts as the caller gave them."""
    given = {**_START.write(start), "start_time": start.start_time}
    if start.metadata:
        given["metadata"] = as_doubles(start.metadata)
    return content_hash(given)


def end_hash(end: EpisodeEnd) -> str:
    """A hash that is equal for equal ends as the caller gave them."""
    error = [end.error.type, end.error.message] if end.error else None
    given = {**_END.write(end), "approach": end.approach, "end_time": end.end_time}
    if end.metrics:
        given["metrics"] = as_doubles(end.metrics)
    return content_hash({**given, "status": end.status.value, "error": error})


def end_payload(end: EpisodeEnd, end_time: int, event_count: int) -> Payload:
    """The keys that an end writes. Filters see the approach given at the end, if any."""
    payload = _END.write(end)
    payload["status"] = end.status.value
    payload["end_time"] = end_time
    payload["end_hash"] = end_hash(end)
    payload["event_count"] = event_count
    if end.error is not None:
        payload["error_type"] = end.error.type
        payload["error_message"] = end.error.message
    if visible(end.approach):
        payload["approach"] = end.approach
    if end.approach:
        payload["end_approach"] = end.approach
    if end.used_episode_ids:
        payload[REUSE] = REQUESTED
    return payload


def abandoned_payload(episode: Episode, end_time: int, event_count: int, now: int) -> Payload:
    """The keys that abandoning writes; ``end_time`` is that of the last activity."""
    return {
        "status": EpisodeStatus.ABANDONED.value,
        ABANDONING: False,
        "end_time": end_time,
        "event_count": event_count,
        **_next_revision(episode, now),
    }


_UNREVISED = (
    WRITER_EPOCH, WRITER_UNTIL, ACTIVE_TIME, ABANDONING, REUSE_REVISION, STATS_REVISION,
)  # fmt: skip
"""What others change without a new revision."""


def unrevised_as(payload: Mapping[str, Any]) -> list[Condition]:
    """The conditions, besides the revision, for an episode to be unchanged since it was read."""
    return [Equals(key, payload[key]) if key in payload else Missing(key) for key in _UNREVISED]


def reopened_payload(episode: Episode, now: int) -> Payload:
    """The keys that let an abandoned episode run again. Its ``end_time`` is then ignored."""
    return {"status": EpisodeStatus.RUNNING.value, **_next_revision(episode, now)}


def _next_revision(episode: Episode, now: int) -> Payload:
    return {"revision": episode.revision + 1, "update_time": max(now, episode.update_time)}


def episode_record(episode: Episode, sort_key: int, vectors: Mapping[str, Vector]) -> Record:
    """Encode the whole record."""
    start = episode.start
    payload = {
        **_START.write(start),
        **label_keys(start.labels),
        **_EPISODE.write(episode),
        **uncounted(),
        "start_approach": start.approach,
        "start_hash": start_hash(start),
        "status": episode.status.value,
        SORT_KEY: sort_key,
    }
    if episode.status is EpisodeStatus.RUNNING:
        payload[ACTIVE_TIME] = episode.create_time
    if episode.end is not None and episode.end_time is not None:
        payload.update(end_payload(episode.end, episode.end_time, episode.event_count))
    point = episode_point(episode.namespace, episode.episode_id)
    return Record(point, episode.namespace, payload, vectors)


def episode_from_record(record: Record) -> Episode:
    """Decode an episode. While it is RUNNING, its events are counted by the caller."""
    payload = record.payload
    status = EpisodeStatus(payload["status"])
    start = _START.read(payload)
    return _EPISODE.read(
        payload,
        namespace=record.namespace,
        start=replace(start, approach=payload.get("start_approach", "")),
        status=status,
        end=_end_from_payload(payload, status) if status.ended else None,
        # Leftovers of an abandonment do not count for an episode that runs again.
        end_time=None if status is EpisodeStatus.RUNNING else payload.get("end_time"),
        event_count=0 if status is EpisodeStatus.RUNNING else payload.get("event_count", 0),
        reused_count=payload.get(REUSED_COUNT, 0),
        outcomes=outcomes_from_payload(payload),
    )


def _end_from_payload(payload: Mapping[str, Any], status: EpisodeStatus) -> EpisodeEnd:
    error = None
    if "error_type" in payload:
        error = EpisodeError(payload["error_type"], payload["error_message"])
    return _END.read(
        payload,
        status=status,
        error=error,
        approach=payload.get("end_approach", ""),
        end_time=payload.get("end_time"),
    )


def episode_filters(criteria: EpisodeFilter) -> Filters:
    """A filter as conditions, by the request field that sets them."""
    return {
        "statuses": any_of("status", criteria.statuses),
        "categories": any_of("category", criteria.categories),
        "task_types": any_of("task_type", criteria.task_types),
        "task_ids": any_of("task_id", criteria.task_ids),
        "complexities": any_of("complexity", criteria.complexities),
        "approaches": any_of("approach", criteria.approaches),
        "agent_roles": any_of("agent_role", criteria.agent_roles),
        "tools_any": any_of("tools_used", criteria.tools_any),
        "tags_any": any_of("tags", criteria.tags_any),
        "tags_all": all_of("tags", criteria.tags_all),
        "labels": all_of("label_pairs", label_pairs(criteria.labels)),
        "started_after": after("start_time", criteria.started_after),
        "started_before": before("start_time", criteria.started_before),
        "error_types": any_of("error_type", criteria.error_types),
        "ended_after": _of_ended(after("end_time", criteria.ended_after)),
        "ended_before": _of_ended(before("end_time", criteria.ended_before)),
    }


def _of_ended(bound: list[Condition]) -> list[Condition]:
    """A revived episode may still have the time at which it was abandoned."""
    return [*bound, Not(Equals("status", EpisodeStatus.RUNNING.value))] if bound else []


def episode_conditions(criteria: EpisodeFilter) -> list[Condition]:
    """A filter as conditions."""
    return all_conditions(episode_filters(criteria))


# --- events -----------------------------------------------------------------------------------

EVENT = "event"
"""The fields that the caller set (``event_content``). They are one text, since the embedded store
takes 2 us to accept each text of a record (measured), and no condition concerns any of them."""


def event_point(namespace: str, episode_id: str, sequence: int) -> str:
    """The point id of an event: it follows from the number, so that no index is needed."""
    return point_id(namespace, "event", episode_id, str(sequence))


def event_points(namespace: str, episode_id: str, numbers: Iterable[int]) -> list[str]:
    """The point ids of the events with these numbers."""
    return point_ids((namespace, "event", episode_id), map(str, numbers))


def event_content(event: EpisodeEvent) -> str:
    """The fields that the caller set, as one text that is equal for equal events.

    In this order: data in base64, time, the length of the type, then type and role. ``-`` stands
    for missing data or a missing time.
    """
    data = "-" if event.data is None else b2a_base64(event.data, newline=False).decode()
    time = "-" if event.event_time is None else event.event_time
    return f"{data} {time} {len(event.event_type)} {event.event_type}{event.agent_role}"


def event_hash(event: EpisodeEvent) -> str:
    """A hash of an event in a request, equal for equal events. It must not change: it is stored."""
    head = f"{event.event_type}\0{event.agent_role}\0{event.event_time}\0".encode()
    return hashlib.blake2b(head + (event.data or b""), digest_size=12).hexdigest()


def event_records(
    namespace: str,
    episode_id: str,
    events: Sequence[EpisodeEvent],
    epoch: int,
    record_time: int | None = None,
) -> list[Record]:
    """Encode events of one writer.

    ``record_time`` replaces that of the events, which saves copying each event of a stream.
    """
    points = event_points(namespace, episode_id, [event.sequence for event in events])
    return [
        Record(
            point,
            namespace,
            {
                "episode_id": episode_id,
                "sequence": event.sequence,
                "record_time": event.record_time if record_time is None else record_time,
                "epoch": epoch,
                EVENT: event_content(event),
            },
        )
        for point, event in zip(points, events, strict=True)
    ]


def event_record(
    namespace: str, episode_id: str, event: EpisodeEvent, epoch: int, request: str = ""
) -> Record:
    """Encode an event of one writer. ``request`` is the idempotency record of a unary call."""
    [record] = event_records(namespace, episode_id, [event], epoch)
    if request:
        record.payload["request"] = request
    return record


def event_from_record(record: Record) -> EpisodeEvent:
    """Decode an event; an event time that was not given is the time of recording."""
    payload = record.payload
    data, time, length, rest = payload[EVENT].split(" ", 3)
    length, record_time = int(length), payload["record_time"]
    return EpisodeEvent(
        sequence=payload["sequence"],
        event_type=rest[:length],
        agent_role=rest[length:],
        data=None if data == "-" else a2b_base64(data),
        event_time=record_time if time == "-" else int(time),
        record_time=record_time,
    )
