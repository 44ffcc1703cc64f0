"""Episodes on the wire."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from lot_grpc.pb.lot.v1 import episode_pb2, outcome_pb2
from tests.server.service import Lot

P: Any = episode_pb2


RUNNING, SUCCEEDED, FAILED = (
    P.EPISODE_STATUS_RUNNING,
    P.EPISODE_STATUS_SUCCEEDED,
    P.EPISODE_STATUS_FAILED,
)


GIVEN_BY_SERVER = (
    "episode_id",
    "event_count",
    "reused_count",
    "outcomes",
    "namespace",
    "etag",
    "create_time",
    "update_time",
)


START = datetime(2024, 5, 1, 12, tzinfo=UTC)


END: dict[str, Any] = {
    "summary": "done at last",
    "error": {"type": "TimeoutError", "message": "after 30 s"},
    "error_patterns": ["timeout .*"],
    "success_factors": ["retry"],
    "tools_used": ["curl", "jq"],
    "metrics": {"tokens": 1200.5, "naïve": 0.0},
    "reward": -0.5,
    "used_pattern_ids": ["p-1"],
    "used_episode_ids": ["e-1"],
    "end_time": START + timedelta(minutes=3),
    "approach": "incremental",
}


def whole_start() -> dict[str, Any]:
    """Every field that the start of an episode has."""
    return {
        "task_id": "T-1",
        "task": "migrate the database",
        "category": "database",
        "task_type": "backend",
        "complexity": outcome_pb2.COMPLEXITY_LOW,
        "dependencies": ["postgres", "alembic"],
        "effort": 2.5,
        "agent_role": "builder",
        "context": "in production",
        "start_time": START,
        "tags": ["sql"],
        "labels": {"team.x": "core"},
        "metadata": {"a.b": [1, {"c": None}]},
    }


async def started(lot: Lot, task: str = "build it", **fields: Any) -> Any:
    beside = {n: fields.pop(n) for n in ("episode_id", "request_id") if n in fields}
    answer = await lot.episodes.StartEpisode(episode={"task": task, **fields}, **beside)
    return answer.episode


async def listed(lot: Lot, **requested: Any) -> list[str]:
    answer = await lot.episodes.ListEpisodes(page_size=1000, **requested)
    return [episode.episode_id for episode in answer.episodes]


async def recalled(lot: Lot, query: str, **requested: Any) -> list[str]:
    answer = await lot.episodes.RecallEpisodes(query=query, limit=100, **requested)
    return [hit.episode.episode_id for hit in answer.hits]


async def events_of(lot: Lot, episode_id: str, **requested: Any) -> list[Any]:
    answer = await lot.episodes.ListEpisodeEvents(
        episode_id=episode_id, page_size=1000, **requested
    )
    return list(answer.events)
