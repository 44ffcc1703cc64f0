"""What a recorder is created from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lot_client.fields import TakeoverPolicyLike
from lot_client.pb.lot.v1.episode_service_pb2 import StartEpisodeRequest
from lot_client.recorder_policy import RecorderPolicy
from lot_client.requests import Requests
from lot_client.retry import RetryPolicy


@dataclass(frozen=True, slots=True)
class RecorderPlan:
    """What a client creates a recorder from.

    Attributes:
        start: None if the episode already exists.
        invoke: `client.call`, waiting while the server's storage is full.
    """

    requests: Requests
    channel: Any
    stub: Any
    invoke: Any
    retry: RetryPolicy
    deadline: float
    policy: RecorderPolicy
    episode_id: str
    takeover_policy: TakeoverPolicyLike
    start: StartEpisodeRequest | None
    end: bool
    extract_knowledge: bool


def plan_start(
    requests: Requests, task: str, episode_id: str, request_id: str, episode: dict[str, Any]
) -> StartEpisodeRequest | None:
    """The request that starts the episode; None without a task, since then it exists.

    Raises:
        ValueError: neither a task nor an episode is named, or an existing episode gets fields.
    """
    if task:
        return requests.make(
            StartEpisodeRequest,
            episode={"task": task, **episode},
            episode_id=episode_id,
            request_id=request_id,
        )
    if not episode_id:
        raise ValueError("pass a task to start an episode, or the episode_id of an existing one")
    if episode or request_id:
        raise ValueError("an existing episode takes no fields; pass a task to start a new one")
    return None
