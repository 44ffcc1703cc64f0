"""Episode, its events, its filter, starts and ends."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from google.protobuf.struct_pb2 import Struct

from lot_grpc.domain.episode import (
    Episode,
    EpisodeEnd,
    EpisodeError,
    EpisodeEvent,
    EpisodeStart,
    EpisodeStatus,
)
from lot_grpc.domain.errors import RequestInvalidError, Violation
from lot_grpc.domain.json_values import whole
from lot_grpc.domain.query import EpisodeFilter
from lot_grpc.pb.lot.v1 import episode_pb2 as pb
from lot_grpc.pb.lot.v1 import episode_service_pb2 as service_pb
from lot_grpc.server.convert.outcomes import COMPLEXITY
from lot_grpc.server.convert.patterns import same_id
from lot_grpc.server.convert.values import (
    MAX_STRUCT_BYTES,
    EnumCodec,
    check_size,
    struct_from_json,
    struct_from_pb,
    time_from_pb,
    time_to_pb,
)
from lot_grpc.services.episodes.episodes import EpisodeDraft
from lot_grpc.services.episodes.event_recorder import Takeover

STATUS = EnumCodec(pb.EpisodeStatus.DESCRIPTOR, EpisodeStatus, "EPISODE_STATUS_")
TAKEOVER = EnumCodec(service_pb.Takeover.DESCRIPTOR, Takeover, "TAKEOVER_")


def episode_to_pb(episode: Episode) -> pb.Episode:
    """A stored episode."""
    start = episode.start
    message = pb.Episode(
        episode_id=episode.episode_id,
        task_id=start.task_id,
        task=start.task,
        category=start.category,
        task_type=start.task_type,
        complexity=COMPLEXITY.to_pb(start.complexity),
        dependencies=start.dependencies,
        effort=start.effort,
        approach=episode.approach,
        agent_role=start.agent_role,
        context=start.context,
        status=STATUS.to_pb(episode.status),
        event_count=episode.event_count,
        reused_count=episode.reused_count,
        start_time=time_to_pb(episode.start_time),
        end_time=None if episode.end_time is None else time_to_pb(episode.end_time),
        tags=start.tags,
        labels=start.labels,
        namespace=episode.namespace,
        etag=episode.etag,
        create_time=time_to_pb(episode.create_time),
        update_time=time_to_pb(episode.update_time),
    )
    if start.metadata:
        message.metadata.CopyFrom(struct_from_json(start.metadata))
    if episode.end is not None:
        _add_end(message, episode.end)
    return message


def _add_end(message: pb.Episode, end: EpisodeEnd) -> None:
    message.summary = end.summary
    message.error_patterns.extend(end.error_patterns)
    message.success_factors.extend(end.success_factors)
    message.tools_used.extend(end.tools_used)
    message.metrics.update(end.metrics)
    message.used_pattern_ids.extend(end.used_pattern_ids)
    message.used_episode_ids.extend(end.used_episode_ids)
    if end.reward is not None:
        message.reward = end.reward
    if end.error is not None:
        message.error.CopyFrom(pb.EpisodeError(type=end.error.type, message=end.error.message))


def start_from_pb(message: pb.Episode) -> EpisodeStart:
    """What a caller gave of an episode's start."""
    return EpisodeStart(
        task=message.task,
        task_id=message.task_id,
        category=message.category,
        task_type=message.task_type,
        complexity=COMPLEXITY.from_pb(message.complexity),
        dependencies=tuple(message.dependencies),
        effort=message.effort,
        approach=message.approach,
        agent_role=message.agent_role,
        context=message.context,
        tags=tuple(message.tags),
        labels=dict(message.labels),
        metadata=struct_from_pb(message.metadata, "episode.metadata"),
        start_time=time_from_pb(message, "start_time", "episode"),
    )


