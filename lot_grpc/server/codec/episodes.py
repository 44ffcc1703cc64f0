"""Episodes, their events, and groups of failed ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from google.protobuf.struct_pb2 import Struct

from lot_grpc.domain.episode import Episode, EpisodeEnd, EpisodeEvent, EpisodeStart
from lot_grpc.domain.errors import RequestInvalidError, Violation
from lot_grpc.domain.extraction.digest import ErrorSeen
from lot_grpc.domain.failures.group import FailureAnalysis, FailureGroup
from lot_grpc.domain.json_values import whole
from lot_grpc.domain.query import EpisodeFilter
from lot_grpc.pb.lot.v1 import episode_pb2 as pb
from lot_grpc.pb.lot.v1 import episode_service_pb2 as service_pb
from lot_grpc.pb.lot.v1.outcome_pb2 import Notice
from lot_grpc.server.codec.error_solutions import error_solution_to_pb
from lot_grpc.server.codec.generic import Decoder, Encoder, Whole
from lot_grpc.server.codec.notices import text_notices
from lot_grpc.server.codec.outcomes import explain_hit, outcomes_if_any_to_pb
from lot_grpc.server.codec.pairs import fields_beside
from lot_grpc.server.codec.patterns import pattern_to_pb, same_id
from lot_grpc.server.codec.values import (
    MAX_STRUCT_BYTES,
    EnumCodec,
    check_size,
    micros_of_time,
    time_to_pb,
)
from lot_grpc.services.episodes.drafts import Ended, EpisodeDraft, Started
from lot_grpc.services.episodes.event_recorder import TakeoverPolicy
from lot_grpc.services.extraction.episode_extraction import ExtractedPatterns
from lot_grpc.services.recall.recall import Hit
from lot_grpc.services.recall.targets import RecallOptions

TAKEOVER = EnumCodec(service_pb.TakeoverPolicy.DESCRIPTOR, TakeoverPolicy)

episode_to_pb = Encoder(
    Episode,
    pb.Episode,
    flatten=("start", "end"),
    values={"outcomes": outcomes_if_any_to_pb},
    omit={"writer_epoch", "revision"},
)

start_from_pb = Decoder(
    pb.Episode, EpisodeStart, path="episode", omit=fields_beside(pb.Episode, EpisodeStart)
)


def _whole_numbers(metrics: dict[str, float]) -> dict[str, float]:
    return {name: whole(number) for name, number in metrics.items()}


end_from_pb = Decoder(
    service_pb.EndEpisodeRequest,
    EpisodeEnd,
    values={"metrics": _whole_numbers},
    omit={"namespace", "episode_id", "extract_knowledge", "request_id"},
)
recorded_end_from_pb = Decoder(
    pb.Episode,
    EpisodeEnd,
    path="episode",
    values={"metrics": _whole_numbers},
    omit=fields_beside(pb.Episode, EpisodeEnd),
)


def start_draft_from_pb(message: service_pb.StartEpisodeRequest) -> EpisodeDraft:
    """An episode to start."""
    same_id("episode", message.episode.episode_id, message.episode_id)
    return EpisodeDraft(start_from_pb(message.episode), message.episode_id, message.request_id)


def record_draft_from_pb(message: service_pb.RecordEpisodeRequest) -> EpisodeDraft:
    """An episode to record as a whole."""
    same_id("episode", message.episode.episode_id, message.episode_id)
    return EpisodeDraft(
        start_from_pb(message.episode),
        message.episode_id,
        message.request_id,
        recorded_end_from_pb(message.episode),
        events_from_pb(message.events),
        message.extract_knowledge,
    )


def started_to_pb(started: Started) -> service_pb.StartEpisodeResponse:
    """The result of a start."""
    return service_pb.StartEpisodeResponse(
        episode=episode_to_pb(started.episode), created=started.created, notices=_unread(started)
    )


def recorded_to_pb(
    recorded: Started, extracted: ExtractedPatterns
) -> service_pb.RecordEpisodeResponse:
    """The result of recording an episode as a whole."""
    return service_pb.RecordEpisodeResponse(
        episode=episode_to_pb(recorded.episode),
        created=recorded.created,
        notices=_unread(recorded),
        extracted_patterns=map(pattern_to_pb, extracted.patterns),
        extracted_error_solutions=map(error_solution_to_pb, extracted.error_solutions),
    )


def ended_to_pb(ended: Ended, extracted: ExtractedPatterns) -> service_pb.EndEpisodeResponse:
    """The result of an end."""
    return service_pb.EndEpisodeResponse(
        episode=episode_to_pb(ended.episode),
        notices=text_notices("summary", truncated=ended.summary_truncated),
        extracted_patterns=map(pattern_to_pb, extracted.patterns),
        extracted_error_solutions=map(error_solution_to_pb, extracted.error_solutions),
    )


def _unread(started: Started) -> list[Notice]:
    return [
        *text_notices("episode.task", truncated=started.truncated),
        *text_notices("episode.summary", truncated=started.summary_truncated),
    ]


# --- events ---------------------------------------------------------------------------------------


def event_from_pb(message: pb.EpisodeEvent, path: str) -> EpisodeEvent:
    """An event as the caller gave it. Equal Structs give equal bytes."""
    data = None
    if message.HasField("data"):
        data = message.data.SerializeToString(deterministic=True)
        if len(data) > MAX_STRUCT_BYTES:
            check_size(message.data, f"{path}.data")
    time = None
    if message.HasField("event_time"):
        time = micros_of_time(message.event_time, f"{path}.event_time")
    return EpisodeEvent(message.sequence, message.event_type, message.agent_role, data, time)


def events_from_pb(messages: Iterable[pb.EpisodeEvent]) -> tuple[EpisodeEvent, ...]:
    """Events in order."""
    return tuple(
        event_from_pb(message, f"events[{number}]") for number, message in enumerate(messages)
    )


def numbered_from_pb(messages: Sequence[pb.EpisodeEvent]) -> tuple[EpisodeEvent, ...]:
    """Events of a stream, which the caller has numbered."""
    events = events_from_pb(messages)
    unnumbered = [
        Violation(f"events[{number}].sequence", "int64.gte", "sequence must be 1 or more")
        for number, event in enumerate(events)
        if not event.sequence
    ]
    if unnumbered:
        raise RequestInvalidError(unnumbered)
    return events


event_to_pb = Encoder(
    EpisodeEvent,
    pb.EpisodeEvent,
    values={
        "data": Struct.FromString,
        "event_time": Whole(
            lambda event: time_to_pb(
                event.record_time if event.event_time is None else event.event_time
            )
        ),
    },
)

# --- filters and hits -----------------------------------------------------------------------------

filter_from_pb = Decoder(pb.EpisodeFilter, EpisodeFilter, path="filter")

request_from_pb = Decoder(
    service_pb.RecallEpisodesRequest,
    RecallOptions,
    defaults={"limit": 5},
    omit={"namespace", "filter", "read_mask", "success_only", "explain", "rerank", "legs"},
)

_hit: Encoder[Hit[Episode], service_pb.EpisodeHit] = Encoder(
    Hit,
    service_pb.EpisodeHit,
    rename={"episode": "thing", "match_probability": "match"},
    values={"episode": episode_to_pb},
    omit={
        "score_parts",
        "parts",
        "outcome_evidence",
        "resource",
        "record",
        "lazy_thing",
        "lazy_match",
        "evidence",
    },
)


def episode_hit_to_pb(hit: Hit[Episode], *, explain: bool = False) -> service_pb.EpisodeHit:
    """An episode found by recall."""
    message = _hit(hit)
    if explain:
        explain_hit(message, hit)
    return message


_error_to_pb = Encoder(ErrorSeen, pb.EpisodeError)
_group_to_pb = Encoder(
    FailureGroup,
    service_pb.FailureGroup,
    flatten=("last_good",),
    rename={
        "trend": "trend.slope",
        "trend_significant": "trend.significant",
        "last_good_episode_id": "last_good.episode_id",
        "last_good_approach": "last_good.approach",
        "last_good_similarity": "last_good.similarity",
    },
    values={
        "example_error": Whole(
            lambda group: _error_to_pb(group.example_error) if group.signature else None
        )
    },
)
analysis_to_pb = Encoder(
    FailureAnalysis,
    service_pb.AnalyzeFailuresResponse,
    values={"groups": _group_to_pb},
    omit={"notices"},
)
