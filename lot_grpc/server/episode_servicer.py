"""EpisodeService on the wire."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial

from lot_grpc.domain.episode import Episode
from lot_grpc.domain.errors import StreamIdleError, StreamNotOpenedError
from lot_grpc.domain.ids import namespace_or_default
from lot_grpc.domain.query import Ranking
from lot_grpc.pb.lot.v1 import episode_service_pb2 as pb
from lot_grpc.pb.lot.v1 import episode_service_pb2_grpc as pb_grpc
from lot_grpc.pb.lot.v1.outcome_pb2 import Notice
from lot_grpc.server.answers import Page
from lot_grpc.server.call import Context
from lot_grpc.server.convert import episodes as convert
from lot_grpc.server.convert.error_solutions import error_solution_to_pb
from lot_grpc.server.convert.hits import episode_hit_to_pb
from lot_grpc.server.convert.outcomes import RANKING, query_notices, text_notices
from lot_grpc.server.convert.patterns import pattern_to_pb
from lot_grpc.server.page_token import (
    number_from_token,
    number_to_token,
    position_from_token,
    position_to_token,
)
from lot_grpc.server.streams import Requests
from lot_grpc.services.episodes.active_streams import OpenStream
from lot_grpc.services.episodes.episodes import Episodes, Started
from lot_grpc.services.episodes.event_recorder import EventRecorder, Takeover
from lot_grpc.services.extraction.episode_extraction import EpisodeExtraction, ExtractedPatterns
from lot_grpc.services.recall.recall import Recall
from lot_grpc.services.recall.targets import RecallOptions, episode_request

_DEFAULT_LIMIT = 5
_DEFAULT_PAGE = 10
_DEFAULT_EVENT_PAGE = 100
_OPEN_SECONDS = 30.0
"""How long a stream may hold a place without naming its episode."""


class EpisodeServicer(pb_grpc.EpisodeServiceServicer):
    """Converts, calls a service, converts back."""

    def __init__(
        self,
        episodes: Episodes,
        recorder: EventRecorder,
        recall: Recall[Episode],
        episode_extraction: EpisodeExtraction,
        idle_seconds: float,
    ) -> None:
        """``idle_seconds``: how long a stream may be without a message; 0 is no limit."""
        self._episodes = episodes
        self._recording = recorder
        self._recall = recall
        self._episode_extraction = episode_extraction
        self._idle_seconds = idle_seconds

    async def StartEpisode(
        self, request: pb.StartEpisodeRequest, context: Context
    ) -> pb.StartEpisodeResponse:
        draft = convert.start_draft_from_pb(request)
        started = await self._episodes.start(namespace_or_default(request.namespace), draft)
        return pb.StartEpisodeResponse(
            episode=convert.episode_to_pb(started.episode),
            created=started.created,
            notices=_notices(started),
        )

    async def RecordEvent(
        self, request: pb.RecordEventRequest, context: Context
    ) -> pb.RecordEventResponse:
        event = await self._recording.record_event(
            namespace_or_default(request.namespace),
            request.episode_id,
            convert.event_from_pb(request.event, "event"),
            request.request_id,
        )
        return pb.RecordEventResponse(event=convert.event_to_pb(event))

    async def RecordEvents(  # type: ignore[override]  # the iterator can be interrupted
        self, request_iterator: Requests, context: Context
    ) -> AsyncIterator[pb.RecordEventsResponse]:
        writer: OpenStream | None = None
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
                elif request.episode_id or request.namespace or request.takeover:
                    raise StreamNotOpenedError(
                        "namespace, episode_id and takeover are only allowed in the first message; "
                        "open another stream for another episode"
                    )
                last = writer.last
                if request.events:
                    events = convert.numbered_from_pb(request.events)
                    last = await self._recording.append(writer, events)
                yield pb.RecordEventsResponse(last_sequence=last, writer_epoch=writer.epoch)
        finally:
            if writer is not None:
                await self._recording.close(writer)

    async def _open(self, request: pb.RecordEventsRequest) -> OpenStream:
        if not request.episode_id:
            raise StreamNotOpenedError(
                "the first message opens the stream; set episode_id (and optionally namespace and "
                "takeover)"
            )
        takeover = convert.TAKEOVER.from_pb(request.takeover) or Takeover.TAKE_OVER
        namespace = namespace_or_default(request.namespace)
        return await self._recording.open(namespace, request.episode_id, takeover)

    async def EndEpisode(
        self, request: pb.EndEpisodeRequest, context: Context
    ) -> pb.EndEpisodeResponse:
        extract = request.auto_extract_patterns
        ended = await self._episodes.end(
            namespace_or_default(request.namespace),
            request.episode_id,
            convert.end_from_pb(request),
            request.request_id,
            extract=extract,
        )
        extracted = await self._lesson(ended.episode, extract=extract)
        return pb.EndEpisodeResponse(
            episode=convert.episode_to_pb(ended.episode),
            notices=text_notices("summary", truncated=ended.summary_truncated),
            extracted_patterns=map(pattern_to_pb, extracted.patterns),
            extracted_error_solutions=map(error_solution_to_pb, extracted.error_solutions),
        )

    async def RecordEpisode(
        self, request: pb.RecordEpisodeRequest, context: Context
    ) -> pb.RecordEpisodeResponse:
        draft = convert.record_draft_from_pb(request)
        recorded = await self._episodes.record(namespace_or_default(request.namespace), draft)
        extracted = await self._lesson(recorded.episode, extract=draft.extract)
        return pb.RecordEpisodeResponse(
            episode=convert.episode_to_pb(recorded.episode),
            created=recorded.created,
            notices=_notices(recorded),
            extracted_patterns=map(pattern_to_pb, extracted.patterns),
            extracted_error_solutions=map(error_solution_to_pb, extracted.error_solutions),
        )

    async def _lesson(self, episode: Episode, *, extract: bool) -> ExtractedPatterns:
        if not extract:
            return ExtractedPatterns([], [])
        return await self._episode_extraction.take(episode.namespace, episode.episode_id)

    async def GetEpisode(
        self, request: pb.GetEpisodeRequest, context: Context
    ) -> pb.GetEpisodeResponse:
        episode = await self._episodes.get(
            namespace_or_default(request.namespace), request.episode_id
        )
        return pb.GetEpisodeResponse(episode=convert.episode_to_pb(episode))

    async def ListEpisodes(
        self, request: pb.ListEpisodesRequest, context: Context
    ) -> pb.ListEpisodesResponse:
        page = Page(request, pb.ListEpisodesResponse(), convert.episode_to_pb)
        found = await self._episodes.list_page(
            namespace_or_default(request.namespace),
            convert.filter_from_pb(request.filter),
            request.page_size or _DEFAULT_PAGE,
            position_from_token(request, request.page_token),
            page.fits,
        )
        return page.ending(position_to_token(request, found.next))

    async def ListEpisodeEvents(
        self, request: pb.ListEpisodeEventsRequest, context: Context
    ) -> pb.ListEpisodeEventsResponse:
        after = number_from_token(request, request.page_token)
        page = Page(request, pb.ListEpisodeEventsResponse(), convert.event_to_pb)
        found = await self._episodes.list_events(
            namespace_or_default(request.namespace),
            request.episode_id,
            request.after_sequence if after is None else after,
            request.page_size or _DEFAULT_EVENT_PAGE,
            page.fits,
        )
        return page.ending(number_to_token(request, found.next))

    async def RecallEpisodes(
        self, request: pb.RecallEpisodesRequest, context: Context
    ) -> pb.RecallEpisodesResponse:
        requested = RecallOptions(
            query=request.query,
            limit=request.limit or _DEFAULT_LIMIT,
            min_similarity=request.min_similarity,
            ranking=RANKING.from_pb(request.ranking) or Ranking.RELEVANCE,
        )
        answer = await self._recall.find(
            namespace_or_default(request.namespace),
            episode_request(
                requested,
                convert.filter_from_pb(request.filter),
                success_only=request.success_only,
            ),
        )
        return pb.RecallEpisodesResponse(
            hits=[episode_hit_to_pb(hit, explain=request.explain) for hit in answer.hits],
            retrieval_id=answer.retrieval_id,
            notices=query_notices(answer),
        )


def _not_opened() -> StreamNotOpenedError:
    return StreamNotOpenedError(
        f"the stream was not opened within {_OPEN_SECONDS:g} s; open it with an episode_id"
    )


def _notices(started: Started) -> list[Notice]:
    return [
        *text_notices("episode.task", truncated=started.truncated),
        *text_notices("episode.summary", truncated=started.summary_truncated),
    ]