def end_from_pb(message: service_pb.EndEpisodeRequest | pb.Episode, path: str = "") -> EpisodeEnd:
    """An end, from its request or from an episode that is recorded whole."""
    error = None
    if message.HasField("error"):
        error = EpisodeError(message.error.type, message.error.message)
    return EpisodeEnd(
        status=STATUS.all_from_pb([message.status])[0],
        summary=message.summary,
        error=error,
        error_patterns=tuple(message.error_patterns),
        success_factors=tuple(message.success_factors),
        tools_used=tuple(message.tools_used),
        metrics={name: whole(number) for name, number in message.metrics.items()},
        reward=message.reward if message.HasField("reward") else None,
        used_pattern_ids=tuple(message.used_pattern_ids),
        used_episode_ids=tuple(message.used_episode_ids),
        approach=message.approach,
        end_time=time_from_pb(message, "end_time", path),
    )


def start_draft_from_pb(message: service_pb.StartEpisodeRequest) -> EpisodeDraft:
    """An episode to start."""
    same_id("episode", message.episode.episode_id, message.episode_id)
    return EpisodeDraft(start_from_pb(message.episode), message.episode_id, message.request_id)


def record_draft_from_pb(message: service_pb.RecordEpisodeRequest) -> EpisodeDraft:
    """An episode to record whole."""
    same_id("episode", message.episode.episode_id, message.episode_id)
    return EpisodeDraft(
        start_from_pb(message.episode),
        message.episode_id,
        message.request_id,
        end_from_pb(message.episode, "episode"),
        events_from_pb(message.events),
        message.auto_extract_patterns,
    )


def event_from_pb(message: pb.EpisodeEvent, path: str) -> EpisodeEvent:
    """An event as a caller gave it. Equal Structs give equal bytes."""
    data = None
    if message.HasField("data"):
        data = message.data.SerializeToString(deterministic=True)
        if len(data) > MAX_STRUCT_BYTES:
            check_size(message.data, f"{path}.data")
    return EpisodeEvent(
        message.sequence,
        message.event_type,
        message.agent_role,
        data,
        time_from_pb(message, "event_time", path) if message.HasField("event_time") else None,
    )


def events_from_pb(messages: Iterable[pb.EpisodeEvent]) -> tuple[EpisodeEvent, ...]:
    """Events in order."""
    return tuple(
        event_from_pb(message, f"events[{number}]") for number, message in enumerate(messages)
    )


def numbered_from_pb(messages: Sequence[pb.EpisodeEvent]) -> tuple[EpisodeEvent, ...]:
    """Events that a stream sends: the caller numbers them."""
    unnumbered = [
        Violation(f"events[{number}].sequence", "int64.gte", "sequence must be 1 or more")
        for number, message in enumerate(messages)
        if not message.sequence
    ]
    if unnumbered:
        raise RequestInvalidError(unnumbered)
    return events_from_pb(messages)


def event_to_pb(event: EpisodeEvent) -> pb.EpisodeEvent:
    """A stored event."""
    message = pb.EpisodeEvent(
        sequence=event.sequence,
        event_type=event.event_type,
        agent_role=event.agent_role,
        event_time=time_to_pb(event.record_time if event.event_time is None else event.event_time),
        record_time=time_to_pb(event.record_time),
    )
    if event.data is not None:
        message.data.CopyFrom(Struct.FromString(event.data))
    return message


def filter_from_pb(message: pb.EpisodeFilter) -> EpisodeFilter:
    """A filter."""
    return EpisodeFilter(
        statuses=STATUS.all_from_pb(message.statuses),
        categories=tuple(message.categories),
        task_types=tuple(message.task_types),
        task_ids=tuple(message.task_ids),
        complexities=COMPLEXITY.all_from_pb(message.complexities),
        approaches=tuple(message.approaches),
        agent_roles=tuple(message.agent_roles),
        tools_any=tuple(message.tools_any),
        tags_any=tuple(message.tags_any),
        tags_all=tuple(message.tags_all),
        labels=dict(message.labels),
        started_after=time_from_pb(message, "started_after", "filter"),
        started_before=time_from_pb(message, "started_before", "filter"),
        error_types=tuple(message.error_types),
        ended_after=time_from_pb(message, "ended_after", "filter"),
        ended_before=time_from_pb(message, "ended_before", "filter"),
    )
