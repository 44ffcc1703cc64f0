"""The client, in a process of its own: the same calls to either server, bytes in and out.

    python -m tests.bench.load

reads one JSON command a line from standard input and answers each with one JSON line:
``{"do": NAME, ...}`` is ``_COMMANDS[NAME](**rest)``. Seconds throughout.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import deque
from collections.abc import Sequence
from typing import Any

import grpc.aio
import uvloop

from lot_grpc.pb.lot.v1 import episode_pb2, episode_service_pb2, pattern_service_pb2
from tests.bench import agents, data, knowledge, memories

DEADLINE = 120.0
_PATTERNS = "/lot.v1.PatternService/"
_EPISODES = "/lot.v1.EpisodeService/"
_REAL = {
    "recall": f"{_PATTERNS}RecallPatterns",
    "rerank": f"{_PATTERNS}RecallPatterns",
    "context": "/lot.v1.MemoryService/GetTaskContext",
    "context of an error": "/lot.v1.MemoryService/GetTaskContext",
    "save": f"{_PATTERNS}SavePattern",
    "batch": f"{_PATTERNS}BatchSavePatterns",
    "outcome": f"{_PATTERNS}RecordOutcome",
}
_BARE = {
    "recall": "/Bare/Recall",
    "save": "/Bare/Save",
    "batch": "/Bare/Save",
    "outcome": "/Bare/RecordOutcome",
    "echo": "/Bare/Echo",
}
_OPTIONS = [("grpc.max_receive_message_length", 64 * 2**20)]
_channels: dict[str, Any] = {}
_idle: list[agents.IdleStreams] = []


def _channel(address: str) -> Any:
    if address not in _channels:
        _channels[address] = grpc.aio.insecure_channel(address, options=_OPTIONS)
    return _channels[address]


async def _call_all(
    call: Any, requests: Sequence[bytes], clients: int, key: str = ""
) -> dict[str, Any]:
    """Send all requests, ``clients`` at a time; how long each and all took."""
    metadata = (("authorization", f"Bearer {key}"),) if key else ()
    waiting = deque(requests)
    times: list[float] = []

    async def client() -> None:
        while waiting:
            request = waiting.popleft()
            started = time.perf_counter()
            await call(request, timeout=DEADLINE, metadata=metadata)
            times.append(time.perf_counter() - started)

    started = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(clients)))
    return {"times": times, "seconds": time.perf_counter() - started}


async def calls(
    address: str,
    kind: str,
    first: int,
    count: int,
    clients: int = 1,
    bare: bool = False,
    distinct: int = 0,
    size: int = 0,
    key: str = "",
) -> dict[str, Any]:
    """``count`` calls from number ``first``; ``distinct`` (0: all) requests are used in turn."""
    numbers = [first + (i % distinct if distinct else i) for i in range(count)]
    if kind == "batch":
        requests = [data.save_batch(n, size, bare=bare) for n in numbers]
    elif kind == "rerank":
        requests = [data.recall(n, bare=False, rerank=True) for n in numbers]
    elif kind.startswith("recall:"):
        kind, _, share = kind.partition(":")
        requests = [data.recall_among(n, share) for n in numbers]
    elif kind.startswith("context"):
        requests = [knowledge.ask(n, error=kind.endswith("error")) for n in numbers]
    else:
        make = data.save if kind in ("save", "echo") else data.recall
        requests = [make(n, bare=bare) for n in numbers]
    call = _channel(address).unary_unary((_BARE if bare else _REAL)[kind])
    return await _call_all(call, requests, clients, key)


async def answers(address: str, first: int) -> dict[str, Any]:
    """How many hits the two give, to see that they do the same; ``address`` is the real server."""
    call = _channel(address).unary_unary(_REAL["recall"])
    raw = await call(data.recall(first, bare=False), timeout=DEADLINE)
    answer = pattern_service_pb2.RecallPatternsResponse.FromString(raw)
    return {"ids": [hit.pattern.pattern_id for hit in answer.hits]}


async def bare_answers(address: str, first: int) -> dict[str, Any]:
    """The ids that the bare server gives."""
    call = _channel(address).unary_unary(_BARE["recall"])
    hits = json.loads(await call(data.recall(first, bare=True), timeout=DEADLINE))
    return {"ids": [hit["pattern_id"] for hit in hits]}


async def outcomes(
    address: str,
    first: int,
    count: int,
    clients: int,
    bare: bool = False,
    request_ids: bool = False,
) -> dict[str, Any]:
    """Recall (not timed), then record an outcome of one hit of each recall."""
    recall = _channel(address).unary_unary((_BARE if bare else _REAL)["recall"])
    requests = []
    for number in range(count):
        asked, place = first + number % 64, number // 64
        raw = await recall(data.recall(asked, bare=bare), timeout=DEADLINE)
        if bare:
            hits = json.loads(raw)
            hit = hits[place % len(hits)]
            requests.append(data.bare_outcome(first + number, hit, data.sentence(asked)))
            continue
        answer = pattern_service_pb2.RecallPatternsResponse.FromString(raw)
        pattern_id = answer.hits[place % len(answer.hits)].pattern.pattern_id
        request_id = f"bench-{first}-{number}" if request_ids else ""
        requests.append(data.outcome(first + number, pattern_id, answer.retrieval_id, request_id))
    call = _channel(address).unary_unary((_BARE if bare else _REAL)["outcome"])
    return await _call_all(call, requests, clients)


async def stream(address: str, episode_id: str, count: int, window: int) -> dict[str, Any]:
    """Record ``count`` events over one stream, at most ``window`` batches unacknowledged."""
    channel = _channel(address)
    start = channel.unary_unary(f"{_EPISODES}StartEpisode")
    request = episode_service_pb2.StartEpisodeRequest(
        episode_id=episode_id, episode=episode_pb2.Episode(task=data.sentence(count))
    )
    await start(request.SerializeToString(), timeout=DEADLINE)
    batches = data.event_batches(count)
    call = channel.stream_stream(f"{_EPISODES}RecordEvents")(timeout=DEADLINE)
    opening = episode_service_pb2.RecordEventsRequest(episode_id=episode_id)
    await call.write(opening.SerializeToString())
    await call.read()
    room = asyncio.Semaphore(window)

    async def send() -> None:
        for batch in batches:
            await room.acquire()
            await call.write(batch)

    started = time.perf_counter()
    sending = asyncio.create_task(send())
    raw = b""
    for _ in batches:
        raw = await call.read()
        if not raw:
            raise RuntimeError(f"the stream ended: {await call.code()} {await call.details()}")
        room.release()
    seconds = time.perf_counter() - started
    await sending
    await call.done_writing()
    last = episode_service_pb2.RecordEventsResponse.FromString(raw).last_sequence
    if last != count:
        raise RuntimeError(f"{last} events acknowledged instead of {count}")
    return {"seconds": seconds}


async def replay(address: str, episode_id: str, count: int) -> dict[str, Any]:
    """Replay an episode of ``count`` events, each made into a message."""
    request = episode_service_pb2.ReplayEpisodeRequest(episode_id=episode_id)
    call = _channel(address).unary_stream(f"{_EPISODES}ReplayEpisode")
    started = time.perf_counter()
    last = answers = 0
    async for raw in call(request.SerializeToString(), timeout=DEADLINE):
        events = episode_service_pb2.ReplayEpisodeResponse.FromString(raw).events
        if events[0].sequence != last + 1:
            raise RuntimeError(f"event {events[0].sequence} came after {last}")
        last, answers = events[-1].sequence, answers + 1
    seconds = time.perf_counter() - started
    if last != count:
        raise RuntimeError(f"{last} events replayed instead of {count}")
    return {"seconds": seconds, "answers": answers}


async def store_events(
    address: str, episode_ids: Sequence[str], count: int, size: int = data.BATCH_OF_EVENTS
) -> dict[str, Any]:
    """The bare store's time for the same events: ``count`` of each, in batches of ``size``."""
    call = _channel(address).unary_unary("/Bare/StoreEvents")
    asked = {"episode_ids": episode_ids, "count": count, "size": size}
    result: dict[str, Any] = json.loads(await call(json.dumps(asked).encode(), timeout=DEADLINE))
    return result


