"""Clients that write until the server dies, and remember what they sent and what was acknowledged.

Every request has a request id, so that after the restart what is in doubt is sent again, and then
everything that was ever sent must be there exactly once.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

import grpc.aio

from lot_grpc.pb.lot.v1 import outcome_pb2
from tests.server.service import Lot
from tests.server.test_episodes_stream import PB

HOT = ("hot-a", "hot-b", "hot-c")
OUTCOMES = (outcome_pb2.OUTCOME_SUCCESS, outcome_pb2.OUTCOME_FAILURE, outcome_pb2.OUTCOME_PARTIAL)
_GONE = {"UNAVAILABLE", "CANCELLED", "INTERNAL", "UNKNOWN"}
"""What a call may end with when its server is killed."""


class Book:
    """Requests of one kind by request id: what was asked for, and the answers that came."""

    def __init__(self) -> None:
        self.sent: dict[str, dict[str, Any]] = {}
        self.acked: dict[str, Any] = {}

    @property
    def doubt(self) -> list[str]:
        return [request_id for request_id in self.sent if request_id not in self.acked]

    async def ask(self, call: Callable[..., Awaitable[Any]], request_id: str, **ask: Any) -> Any:
        """Send, note, wait, note."""
        self.sent.setdefault(request_id, ask)
        answer = await call(**ask, request_id=request_id)
        self.acked[request_id] = answer
        return answer


class Round:
    """All that was written into one namespace until the server was killed."""

    def __init__(self, lot: Lot, seed: int) -> None:
        self.lot = lot
        self.random = random.Random(seed)
        self.patterns, self.repeats, self.outcomes = Book(), Book(), Book()
        self.events, self.memories, self.episodes, self.deletes = Book(), Book(), Book(), Book()
        self.streams: dict[str, tuple[int, int]] = {}
        """By episode: the last sequence sent, the last one acknowledged."""

    @property
    def books(self) -> list[Book]:
        return [
            self.patterns,
            self.repeats,
            self.outcomes,
            self.events,
            self.memories,
            self.episodes,
        ]

    async def prepare(self) -> None:
        for name in HOT:
            await self.lot.patterns.SavePattern(pattern={"task": name}, pattern_id=name)
        await self.lot.patterns.SavePattern(pattern={"task": "saved again and again"})
        for name in ("stream-0", "stream-1", "unary"):
            await self.lot.episodes.StartEpisode(episode={"task": name}, episode_id=name)
        self.streams = {"stream-0": (0, 0), "stream-1": (0, 0)}

    async def write(self) -> None:
        """Until the server is gone."""
        writers = [
            self._until_gone(self._save, 3),
            self._until_gone(self._repeat, 1),
            self._until_gone(self._outcome, 2),
            self._until_gone(self._event, 1),
            self._until_gone(self._memory, 1),
            self._until_gone(self._episode, 1),
            self._until_gone(self._delete, 1),
            *(self._stream(name) for name in self.streams),
        ]
        await asyncio.gather(*writers)

    async def _until_gone(self, step: Callable[[str], Awaitable[Any]], count: int) -> None:
        async def loop(writer: int) -> None:
            number = 0
            while True:
                try:
                    await step(f"{step.__name__[1:]}-{writer}-{number}")
                except grpc.aio.AioRpcError as error:
                    if error.code().name not in _GONE:
                        raise
                    return
                number += 1

        await asyncio.gather(*map(loop, range(count)))

    # --- one request of each kind -------------------------------------------------------------

    async def _save(self, request_id: str) -> None:
        ask = {"pattern": {"task": f"task of {request_id}", "metadata": {"n": len(request_id)}}}
        await self._maybe_twice(self.patterns, self.lot.patterns.SavePattern, request_id, ask)

    async def _repeat(self, request_id: str) -> None:
        ask = {"pattern": {"task": "saved again and AGAIN"}}
        await self._maybe_twice(self.repeats, self.lot.patterns.SavePattern, request_id, ask)

    async def _outcome(self, request_id: str) -> None:
        ask = {
            "pattern_ids": self.random.sample(HOT, self.random.randint(1, len(HOT))),
            "outcome": self.random.choice(OUTCOMES),
            "query": "a query",
        }
        await self._maybe_twice(self.outcomes, self.lot.patterns.RecordOutcome, request_id, ask)

    async def _event(self, request_id: str) -> None:
        ask = {"episode_id": "unary", "event": {"event_type": request_id}}
        await self._maybe_twice(self.events, self.lot.episodes.RecordEvent, request_id, ask)

    async def _memory(self, request_id: str) -> None:
        ask = {"memory": {"content": f"content of {request_id}"}}
        await self._maybe_twice(self.memories, self.lot.memories.CreateMemory, request_id, ask)

    async def _episode(self, request_id: str) -> None:
        events = [{"event_type": request_id}] * self.random.randint(0, 5)
        ask = {"episode": {"task": f"task of {request_id}", "status": 2}, "events": events}
        await self._maybe_twice(self.episodes, self.lot.episodes.RecordEpisode, request_id, ask)

    async def _delete(self, request_id: str) -> None:
        """Save a pattern and delete it again."""
        await self.lot.patterns.SavePattern(pattern={"task": request_id}, pattern_id=request_id)
        self.deletes.sent[request_id] = {}
        await self.lot.patterns.DeletePattern(pattern_id=request_id)
        self.deletes.acked[request_id] = True

    async def _maybe_twice(
        self, book: Book, call: Callable[..., Awaitable[Any]], request_id: str, ask: dict[str, Any]
    ) -> None:
        """Some requests are sent again though they were acknowledged, or at the same time."""
        dice = self.random.random()
        if dice < 0.1:
            await asyncio.gather(*(book.ask(call, request_id, **ask) for _ in range(2)))
            return
        await book.ask(call, request_id, **ask)
        if dice < 0.2:
            await book.ask(call, request_id, **ask)

    # --- streams ------------------------------------------------------------------------------

    async def _stream(self, name: str) -> None:
        call = self.lot.episodes.RecordEvents()
        try:
            opening = PB.RecordEventsRequest(namespace=self.lot.namespace, episode_id=name)
            await call.write(opening)
            await call.read()
            while True:
                sent, acked = self.streams[name]
                if sent - acked > 200:
                    await self._acknowledged(call, name)
                    continue
                last = sent + self.random.randint(1, 40)
                self.streams[name] = (last, acked)
                batch = [event(name, n) for n in range(sent + 1, last + 1)]
                await call.write(PB.RecordEventsRequest(events=batch))
                if self.random.random() < 0.5:
                    await self._acknowledged(call, name)
                await asyncio.sleep(0.004)  # leave some of the time to the others
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError, EOFError):
            return
        finally:
            call.cancel()

    async def _acknowledged(self, call: Any, name: str) -> None:
        answer = await call.read()
        if answer is grpc.aio.EOF:
            raise EOFError
        self.streams[name] = (self.streams[name][0], answer.last_sequence)


def event(episode: str, number: int) -> dict[str, Any]:
    """What event ``number`` of an episode is."""
    return {"sequence": number, "event_type": f"{episode}/{number}", "data": {"n": number}}
