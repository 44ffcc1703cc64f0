"""The client for threads. `aio.py` is the same for asyncio: change both together."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from datetime import timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeAlias, TypeVar, Unpack

import grpc
from google.protobuf.message import Message

from lot_client import fields
from lot_client.failed_calls import FailedCalls
from lot_client.live_sync import LiveCalls
from lot_client.namespaces import in_namespace
from lot_client.pb.lot.v1 import admin_service_pb2 as admin
from lot_client.pb.lot.v1 import episode_service_pb2 as episodes
from lot_client.pb.lot.v1 import memory_service_pb2 as memories
from lot_client.pb.lot.v1 import pattern_service_pb2 as patterns
from lot_client.pb.lot.v1 import task_context_pb2 as contexts
from lot_client.pb.lot.v1.admin_service_pb2_grpc import AdminServiceStub
from lot_client.pb.lot.v1.episode_pb2 import Episode, EpisodeEvent
from lot_client.pb.lot.v1.episode_service_pb2_grpc import EpisodeServiceStub
from lot_client.pb.lot.v1.learning_service_pb2_grpc import LearningServiceStub
from lot_client.pb.lot.v1.memory_pb2 import Memory
from lot_client.pb.lot.v1.memory_service_pb2_grpc import MemoryServiceStub
from lot_client.pb.lot.v1.pattern_pb2 import Pattern
from lot_client.pb.lot.v1.pattern_service_pb2_grpc import PatternServiceStub
from lot_client.recall import PatternRecall
from lot_client.requests import (
    CHANNEL_OPTIONS,
    PAGE_SIZE,
    Requests,
    failed,
    is_safe,
)
from lot_client.retry import Attempts, RetryPolicy
from lot_client.streams import EventStream
from lot_client.window import Window, as_event, as_events

R = TypeVar("R", bound=Message)
if TYPE_CHECKING:
    UnaryCall: TypeAlias = grpc.UnaryUnaryMultiCallable[Any, R]


class LotClient(LiveCalls):
    """A connection to a lot-grpc server, for any number of threads.

    Methods take what the contract's requests have (`proto/lot/v1` tells what each field means)
    and raise LotError. Calls that are safe to repeat are repeated while the server is away or
    overloaded.

    Attributes:
        patterns, episodes, memories, learning, admin: the generated stubs, for everything that has
            no method here, in the client's namespace unless the request names one. By themselves
            they raise grpc.RpcError and repeat nothing: see `call`.
    """

    def __init__(
        self,
        address: str = "127.0.0.1:50051",
        *,
        namespace: str = "",
        deadline: float = 30.0,
        retry: RetryPolicy | None = None,
        channel: grpc.Channel | None = None,
    ) -> None:
        """Connects with the first call.

        Args:
            address: host and port.
            namespace: tenant of all calls that name none, stubs included; empty is `default`.
            deadline: seconds for a call with all its tries, and for each step of a stream.
            retry: None: the defaults.
            channel: to use instead of one to ``address``, for example with TLS.
        """
        self._channel = channel or grpc.insecure_channel(address, options=CHANNEL_OPTIONS)
        self._requests = Requests(namespace)
        self._deadline = deadline
        self._retry = retry or RetryPolicy()
        self._failed_calls = FailedCalls()
        named = in_namespace(self._channel, namespace)
        self.patterns = PatternServiceStub(named)
        self.episodes = EpisodeServiceStub(named)
        self.memories = MemoryServiceStub(named)
        self.learning = LearningServiceStub(named)
        self.admin = AdminServiceStub(named)

    def using(
        self,
        *,
        namespace: str | None = None,
        deadline: float | None = None,
        retry: RetryPolicy | None = None,
    ) -> LotClient:
        """A client with other settings over the same connection."""
        made = LotClient(
            namespace=self._requests.namespace if namespace is None else namespace,
            deadline=self._deadline if deadline is None else deadline,
            retry=retry or self._retry,
            channel=self._channel,
        )
        made._failed_calls = self._failed_calls
        return made

    def close(self) -> None:
        """Close the connection; running calls end with CANCELLED."""
        self._channel.close()

    def __enter__(self) -> Self:
        """Nothing yet: the first call connects."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the connection."""
        self.close()

    # --- patterns -------------------------------------------------------------------------------

    def save_pattern(
        self,
        task: str,
        *,
        pattern_id: str = "",
        initial_success_rate: float | None = None,
        dedupe: fields.DedupeLike | None = None,
        request_id: str = "",
        **pattern: Unpack[fields.PatternFields],
    ) -> patterns.SavePatternResponse:
        """Store a pattern, or count a success for the one of the same content."""
        request = self._requests.make(
            patterns.SavePatternRequest,
            pattern={"task": task, **pattern},
            pattern_id=pattern_id,
            initial_success_rate=initial_success_rate,
            dedupe=dedupe,
            request_id=request_id,
        )
        return self.call(self.patterns.SavePattern, request)

    def batch_save_patterns(
        self, items: Iterable[fields.SavePatternItemLike]
    ) -> patterns.BatchSavePatternsResponse:
        """Save up to 500. Items fail by themselves: `LotError.from_status(result.error)`."""
        request = self._requests.save_items(items)
        return self.call(self.patterns.BatchSavePatterns, request)

    def get_pattern(self, pattern_id: str) -> Pattern:
        """Read one."""
        request = self._requests.make(patterns.GetPatternRequest, pattern_id=pattern_id)
        return self.call(self.patterns.GetPattern, request).pattern

    def update_pattern(
        self, pattern_id: str, *, etag: str = "", **edits: Unpack[fields.PatternEdits]
    ) -> patterns.UpdatePatternResponse:
        """Set just the fields given. With ``etag`` only if nobody edited it since."""
        request = self._requests.update(pattern_id, etag, edits)
        return self.call(self.patterns.UpdatePattern, request)

    def delete_pattern(
        self, pattern_id: str, *, etag: str = "", allow_missing: bool = False
    ) -> bool:
        """Delete one with its outcomes. False: it was not there, which ``allow_missing`` allows."""
        request = self._requests.make(
            patterns.DeletePatternRequest,
            pattern_id=pattern_id,
            etag=etag,
            allow_missing=allow_missing,
        )
        return self.call(self.patterns.DeletePattern, request).deleted

    def list_patterns(
        self, *, filter: fields.PatternFilterLike | None = None, page_size: int = PAGE_SIZE
    ) -> Iterator[Pattern]:
        """All that the filter lets through, newest first, fetched page by page."""
        request = self._requests.make(
            patterns.ListPatternsRequest, filter=filter, page_size=page_size
        )
        return self._pages(self.patterns.ListPatterns, request, "patterns")

    def recall_patterns(
        self,
        query: str,
        *,
        filter: fields.PatternFilterLike | None = None,
        limit: int = 0,
        min_similarity: float | None = None,
        ranking: fields.RankingLike | None = None,
        seed: int | None = None,
        rerank: bool = False,
        explain: bool = False,
    ) -> PatternRecall:
        """The patterns most relevant by meaning and words; ``seed`` is that of EXPLORE."""
        request = self._requests.make(
            patterns.RecallPatternsRequest,
            query=query,
            filter=filter,
            limit=limit,
            min_similarity=min_similarity,
            ranking=ranking,
            seed=seed,
            rerank=rerank,
            explain=explain,
        )
        return PatternRecall(query, self.call(self.patterns.RecallPatterns, request))

    def record_outcome(
        self,
        pattern_ids: str | Iterable[str],
        outcome: fields.OutcomeLike,
        *,
        recall: PatternRecall | None = None,
        query: str = "",
        retrieval_id: str = "",
        reward: float | None = None,
        duration: timedelta | float | None = None,
        note: str = "",
        request_id: str = "",
    ) -> list[Pattern]:
        """Record how using these patterns went, for the recall or query that found them."""
        request = self._requests.outcome(
            pattern_ids,
            recall,
            query,
            retrieval_id,
            outcome=outcome,
            reward=reward,
            duration=duration,
            note=note,
            request_id=request_id,
        )
        return list(self.call(self.patterns.RecordOutcome, request).patterns)

    def get_pattern_stats(
        self, *, filter: fields.PatternFilterLike | None = None
    ) -> patterns.GetPatternStatsResponse:
        """Sums over the patterns that the filter lets through."""
        request = self._requests.make(patterns.GetPatternStatsRequest, filter=filter)
        return self.call(self.patterns.GetPatternStats, request)

    # --- episodes -------------------------------------------------------------------------------

    def start_episode(
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
        return self.call(self.episodes.StartEpisode, request).episode

    def record_event(
        self, episode_id: str, event: fields.EventLike, *, request_id: str = ""
    ) -> EpisodeEvent:
        """Append one event. For many use `record_events`."""
        request = self._requests.make(
            episodes.RecordEventRequest,
            episode_id=episode_id,
            event=as_event(event),
            request_id=request_id,
        )
        return self.call(self.episodes.RecordEvent, request).event

    def record_events(
        self, episode_id: str, *, takeover: fields.TakeoverLike = "TAKE_OVER"
    ) -> EventStream:
        """A stream to append events over, to be used with `with`."""
        window = Window(self._requests.namespace, episode_id, takeover)
        return EventStream(self.episodes, window, self._deadline, self._retry)

    def end_episode(
        self,
        episode_id: str,
        status: fields.EpisodeStatusLike,
        *,
        request_id: str = "",
        auto_extract_patterns: bool = False,
        **end: Unpack[fields.EpisodeEndFields],
    ) -> Episode:
        """End an episode as SUCCEEDED or FAILED."""
        request = self._requests.make(
            episodes.EndEpisodeRequest,
            episode_id=episode_id,
            status=status,
            request_id=request_id,
            auto_extract_patterns=auto_extract_patterns,
            **end,
        )
        return self.call(self.episodes.EndEpisode, request).episode

    def record_episode(
        self,
        task: str,
        status: fields.EpisodeStatusLike,
        events: fields.Events = (),
        *,
        episode_id: str = "",
        request_id: str = "",
        auto_extract_patterns: bool = False,
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
            auto_extract_patterns=auto_extract_patterns,
        )
        return self.call(self.episodes.RecordEpisode, request).episode

    def get_episode(self, episode_id: str) -> Episode:
        """Read one, without its events."""
        request = self._requests.make(episodes.GetEpisodeRequest, episode_id=episode_id)
        return self.call(self.episodes.GetEpisode, request).episode

    def list_episodes(
        self, *, filter: fields.EpisodeFilterLike | None = None, page_size: int = PAGE_SIZE
    ) -> Iterator[Episode]:
        """All that the filter lets through, newest first, fetched page by page."""
        request = self._requests.make(
            episodes.ListEpisodesRequest, filter=filter, page_size=page_size
        )
        return self._pages(self.episodes.ListEpisodes, request, "episodes")

    def list_episode_events(
        self, episode_id: str, *, after_sequence: int = 0, page_size: int = PAGE_SIZE
    ) -> Iterator[EpisodeEvent]:
        """Events with a higher sequence, in order, fetched page by page."""
        request = self._requests.make(
            episodes.ListEpisodeEventsRequest,
            episode_id=episode_id,
            after_sequence=after_sequence,
            page_size=page_size,
        )
        return self._pages(self.episodes.ListEpisodeEvents, request, "events")

    def recall_episodes(
        self,
        query: str,
        *,
        success_only: bool = False,
        filter: fields.EpisodeFilterLike | None = None,
        limit: int = 0,
        min_similarity: float | None = None,
        ranking: fields.RankingLike | None = None,
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
            ranking=ranking,
            explain=explain,
        )
        return self.call(self.episodes.RecallEpisodes, request)

    # --- memories -------------------------------------------------------------------------------

    def create_memory(
        self,
        content: str,
        *,
        memory_id: str = "",
        request_id: str = "",
        **memory: Unpack[fields.MemoryFields],
    ) -> memories.CreateMemoryResponse:
        """Store a memory."""
        request = self._requests.make(
            memories.CreateMemoryRequest,
            memory={"content": content, **memory},
            memory_id=memory_id,
            request_id=request_id,
        )
        return self.call(self.memories.CreateMemory, request)

    def get_memory(self, memory_id: str) -> Memory:
        """Read one."""
        request = self._requests.make(memories.GetMemoryRequest, memory_id=memory_id)
        return self.call(self.memories.GetMemory, request).memory

    def delete_memory(self, memory_id: str, *, etag: str = "", allow_missing: bool = False) -> bool:
        """Delete one. False: it was not there, which ``allow_missing`` allows."""
        request = self._requests.make(
            memories.DeleteMemoryRequest,
            memory_id=memory_id,
            etag=etag,
            allow_missing=allow_missing,
        )
        return self.call(self.memories.DeleteMemory, request).deleted

    def search_memories(
        self,
        query: str,
        *,
        filter: fields.MemoryFilterLike | None = None,
        limit: int = 0,
        min_similarity: float | None = None,
        ranking: fields.RankingLike | None = None,
        rerank: bool = False,
        explain: bool = False,
    ) -> memories.SearchMemoriesResponse:
        """The memories most relevant by meaning and words, within the filter."""
        request = self._requests.make(
            memories.SearchMemoriesRequest,
            query=query,
            filter=filter,
            limit=limit,
            min_similarity=min_similarity,
            ranking=ranking,
            rerank=rerank,
            explain=explain,
        )
        return self.call(self.memories.SearchMemories, request)

    def get_task_context(
        self,
        task: str = "",
        *,
        task_id: str = "",
        category: str = "",
        task_type: str = "",
        language: str = "",
        complexity: fields.ComplexityLike | None = None,
        limit: int = 0,
        max_tokens: int = 0,
        min_similarity: float | None = None,
        preference_categories: Iterable[str] = (),
    ) -> contexts.GetTaskContextResponse:
        """What is known for a task, or for that of an earlier `task_id`, ready for a prompt."""
        request = self._requests.make(
            contexts.GetTaskContextRequest,
            task=task,
            task_id=task_id,
            category=category,
            task_type=task_type,
            language=language,
            complexity=complexity,
            limit=limit,
            max_tokens=max_tokens,
            min_similarity=min_similarity,
            preference_categories=list(preference_categories),
        )
        return self.call(self.memories.GetTaskContext, request)

    # --- the server -----------------------------------------------------------------------------

    def get_server_info(self) -> admin.GetServerInfoResponse:
        """Version, model, limits and counts."""
        request = self._requests.make(admin.GetServerInfoRequest)
        return self.call(self.admin.GetServerInfo, request)

    def check_ready(self) -> admin.CheckReadyResponse:
        """Whether the server can work, and what is wrong if not."""
        request = self._requests.make(admin.CheckReadyRequest)
        return self.call(self.admin.CheckReady, request)

    def embed(
        self, items: Iterable[str | fields.EmbedItemLike], *, omit_vectors: bool = False
    ) -> admin.EmbedResponse:
        """Return the vectors of texts and their similarities, to see why a search finds something.

        A plain string is embedded as a text to store; for a query, pass
        `{"text": ..., "use": "QUERY"}`.
        """
        each = [{"text": item} if isinstance(item, str) else item for item in items]
        request = self._requests.make(admin.EmbedRequest, items=each, omit_vectors=omit_vectors)
        return self.call(self.admin.Embed, request)

    def compact(self) -> admin.CompactResponse:
        """Compact the store."""
        request = self._requests.make(admin.CompactRequest)
        return self.call(self.admin.Compact, request)

    # --- how calls are made ---------------------------------------------------------------------

    def call(
        self,
        method: UnaryCall[R],
        request: Message,
        *,
        deadline: float | None = None,
        wait_out: str = "",
    ) -> R:
        """Make a call that has no method here, through a stub.

        It is retried where that is safe. A write that takes a request id gets one: that of the same
        call, if it failed within 10 minutes and may have been carried out.

        Args:
            method: of a stub, for example `client.learning.SelectAction`.
            request: its request; it is not changed.
            deadline: seconds for all tries; None: the client's.
            wait_out: another reason to treat as temporary, for example `STORAGE_FULL`.
        """
        attempts = Attempts(self._retry, self._deadline if deadline is None else deadline)
        with self._failed_calls.identified(request, self._requests.namespace) as request:
            safe = is_safe(request)
            while True:
                try:
                    return method(request, timeout=attempts.seconds_left)
                except grpc.RpcError as error:
                    failure = failed(request, error)
                time.sleep(attempts.delay_after(failure, safe=safe, also=wait_out))

    def _pages(self, method: UnaryCall[Any], request: Any, field: str) -> Iterator[Any]:
        while True:
            page = self.call(method, request)
            yield from getattr(page, field)
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token
