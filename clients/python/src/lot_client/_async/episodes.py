"""Episodes: record, read, recall and replay them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from typing import Any, Unpack

from lot_client import fields
from lot_client._async.base import AsyncBaseClient
from lot_client._async.feeds import replay
from lot_client._async.recorder import AsyncRecorder
from lot_client._async.streams import AsyncEventStream
from lot_client.pb.lot.v1 import episode_service_pb2 as episodes
from lot_client.pb.lot.v1.episode_pb2 import Episode, EpisodeEvent
from lot_client.recorder_fields import RecorderFields
from lot_client.recorder_plan import RecorderPlan, plan_start
from lot_client.recorder_policy import take_policy
from lot_client.requests import PAGE_SIZE
from lot_client.window import Window, as_event, as_events


class AsyncEpisodeCalls(AsyncBaseClient):
    """The calls of `AsyncLotClient` for episodes."""

    async def start_episode(
        self,
        task: str,
        *,
        episode_id: str = "",
        request_id: str = "",
        **episode: Unpack[fields.EpisodeFields],
    ) -> Episode:
        """Start an episode."""
        request = self._requests.make(
            episodes.StartEpisodeRequest,
            episode={"task": task, **episode},
            episode_id=episode_id,
            request_id=request_id,
        )
        return (await self.call(self.episodes.StartEpisode, request)).episode

    async def record_event(
        self, episode_id: str, event: fields.EventLike, *, request_id: str = ""
    ) -> EpisodeEvent:
        """Append one event; for many, use `record_events`."""
        request = self._requests.make(
            episodes.RecordEventRequest,
            episode_id=episode_id,
            event=as_event(event),
            request_id=request_id,
        )
        return (await self.call(self.episodes.RecordEvent, request)).event

    def record_events(
        self, episode_id: str, *, takeover_policy: fields.TakeoverPolicyLike = "REPLACE"
    ) -> AsyncEventStream:
        """A stream that appends events; use it with `async with`."""
        window = Window(self._requests.namespace, episode_id, takeover_policy)
        return AsyncEventStream(self.episodes, window, self._deadline, self._retry)

    async def end_episode(
        self,
        episode_id: str,
        status: fields.EpisodeStatusLike,
        *,
        request_id: str = "",
        extract_knowledge: bool = False,
        **end: Unpack[fields.EpisodeEndFields],
    ) -> Episode:
        """End an episode as SUCCEEDED or FAILED."""
        request = self._requests.make(
            episodes.EndEpisodeRequest,
            episode_id=episode_id,
            status=status,
            request_id=request_id,
            extract_knowledge=extract_knowledge,
            **end,
        )
        return (await self.call(self.episodes.EndEpisode, request)).episode

    async def record_episode(
        self,
        task: str,
        status: fields.EpisodeStatusLike,
        events: fields.Events = (),
        *,
        episode_id: str = "",
        request_id: str = "",
        extract_knowledge: bool = False,
        **episode: Unpack[fields.WholeEpisodeFields],
    ) -> Episode:
        """Record a finished episode with its events in one call.

        ``task`` may be empty if ``summary`` is given.
        """
        request = self._requests.make(
            episodes.RecordEpisodeRequest,
            episode={"task": task, "status": status, **episode},
            events=as_events(events),
            episode_id=episode_id,
            request_id=request_id,
            extract_knowledge=extract_knowledge,
        )
        return (await self.call(self.episodes.RecordEpisode, request)).episode

    async def get_episode(self, episode_id: str) -> Episode:
        """Read an episode, without its events."""
        request = self._requests.make(episodes.GetEpisodeRequest, episode_id=episode_id)
        return (await self.call(self.episodes.GetEpisode, request)).episode

    def list_episodes(
        self, *, filter: fields.EpisodeFilterLike | None = None, page_size: int = PAGE_SIZE
    ) -> AsyncIterator[Episode]:
        """All that match the filter, newest first, fetched page by page."""
        request = self._requests.make(
            episodes.ListEpisodesRequest, filter=filter, page_size=page_size
        )
        return self._pages(self.episodes.ListEpisodes, request, "episodes")

    def list_episode_events(
        self, episode_id: str, *, after_sequence: int = 0, page_size: int = PAGE_SIZE
    ) -> AsyncIterator[EpisodeEvent]:
        """Events with a higher sequence, in order, fetched page by page."""
        request = self._requests.make(
            episodes.ListEpisodeEventsRequest,
            episode_id=episode_id,
            after_sequence=after_sequence,
            page_size=page_size,
        )
        return self._pages(self.episodes.ListEpisodeEvents, request, "events")

    async def recall_episodes(
        self,
        query: str,
        *,
        success_only: bool = False,
        filter: fields.EpisodeFilterLike | None = None,
        limit: int = 0,
        min_similarity: float | None = None,
        min_match: float | None = None,
        ranking: fields.RankingLike | None = None,
        seed: int | None = None,
        explain: bool = False,
    ) -> episodes.RecallEpisodesResponse:
        """The episodes most relevant by meaning and words, within the filter."""
        request = self._requests.make(
            episodes.RecallEpisodesRequest,
            query=query,
            success_only=success_only,
            filter=filter,
            limit=limit,
            min_similarity=min_similarity,
            min_match=min_match,
            ranking=ranking,
            seed=seed,
            explain=explain,
        )
        return await self.call(self.episodes.RecallEpisodes, request)

    def recorder(
        self,
        task: str = "",
        *,
        episode_id: str = "",
        end: bool = True,
        extract_knowledge: bool = False,
        takeover_policy: fields.TakeoverPolicyLike = "REPLACE",
        request_id: str = "",
        **options: Unpack[RecorderFields],
    ) -> AsyncRecorder:
        """A recorder that starts and ends an episode; use it with `async with`.

        Args:
            task: of the episode to start; empty if ``episode_id`` already exists.
            episode_id: for the new episode, or of the existing one.
            end: False leaves the episode open when the block is left.
            extract_knowledge: extract patterns from the episode when it ends.
            takeover_policy: what to do if another stream is recording the episode.
            request_id: of the call that starts the episode; empty: one is generated.
            options: fields of the episode, and how to record it (`RecorderPolicy`).

        Raises:
            TypeError, ValueError: an argument is invalid.
        """
        episode: dict[str, Any] = dict(options)
        policy = take_policy(episode)
        plan = RecorderPlan(
            requests=self._requests,
            channel=self._channel,
            stub=self.episodes,
            invoke=partial(self.call, wait_out="STORAGE_FULL"),
            retry=self._retry,
            deadline=self._deadline,
            policy=policy,
            episode_id=episode_id,
            takeover_policy=takeover_policy,
            start=plan_start(self._requests, task, episode_id, request_id, episode),
            end=end,
            extract_knowledge=extract_knowledge,
        )
        return AsyncRecorder(plan)

    def replay_episode(
        self,
        episode_id: str,
        *,
        speed: float = 0.0,
        after_sequence: int = 0,
        follow: bool = False,
    ) -> AsyncIterator[EpisodeEvent]:
        """Events in order, each once, at a multiple of their original speed; 0: without delays.

        With ``follow``, new events too, until the episode ends. Resumes by itself after a lost
        connection, unless the server is unreachable for longer than the client's deadline.
        """
        request = self._requests.make(
            episodes.ReplayEpisodeRequest,
            episode_id=episode_id,
            speed=speed,
            after_sequence=after_sequence,
            follow=follow,
        )
        return replay(self.episodes, request, self._retry, self._deadline)

    async def analyze_failures(
        self, *, filter: fields.EpisodeFilterLike | None = None, limit: int = 0
    ) -> episodes.AnalyzeFailuresResponse:
        """Failed episodes grouped by cause, the largest group first."""
        request = self._requests.make(episodes.AnalyzeFailuresRequest, filter=filter, limit=limit)
        return await self.call(self.episodes.AnalyzeFailures, request)
