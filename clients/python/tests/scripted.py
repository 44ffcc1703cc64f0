"""A server in this process that keeps to the contract where a script does not say otherwise."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from types import TracebackType
from typing import Any, Self

import grpc
from google.protobuf import any_pb2
from google.rpc import code_pb2, error_details_pb2, status_pb2
from lot_client.pb.lot.v1 import episode_service_pb2 as episodes
from lot_client.pb.lot.v1 import memory_service_pb2_grpc
from lot_client.pb.lot.v1.episode_pb2 import Episode, EpisodeEvent
from lot_client.pb.lot.v1.episode_service_pb2_grpc import (
    EpisodeServiceServicer,
    add_EpisodeServiceServicer_to_server,
)

Step = Callable[[Any], None]
"""Of a script: called with the call's context, may end it."""


def ends(code: grpc.StatusCode, reason: str = "", retry_after: float | None = None) -> Step:
    """A step that ends a call with an error as the server tells it."""

    def end(context: Any) -> None:
        number = code.value[0]
        status = status_pb2.Status(code=number, message=f"scripted {reason}")
        if reason:
            packed = any_pb2.Any()
            packed.Pack(error_details_pb2.ErrorInfo(reason=reason, domain="lot.v1"))
            status.details.append(packed)
            assert code_pb2.Code.Name(number)
            if retry_after is not None:
                retry = error_details_pb2.RetryInfo()
                retry.retry_delay.FromNanoseconds(int(retry_after * 1e9))
                packed = any_pb2.Any()
                packed.Pack(retry)
                status.details.append(packed)
            details = ("grpc-status-details-bin", status.SerializeToString())
            context.set_trailing_metadata((details,))
        context.abort(code, status.message)

    return end


class Scripted(EpisodeServiceServicer, memory_service_pb2_grpc.MemoryServiceServicer):
    """One episode. Scripts are used up step by step, by whichever stream comes next.

    Attributes:
        opening: steps before a stream's opening is answered.
        answering: steps before a message is answered, its events are stored by then.
        starting, ending: steps before the start and the end of the episode are answered.
        stored: events, in order.
        openings, messages: that came.
        replays, watches: answers to streams of that kind, one list a stream, steps among them.
    """

    def __init__(self) -> None:
        self.opening: list[Step] = []
        self.answering: list[Step] = []
        self.starting: list[Step] = []
        self.ending: list[Step] = []
        self.stored: list[EpisodeEvent] = []
        self.openings: list[episodes.RecordEventsRequest] = []
        self.messages: list[episodes.RecordEventsRequest] = []
        self.starts: list[episodes.StartEpisodeRequest] = []
        self.ends: list[episodes.EndEpisodeRequest] = []
        self.replays: list[list[Any]] = []
        self.watches: list[list[Any]] = []
        self.requests: list[Any] = []
        self.start_time: datetime | None = None
        self.over = threading.Event()
        self._server = grpc.server(ThreadPoolExecutor(8))
        add_EpisodeServiceServicer_to_server(self, self._server)
        memory_service_pb2_grpc.add_MemoryServiceServicer_to_server(self, self._server)
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.over.set()
        self._server.stop(0).wait()

    def StartEpisode(self, request: Any, context: Any) -> Any:  # noqa: N802
        self.starts.append(request)
        self._step(self.starting, context)
        episode = Episode(episode_id="e-1", start_time=self.start_time)
        return episodes.StartEpisodeResponse(episode=episode, created=True)

    def EndEpisode(self, request: Any, context: Any) -> Any:  # noqa: N802
        self.ends.append(request)
        self._step(self.ending, context)
        return episodes.EndEpisodeResponse(episode=Episode(episode_id="e-1"))

    def RecordEvents(self, request_iterator: Any, context: Any) -> Iterator[Any]:  # noqa: N802
        self.openings.append(next(request_iterator))
        self._step(self.opening, context)
        yield self._answer()
        for message in request_iterator:
            self.messages.append(message)
            for event in message.events:
                if event.sequence > len(self.stored) + 1:
                    ends(grpc.StatusCode.FAILED_PRECONDITION, "EVENT_SEQUENCE_GAP")(context)
                if event.sequence == len(self.stored) + 1:
                    self.stored.append(event)
                elif event != self.stored[event.sequence - 1]:
                    ends(grpc.StatusCode.ALREADY_EXISTS, "EVENT_CONFLICT")(context)
            self._step(self.answering, context)
            yield self._answer()

    def ReplayEpisode(self, request: Any, context: Any) -> Iterator[Any]:  # noqa: N802
        yield from self._play(self.replays, request, context)

    def WatchChanges(self, request: Any, context: Any) -> Iterator[Any]:  # noqa: N802
        yield from self._play(self.watches, request, context)
        context.add_callback(self.over.set)
        self.over.wait()

    def AnalyzeFailures(self, request: Any, context: Any) -> Any:  # noqa: N802
        self.requests.append(request)
        return episodes.AnalyzeFailuresResponse(failed_count=3)

    def _play(self, plays: list[list[Any]], request: Any, context: Any) -> Iterator[Any]:
        self.requests.append(request)
        for item in plays.pop(0):
            if callable(item):
                item(context)
            else:
                yield item

    def _answer(self) -> Any:
        last = len(self.stored)
        return episodes.RecordEventsResponse(last_sequence=last, writer_epoch=len(self.openings))

    def _step(self, steps: list[Step], context: Any) -> None:
        if steps:
            steps.pop(0)(context)
