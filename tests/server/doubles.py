"""Servicers that answer as a test says, and calls to them."""

# ruff: noqa: N802 - methods are named like their RPCs

from __future__ import annotations

import asyncio
from typing import Any

from lot_grpc.domain.errors import EpisodeEndedError
from lot_grpc.pb.lot.v1 import episode_service_pb2, pattern_service_pb2
from tests.server.wire import saved

EVENTS = episode_service_pb2.RecordEventsRequest


class Patterns:
    """Answers what it is told to, and keeps what reached it."""

    def __init__(self, raises: BaseException | None = None) -> None:
        self.raises = raises
        self.seen: list[Any] = []

    async def SavePattern(self, request, context):
        self.seen.append(request)
        if self.raises is not None:
            raise self.raises
        return saved(request.pattern_id)

    async def GetPattern(self, request, context):
        self.seen.append(request)
        if self.raises is not None:
            raise self.raises
        return pattern_service_pb2.GetPatternResponse()


def get_pattern() -> Any:
    return pattern_service_pb2.GetPatternRequest(pattern_id="p")


class Slow(Patterns):
    """Saves and reads that take until ``go``; says what became of them."""

    def __init__(self) -> None:
        super().__init__()
        self.go = asyncio.Event()
        self.begun = 0
        self.written: list[str] = []
        self.cancelled = 0

    async def SavePattern(self, request, context):
        self.begun += 1
        await self.go.wait()
        self.written.append(request.pattern_id)
        if request.pattern_id == "boom":
            raise ValueError("boom")
        return saved(request.pattern_id)

    async def GetPattern(self, request, context):
        self.begun += 1
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return pattern_service_pb2.GetPatternResponse()


async def awaited(call: Any) -> Any:
    return await call


class Episodes:
    """Acknowledges what it is sent; a write takes until ``go``."""

    def __init__(self, fails_at: int = -1) -> None:
        self.fails_at = fails_at
        self.go = asyncio.Event()
        self.go.set()
        self.begun: list[int] = []
        self.stored: list[int] = []
        self.ended = ""

    async def RecordEvents(self, request_iterator, context):
        try:
            async for request in request_iterator:
                last = request.events[-1].sequence if request.events else 0
                self.begun.append(last)
                await self.go.wait()
                self.check(last)
                self.stored.append(last)
                yield episode_service_pb2.RecordEventsResponse(last_sequence=last)
            self.ended = "half-closed"
        except BaseException as error:
            self.ended = type(error).__name__
            raise

    def check(self, last: int) -> None:
        if last == self.fails_at:
            raise EpisodeEndedError("e-1", "FAILED", "no more events")

    async def ReplayEpisode(self, request, context):
        try:
            for _ in range(3):
                yield episode_service_pb2.ReplayEpisodeResponse()
            if request.follow:
                await asyncio.Event().wait()
            if request.speed == 9:
                raise ValueError("secret")
            self.ended = "done"
        finally:
            self.ended = self.ended or "closed"


def batch(*sequences: int) -> Any:
    request = EVENTS(episode_id="e-1")
    for sequence in sequences:
        request.events.add(sequence=sequence, event_type="step")
    return request
