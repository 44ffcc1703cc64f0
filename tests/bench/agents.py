"""Many agents at once, on the client's side: each records an episode over a stream of its own."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count as counter
from typing import Any

import grpc.aio

from lot_grpc.pb.lot.v1 import episode_pb2, episode_service_pb2
from tests.bench import data

DEADLINE = 600.0
_EPISODES = "/lot.v1.EpisodeService/"
_AT_ONCE = 16
"""Episodes that are started, or read, at a time."""
_PAGE = 1000
_IDLE_CHANNELS = 8


def names(prefix: str, count: int) -> list[str]:
    """The ids of the episodes of ``count`` agents."""
    return [f"{prefix}-{number}" for number in range(count)]


async def record(
    channel: Any, prefix: str, count: int, events: int, batch: int, window: int, rate: float = 0
) -> dict[str, Any]:
    """``count`` agents record ``events`` each, in batches, and wait for all acknowledgements.

    ``rate``: events a second of all together, each agent in its turn; 0: as fast as they are
    acknowledged, with ``window`` batches unacknowledged at most. Returns when it began, and how
    long all of it and each acknowledgement took. Starting the episodes and opening the streams is
    not timed.
    """
    batches = data.event_batches(events, batch)
    ids = names(prefix, count)
    await _start(channel, ids)
    streams = [await _Stream.open(channel, name) for name in ids]
    between = count * batch / rate if rate else 0.0
    started = time.perf_counter()
    await asyncio.gather(
        *(
            stream.record(batches, window, started + between * number / count, between)
            for number, stream in enumerate(streams)
        )
    )
    seconds = time.perf_counter() - started
    for stream in streams:
        await stream.close(events)
    times = [taken for one in streams for taken in one.times]
    return {"started": started, "seconds": seconds, "times": times}


async def check(channel: Any, prefix: str, count: int, events: int) -> dict[str, Any]:
    """Read all back; how many events there are. Raises unless each is there once and in order."""
    call = channel.unary_unary(f"{_EPISODES}ListEpisodeEvents")
    expected = [data.event(sequence) for sequence in range(1, events + 1)]

    async def read(name: str) -> None:
        found: list[Any] = []
        page = episode_service_pb2.ListEpisodeEventsRequest(episode_id=name, page_size=_PAGE)
        while True:
            raw = await call(page.SerializeToString(), timeout=DEADLINE)
            answer = episode_service_pb2.ListEpisodeEventsResponse.FromString(raw)
            found += answer.events
            page.page_token = answer.next_page_token
            if not page.page_token:
                break
        for event in found:  # what the server gives
            event.ClearField("event_time")
            event.ClearField("record_time")
        if found != expected:
            raise RuntimeError(f"{name} has {len(found)} events, not the {events} that were sent")

    await _each(names(prefix, count), read)
    return {"events": count * events}


async def recall_on(call: Any, first: int, clients: int) -> list[tuple[float, float]]:
    """Distinct recalls, ``clients`` at a time, until cancelled; when each began and its seconds."""
    numbers = counter(first)
    times: list[tuple[float, float]] = []

    async def client() -> None:
        while True:
            request = data.recall(next(numbers), bare=False)
            started = time.perf_counter()
            await call(request, timeout=DEADLINE)
            times.append((started, time.perf_counter() - started))

    with suppress(asyncio.CancelledError):
        await asyncio.gather(*(client() for _ in range(clients)))
    return times


async def open_idle(address: str, prefix: str, count: int) -> IdleStreams:
    """Open streams that then say nothing, over several connections."""
    opened = IdleStreams([], [])
    for number in range(_IDLE_CHANNELS):
        options = [("grpc.use_local_subchannel_pool", 1)]
        channel = grpc.aio.insecure_channel(address, options=options)
        opened.channels.append(channel)
        ids = names(f"{prefix}-{number}", count // _IDLE_CHANNELS)
        await _start(channel, ids)
        opened.streams.extend([await _Stream.open(channel, name) for name in ids])
    return opened


async def _start(channel: Any, ids: Sequence[str]) -> None:
    call = channel.unary_unary(f"{_EPISODES}StartEpisode")
    task = data.sentence(0)  # one for all: to embed it is not what is measured

    async def start(name: str) -> None:
        request = episode_service_pb2.StartEpisodeRequest(
            episode_id=name, episode=episode_pb2.Episode(task=task)
        )
        await call(request.SerializeToString(), timeout=DEADLINE)

    await _each(ids, start)


async def _each(ids: Sequence[str], do: Callable[[str], Awaitable[None]]) -> None:
    waiting = deque(ids)

    async def work() -> None:
        while waiting:
            await do(waiting.popleft())

    await asyncio.gather(*(work() for _ in range(_AT_ONCE)))


@dataclass(frozen=True)
class IdleStreams:
    """Open streams, which end when they are forgotten, and their channels."""

    channels: list[Any]
    streams: list[_Stream]

    async def close(self) -> None:
        for stream in self.streams:
            stream.cancel()
        for channel in self.channels:
            await channel.close()


class _Stream:
    """One agent's stream. ``times``: from the sending of each batch to its acknowledgement."""

    def __init__(self, call: Any) -> None:
        self._call = call
        self._sent: deque[float] = deque()
        self._last = b""
        self.times: list[float] = []

    @classmethod
    async def open(cls, channel: Any, episode_id: str) -> _Stream:
        stream = cls(channel.stream_stream(f"{_EPISODES}RecordEvents")(timeout=DEADLINE))
        opening = episode_service_pb2.RecordEventsRequest(episode_id=episode_id)
        await stream._call.write(opening.SerializeToString())
        await stream._read()
        return stream

    async def record(
        self, batches: Sequence[bytes], window: int, first: float, between: float
    ) -> None:
        """Send all; paced from the time ``first`` on if there is any time ``between`` them."""
        room = asyncio.Semaphore(len(batches) if between else window)

        async def send() -> None:
            for number, batch in enumerate(batches):
                await room.acquire()
                if between:
                    due = first + number * between
                    await asyncio.sleep(max(0.0, due - time.perf_counter()))
                self._sent.append(time.perf_counter())
                await self._call.write(batch)

        sending = asyncio.create_task(send())
        for _ in batches:
            await self._read()
            self.times.append(time.perf_counter() - self._sent.popleft())
            room.release()
        await sending

    def cancel(self) -> None:
        self._call.cancel()

    async def close(self, events: int) -> None:
        await self._call.done_writing()
        last = episode_service_pb2.RecordEventsResponse.FromString(self._last).last_sequence
        if last != events:
            raise RuntimeError(f"{last} events acknowledged instead of {events}")

    async def _read(self) -> None:
        self._last = await self._call.read()
        if not self._last:
            call = self._call
            raise RuntimeError(f"the stream ended: {await call.code()} {await call.details()}")
