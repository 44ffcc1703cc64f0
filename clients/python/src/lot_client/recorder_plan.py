"""What a recorder is made with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lot_client.fields import TakeoverLike
from lot_client.pb.lot.v1.episode_service_pb2 import StartEpisodeRequest
from lot_client.recorder_policy import RecorderPolicy
from lot_client.requests import Requests
from lot_client.retry import RetryPolicy


@dataclass(frozen=True, slots=True)
class RecorderPlan:
    """What a client makes a recorder with.

    Attributes:
        start: None: the episode is there already.
        invoke: makes a unary call with all its tries, and waits for room to write: `client.call`.
    """

    requests: Requests
    stub: Any
    invoke: Any
    retry: RetryPolicy
    deadline: float
    policy: RecorderPolicy
    episode_id: str
    takeover: TakeoverLike
    start: StartEpisodeRequest | None
    end: bool
    auto_extract_patterns: bool


def plan_start(
    requests: Requests, task: str, episode_id: str, request_id: str, episode: dict[str, Any]
) -> StartEpisodeRequest | None:
    """The request that starts the episode; None without a task: then it exists.

    Raises:
        ValueError: neither a task nor an episode is named, or an episode that exists is described.
    """
    if task:
        return requests.make(
            StartEpisodeRequest,
            episode={"task": task, **episode},
            episode_id=episode_id,
            request_id=request_id,
        )
    if not episode_id:
        raise ValueError("give a task, to start an episode, or the episode_id of one that exists")
    if episode or request_id:
        raise ValueError("without a task the episode exists: nothing describes it anew")
    return None
