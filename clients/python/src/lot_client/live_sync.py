"""Episodes and changes as they happen, for threads. `live_aio.py` is the same for asyncio."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from functools import partial
from typing import Any, Unpack

from lot_client import fields
from lot_client.feeds import ChangeWatch, replay
from lot_client.pb.lot.v1 import episode_service_pb2 as requests
from lot_client.pb.lot.v1.change_pb2 import WatchChangesRequest
from lot_client.pb.lot.v1.episode_pb2 import EpisodeEvent
from lot_client.pb.lot.v1.episode_service_pb2_grpc import EpisodeServiceStub
from lot_client.pb.lot.v1.memory_service_pb2_grpc import MemoryServiceStub
from lot_client.recorder_fields import RecorderFields
from lot_client.recorder_plan import RecorderPlan, plan_start
from lot_client.recorder_policy import take_policy
from lot_client.recorder_sync import Recorder
from lot_client.requests import Requests
from lot_client.retry import RetryPolicy


class LiveCalls:
    """The calls of `LotClient` that last."""

    _requests: Requests
    _deadline: float
    _retry: RetryPolicy
    call: Any
    episodes: EpisodeServiceStub
    memories: MemoryServiceStub

    def recorder(
        self,
        task: str = "",
        *,
        episode_id: str = "",
        end: bool = True,
        auto_extract_patterns: bool = False,
        takeover: fields.TakeoverLike = "TAKE_OVER",
        request_id: str = "",
        **options: Unpack[RecorderFields],
    ) -> Recorder:
        """A recorder of an episode, to be used with `with`: it starts and ends the episode.

        Args:
            task: of the episode to start; empty: ``episode_id`` is there already.
            episode_id: to start it under, or of the one that exists.
            end: False leaves the episode open when the block is left.
            auto_extract_patterns: store what the episode teaches when it ends.
            takeover: what opening does while another stream records the episode.
            request_id: of the start; empty: one is made.
            options: what is known of the episode, and how to record it (`RecorderPolicy`).

        Raises:
            TypeError, ValueError: an argument does not fit.
        """
        episode: dict[str, Any] = dict(options)
        policy = take_policy(episode)
        return Recorder(
            RecorderPlan(
                requests=self._requests,
                stub=self.episodes,
                invoke=partial(self.call, wait_out="STORAGE_FULL"),
                retry=self._retry,
                deadline=self._deadline,
                policy=policy,
                episode_id=episode_id,
                takeover=takeover,
                start=plan_start(self._requests, task, episode_id, request_id, episode),
                end=end,
                auto_extract_patterns=auto_extract_patterns,
            )
        )

    def replay_episode(
        self,
        episode_id: str,
        *,
        speed: float = 0.0,
        after_sequence: int = 0,
        follow: bool = False,
    ) -> Iterator[EpisodeEvent]:
        """Events in order, each once, at a multiple of the speed they had; 0 is at once.

        With ``follow`` also those to come, until the episode ends. It goes on by itself after a
        lost connection, while the server is away for less than the client's deadline.
        """
        request = self._requests.make(
            requests.ReplayEpisodeRequest,
            episode_id=episode_id,
            speed=speed,
            after_sequence=after_sequence,
            follow=follow,
        )
        return replay(self.episodes, request, self._retry, self._deadline)

    def analyze_failures(
        self, *, filter: fields.EpisodeFilterLike | None = None, limit: int = 0
    ) -> requests.AnalyzeFailuresResponse:
        """Groups of failed episodes by cause, the largest first."""
        request = self._requests.make(requests.AnalyzeFailuresRequest, filter=filter, limit=limit)
        answer: requests.AnalyzeFailuresResponse
        answer = self.call(self.episodes.AnalyzeFailures, request)
        return answer

    def watch_changes(
        self,
        *,
        resource_kinds: Iterable[fields.ResourceKindLike] = (),
        types: Iterable[fields.ChangeTypeLike] = (),
        after_cursor: str = "",
        from_start: bool = False,
        omit_payload: bool = False,
        heartbeat_interval: timedelta | float | None = None,
    ) -> ChangeWatch:
        """Changes as they happen, to iterate over; its `cursor` says where to go on later.

        It goes on by itself after a lost connection, while the server is away for less than the
        client's deadline. Each change comes at least once.
        """
        request = self._requests.make(
            WatchChangesRequest,
            resource_kinds=resource_kinds,
            types=types,
            after_cursor=after_cursor,
            from_start=from_start,
            omit_payload=omit_payload,
            heartbeat_interval=heartbeat_interval,
        )
        return ChangeWatch(self.memories, request, self._retry, self._deadline)
