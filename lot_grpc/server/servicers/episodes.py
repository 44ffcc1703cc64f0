"""EpisodeService."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from functools import partial

from lot_grpc.domain.episode import Episode
from lot_grpc.domain.errors import EpisodeNotFoundError, StreamIdleError, StreamNotOpenedError
from lot_grpc.pb.lot.v1 import episode_service_pb2 as pb
from lot_grpc.pb.lot.v1.episode_service_pb2_grpc import EpisodeServiceServicer
from lot_grpc.server.answers import Page
from lot_grpc.server.call import Context
from lot_grpc.server.codec import episodes as codec
from lot_grpc.server.codec.notices import query_notices
from lot_grpc.server.codec.replay import batch_to_pb, replay_from_pb
from lot_grpc.server.page_token import number_from_token, number_to_token
from lot_grpc.server.servicers.base import namespace_of, read_page
from lot_grpc.server.streams import Requests
from lot_grpc.services.build import Services
from lot_grpc.services.episodes.active_streams import OpenStream
from lot_grpc.services.episodes.event_recorder import TakeoverPolicy
from lot_grpc.services.episodes.failure_analyzer import DEFAULT_GROUPS
from lot_grpc.services.extraction.episode_extraction import ExtractedPatterns
from lot_grpc.services.recall.targets import episode_request

_DEFAULT_EVENT_PAGE = 100
_OPEN_SECONDS = 30.0
"""How long a stream may stay open without naming its episode."""


class EpisodeServicer(EpisodeServiceServicer):
    """Implements EpisodeService: converts, calls a service, converts back."""

    def __init__(self, services: Services, idle_seconds: float) -> None:
        """``idle_seconds``: how long a stream may be without a message; 0 is no limit."""
        self._services = services
        self._idle_seconds = idle_seconds

    # --- recording --------------------------------------------------------------------------------

    async def StartEpisode(
        self, request: pb.StartEpisodeRequest, context: Context
    ) -> pb.StartEpisodeResponse:
        draft = codec.start_draft_from_pb(request)
        return codec.started_to_pb(
            await self._services.episodes.creator.start(namespace_of(request), draft)
        )

    async def RecordEvent(
        self, request: pb.RecordEventRequest, context: Context
    ) -> pb.RecordEventResponse:
        event = await self._services.episodes.recorder.record_event(
            namespace_of(request),
            request.episode_id,
            codec.event_from_pb(request.event, "event"),
            request.request_id,
        )
        return pb.RecordEventResponse(event=codec.event_to_pb(event))

    async def RecordEvents(  # type: ignore[override]  # the iterator can be interrupted
        self, request_iterator: Requests, context: Context
    ) -> AsyncIterator[pb.RecordEventsResponse]:
        writer: OpenStream | None = None
        recorder = self._services.episodes.recorder
        request_iterator.limit_wait(_OPEN_SECONDS, _not_opened)
        try:
            async for request in request_iterator:
                if not isinstance(request, pb.RecordEventsRequest):
                    raise TypeError(type(request))
                if writer is None:
                    writer = await self._open(request)
                    writer.on_stop = request_iterator.interrupt
                    idle = partial(StreamIdleError, writer.episode_id, self._idle_seconds)
                    request_iterator.limit_wait(self._idle_seconds, idle)
                elif request.episode_id or request.namespace or request.takeover_policy:
                    raise StreamNotOpenedError(
                        "namespace, episode_id and takeover_policy are only allowed in the first "
                        "message; open another stream for another episode"
                    )
                last = writer.last
                if request.events:
                    last = await recorder.append(writer, codec.numbered_from_pb(request.events))
                yield pb.RecordEventsResponse(last_sequence=last, writer_epoch=writer.epoch)
        finally:
            if writer is not None:
                await recorder.close(writer)

    async def _open(self, request: pb.RecordEventsRequest) -> OpenStream:
        if not request.episode_id:
            raise StreamNotOpenedError(
                "the first message opens the stream; set episode_id (and optionally namespace and "
                "takeover_policy)"
            )
        takeover_policy = codec.TAKEOVER.from_pb(request.takeover_policy) or TakeoverPolicy.REPLACE
        return await self._services.episodes.recorder.open(
            namespace_of(request), request.episode_id, takeover_policy
        )

    async def EndEpisode(
        self, request: pb.EndEpisodeRequest, context: Context
    ) -> pb.EndEpisodeResponse:
        ended = await self._services.episodes.ender.end(
            namespace_of(request),
            request.episode_id,
            codec.end_from_pb(request),
            request.request_id,
            extract=request.extract_knowledge,
        )
        extracted = await self._extraction(ended.episode, extract=request.extract_knowledge)
        return codec.ended_to_pb(ended, extracted)

    async def RecordEpisode(
        self, request: pb.RecordEpisodeRequest, context: Context
    ) -> pb.RecordEpisodeResponse:
        draft = codec.record_draft_from_pb(request)
        recorded = await self._services.episodes.creator.record(namespace_of(request), draft)
        extracted = await self._extraction(recorded.episode, extract=draft.extract)
        return codec.recorded_to_pb(recorded, extracted)

    async def _extraction(self, episode: Episode, *, extract: bool) -> ExtractedPatterns:
        if not extract:
            return ExtractedPatterns([], [])
        return await self._services.extraction.episodes.take(episode.namespace, episode.episode_id)

    async def DeleteEpisode(
        self, request: pb.DeleteEpisodeRequest, context: Context
    ) -> pb.DeleteEpisodeResponse:
        try:
            events = await self._services.episodes.episodes.delete_with_events(
                namespace_of(request), request.episode_id
            )
        except EpisodeNotFoundError:
            if not request.allow_missing:
                raise
            return pb.DeleteEpisodeResponse(deleted=False)
        return pb.DeleteEpisodeResponse(deleted=True, deleted_event_count=events)

    # --- reading ----------------------------------------------------------------------------------

    async def GetEpisode(
        self, request: pb.GetEpisodeRequest, context: Context
    ) -> pb.GetEpisodeResponse:
        episode = await self._services.episodes.episodes.get(
            namespace_of(request), request.episode_id
        )
        return pb.GetEpisodeResponse(episode=codec.episode_to_pb(episode))

    async def ListEpisodes(
        self, request: pb.ListEpisodesRequest, context: Context
    ) -> pb.ListEpisodesResponse:
        response, narrowed = pb.ListEpisodesResponse(), codec.filter_from_pb(request.filter)
        read = self._services.episodes.episodes.list_page
        return await read_page(request, response, codec.episode_to_pb, read, narrowed)

    async def ListEpisodeEvents(
        self, request: pb.ListEpisodeEventsRequest, context: Context
    ) -> pb.ListEpisodeEventsResponse:
        after = number_from_token(request, request.page_token)
        page = Page(request, pb.ListEpisodeEventsResponse(), codec.event_to_pb)
        found = await self._services.episodes.episodes.list_events(
            namespace_of(request),
            request.episode_id,
            request.after_sequence if after is None else after,
            request.page_size or _DEFAULT_EVENT_PAGE,
            page.fits,
        )
        return page.ending(number_to_token(request, found.next))

    async def ReplayEpisode(
        self, request: pb.ReplayEpisodeRequest, context: Context
    ) -> AsyncIterator[pb.ReplayEpisodeResponse]:
        replaying = self._services.episodes.replayer.replay(
            namespace_of(request), request.episode_id, replay_from_pb(request)
        )
        async with aclosing(replaying) as batches:
            async for batch in batches:
                yield batch_to_pb(batch)

    async def RecallEpisodes(
        self, request: pb.RecallEpisodesRequest, context: Context
    ) -> pb.RecallEpisodesResponse:
        requested, narrowed = codec.request_from_pb(request), codec.filter_from_pb(request.filter)
        answer = await self._services.recall.episodes.find(
            namespace_of(request),
            episode_request(requested, narrowed, success_only=request.success_only),
        )
        return pb.RecallEpisodesResponse(
            hits=[codec.episode_hit_to_pb(hit, explain=request.explain) for hit in answer.hits],
            retrieval_id=answer.retrieval_id,
            notices=query_notices(answer),
        )

    async def AnalyzeFailures(
        self, request: pb.AnalyzeFailuresRequest, context: Context
    ) -> pb.AnalyzeFailuresResponse:
        analysis = await self._services.episodes.failures.analyze(
            namespace_of(request),
            codec.filter_from_pb(request.filter),
            request.limit or DEFAULT_GROUPS,
            request.similarity if request.HasField("similarity") else None,
        )
        return codec.analysis_to_pb(analysis)


def _not_opened() -> StreamNotOpenedError:
    return StreamNotOpenedError(
        f"the stream was not opened within {_OPEN_SECONDS:g} s; open it with an episode_id"
    )