async def record_agents(address: str, first: int, recalls: int = 0, **asked: Any) -> dict[str, Any]:
    """``agents.record``, while ``recalls`` clients recall distinct queries from ``first`` on.

    Only recalls that end while events are recorded count.
    """
    if not recalls:
        return await agents.record(_channel(address), **asked)
    call = _channel(address).unary_unary(_REAL["recall"])
    recalling = asyncio.create_task(agents.recall_on(call, first, recalls))
    try:
        done = await agents.record(_channel(address), **asked)
    finally:
        recalling.cancel()
    began = done["started"]
    ended = began + done["seconds"]
    during = [seconds for at, seconds in await recalling if began <= at + seconds <= ended]
    return {**done, "recalls": during}


async def recalls_for(address: str, first: int, seconds: float) -> dict[str, Any]:
    """``memories.recalls``."""
    return await memories.recalls(_channel(address), _REAL["recall"], first, seconds)


async def create_long_memory(address: str, number: int, first: int) -> dict[str, Any]:
    """``memories.create``."""
    return await memories.create(_channel(address), _REAL["recall"], number, first)


async def check_agents(address: str, **asked: Any) -> dict[str, Any]:
    """``agents.check``."""
    return await agents.check(_channel(address), **asked)


async def open_idle(address: str, prefix: str, count: int) -> dict[str, Any]:
    """Open so many streams that then say nothing, over several channels."""
    _idle.append(await agents.open_idle(address, prefix, count))
    return {}


async def close_idle() -> dict[str, Any]:
    """Close them and their channels."""
    for streams in _idle:
        await streams.close()
    _idle.clear()
    return {}


async def forget(address: str) -> dict[str, Any]:
    """Close the channel to a server that goes away, if there is one."""
    if address in _channels:
        await _channels.pop(address).close()
    return {}


_COMMANDS: dict[str, Any] = {
    each.__name__: each
    for each in (
        calls,
        answers,
        bare_answers,
        outcomes,
        stream,
        replay,
        store_events,
        record_agents,
        recalls_for,
        create_long_memory,
        check_agents,
        open_idle,
        close_idle,
        forget,
    )
}


async def _main() -> None:
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        command = json.loads(line)
        result = await _COMMANDS[command.pop("do")](**command)
        print(json.dumps(result), flush=True)
    for channel in _channels.values():
        await channel.close()


if __name__ == "__main__":
    uvloop.run(_main())
