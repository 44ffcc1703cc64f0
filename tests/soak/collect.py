"""All that a server has, read over the API."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC
from typing import Any

from google.protobuf.json_format import MessageToDict
from lot_client import LotClient, LotError
from lot_client.pb.lot.v1.episode_pb2 import EpisodeStatus
from lot_client.pb.lot.v1.outcome_pb2 import Outcome
from lot_client.pb.lot.v1.pattern_pb2 import Pattern
from lot_client.pb.lot.v1.pattern_service_pb2 import ListOutcomesRequest

from tests.soak import content
from tests.soak.calls import edits
from tests.soak.stored import Stored, StoredEpisode, StoredPattern

_PAGE = 500


def collect(client: LotClient, memory_ids: Iterable[str]) -> Stored:
    """Patterns with their logs, episodes with their events, and those memories."""
    stored = Stored()
    for pattern in client.list_patterns(page_size=_PAGE):
        stored.patterns[pattern.pattern_id] = _pattern(client, pattern)
    for episode in client.list_episodes(page_size=_PAGE):
        stored.episodes[episode.episode_id] = StoredEpisode(
            task=episode.task,
            status=EpisodeStatus.Name(episode.status).removeprefix("EPISODE_STATUS_"),
            event_count=episode.event_count,
            events=[
                (event.sequence, _digest(event))
                for event in client.list_episode_events(episode.episode_id, page_size=_PAGE)
            ],
        )
    for name in memory_ids:
        try:
            stored.memories[name] = client.get_memory(name).content
        except LotError as error:
            if error.reason != "MEMORY_NOT_FOUND":
                raise
    return stored


def _pattern(client: LotClient, pattern: Pattern) -> StoredPattern:
    told = pattern.outcomes
    counts = {
        "SUCCESS": told.success_count,
        "FAILURE": told.failure_count,
        "PARTIAL": told.partial_count,
    }
    found = StoredPattern(
        task=pattern.task,
        usage=told.usage_count,
        counts=counts,
        version=edits(pattern.metadata),
    )
    if found.usage or pattern.pattern_id in content.HOT:
        request = ListOutcomesRequest(pattern_id=pattern.pattern_id, page_size=_PAGE)
        found.log = [
            (entry.note, Outcome.Name(entry.outcome).removeprefix("OUTCOME_"))
            for entry in _pages(client.patterns.ListOutcomes, request, "outcomes")
        ]
    return found


def _digest(event: Any) -> str:
    return content.digest(
        event.event_type, MessageToDict(event.data), event.event_time.ToDatetime(UTC)
    )


def _pages(method: Any, request: Any, field: str) -> list[Any]:
    found: list[Any] = []
    while True:
        page = method(request, timeout=60)
        found += getattr(page, field)
        if not page.next_page_token:
            return found
        request.page_token = page.next_page_token
