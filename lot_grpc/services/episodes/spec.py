"""The kinds ``episode`` and ``episode_event``: their storage, and how services handle them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.episode import EpisodeStatus, search_text
from lot_grpc.domain.errors import EpisodeNotFoundError
from lot_grpc.domain.search_text import SearchText
from lot_grpc.ports import AnyOf, Payload, Record, VectorStore
from lot_grpc.services.episodes.event_log import EventLog
from lot_grpc.services.outcomes.logs import logs_of, logs_of_kind
from lot_grpc.services.records.collections import (
    END_TIME,
    EPISODES,
    EVENTS,
    SOLVED_VECTOR,
    SORT_KEY,
    SPARSE_VECTOR,
    TEXT_VECTOR,
)
from lot_grpc.services.records.counters import PENDING, STATS_REVISION
from lot_grpc.services.records.episodes import (
    ABANDONING,
    ACTIVE_TIME,
    DONE,
    EXTRACTED_PATTERNS,
    EXTRACTED_SOLUTIONS,
    EXTRACTION,
    PENDING_REUSES,
    REUSE,
    USED_EPISODES,
    WRITER_BASE,
    WRITER_BASE_EPOCH,
    WRITER_EPOCH,
    WRITER_UNTIL,
    episode_conditions,
    episode_from_record,
    episode_point,
    event_from_record,
    event_point,
    stage_of,
)
from lot_grpc.services.resource_spec import (
    CHANGE_INDEXES,
    COMMON_INDEXES,
    Bound,
    ExportRule,
    Place,
    RecordSet,
    ResourceCollection,
    ResourceSpec,
    RetentionRule,
    WatchRule,
    indexes,
)

_EVENTS_AT_ONCE = 200
_NOT_RUNNING = AnyOf("status", tuple(s.value for s in EpisodeStatus if s != EpisodeStatus.RUNNING))


def _text_of(record: Record) -> SearchText:
    episode = episode_from_record(record)
    return search_text(episode.start, episode.end)


def _event_point(namespace: str, payload: Payload) -> str:
    return event_point(namespace, payload["episode_id"], payload["sequence"])


def _episode_of(namespace: str, payload: Payload) -> Place:
    return EPISODES, episode_point(namespace, payload["episode_id"])


async def _events_of(
    store: VectorStore, episode: Record, after: str
) -> AsyncIterator[tuple[Record, str]]:
    """The committed events, by number."""
    log, stage = EventLog(store), stage_of(episode.payload)
    last = int(after or 0)
    while True:
        limit = _EVENTS_AT_ONCE
        if stage.status.ended:
            limit = min(limit, stage.event_count - last)
        if limit <= 0:
            return
        found = await log.records(
            episode.namespace, episode.payload["episode_id"], last, limit, stage.committed
        )
        for record in found:
            yield record, str(record.payload["sequence"])
        if len(found) < limit:
            return
        last += limit


EPISODE: Final = ResourceSpec(
    kind=ResourceKind.EPISODE,
    id_key="episode_id",
    point=episode_point,
    read=episode_from_record,
    conditions=episode_conditions,
    missing=EpisodeNotFoundError,
    unchanged=(WRITER_EPOCH,),
    counted=True,
    unchanged_as_seen=(WRITER_EPOCH, STATS_REVISION),
    seen_keys=(
        "episode_id",
        "revision",
        WRITER_EPOCH,
        STATS_REVISION,
        SORT_KEY,
        REUSE,
        USED_EPISODES,
    ),
    collection=ResourceCollection(
        name=EPISODES,
        description="An episode: how it began and ended, and which writer owns it.",
        dense=(TEXT_VECTOR, SOLVED_VECTOR),
        sparse=(SPARSE_VECTOR,),
        text_of=_text_of,
        indexes=COMMON_INDEXES
        | CHANGE_INDEXES
        | indexes(
            keyword=(
                "status task_id category task_type complexity approach agent_role "
                "tools_used error_type success_factors extraction reuse"
            ),
            integer=f"active_time start_time {END_TIME}",
        ),
        export=ExportRule(
            dropped=frozenset({WRITER_UNTIL, ABANDONING, PENDING_REUSES}),
            done={REUSE: DONE, PENDING: []},
            # It was active since; the search for abandoned episodes finds out.
            reset={ACTIVE_TIME: "create_time"},
        ),
    ),
    watch=WatchRule(
        quiet=frozenset(
            {
                ABANDONING,
                ACTIVE_TIME,
                REUSE,
                EXTRACTION,
                EXTRACTED_PATTERNS,
                EXTRACTED_SOLUTIONS,
                WRITER_BASE,
                WRITER_BASE_EPOCH,
                WRITER_EPOCH,
                WRITER_UNTIL,
            }
        )
    ),
    retention=RetentionRule(
        bound=lambda policy: Bound(policy.max_episodes, policy.max_episode_age),
        touched=(_NOT_RUNNING,),
        age_keys=(END_TIME,),
    ),
    belongings=logs_of,
    cleared_along=(RecordSet(EVENTS), *logs_of_kind(ResourceKind.EPISODE)),
)

EPISODE_EVENT: Final = ResourceSpec(
    kind=ResourceKind.EPISODE_EVENT,
    id_key="sequence",
    read=event_from_record,
    collection=ResourceCollection(
        name=EVENTS,
        description="One event of an episode.",
        key="`episode_id`, `sequence`",
        export=ExportRule(
            point=_event_point,
            id_keys=("episode_id", "sequence"),
            parents=(EPISODES,),
            parent=_episode_of,
            inner=_events_of,
            required=("epoch",),
        ),
    ),
    cleared_with=(ResourceKind.EPISODE,),
)
