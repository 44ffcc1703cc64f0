"""A client that keeps so many calls under way, whatever they come to.

    python -m tests.flood.client PORT CLIENTS SECONDS

Recalls and saves by turns. Prints how many were answered, and how many refused.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import sys
import time

import grpc
import grpc.aio
import uvloop

from tests.flood.calls import METADATA, recall, save, stub

_CHANNELS = 4


async def flood(port: int, clients: int, seconds: float) -> tuple[int, int]:
    """How many calls were answered and refused."""
    channels = [
        grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=[("grpc.channel_number", number)])
        for number in range(_CHANNELS)
    ]
    numbers, end = itertools.count(), time.monotonic() + seconds
    answered = refused = 0

    async def client(number: int) -> None:
        nonlocal answered, refused
        patterns = stub(channels[number % _CHANNELS])
        while time.monotonic() < end:
            one = next(numbers)
            call = recall if one % 2 else save
            try:
                await call(patterns, f"flood {one}", METADATA["flood"])
                answered += 1
            except grpc.aio.AioRpcError as error:
                if error.code() is not grpc.StatusCode.RESOURCE_EXHAUSTED:
                    raise
                refused += 1

    await asyncio.gather(*map(client, range(clients)))
    for channel in channels:
        await channel.close()
    return answered, refused


if __name__ == "__main__":
    os.nice(10)  # as if it were another machine, as far as one machine allows
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        print(*runner.run(flood(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))))
