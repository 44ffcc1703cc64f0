"""A server over an empty embedded store, whose callers are whoever they say they are.

    python -m tests.flood.server FOLDER CALLS_PER_SECOND FAIR

The calls of ``flood`` are limited to so many a second (0: not). Prints its port, and ends with its
standard input.
"""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from pathlib import Path

import uvloop

from lot_grpc.app import settle_collector
from lot_grpc.bootstrap import throwaway
from lot_grpc.clock import SystemClock
from lot_grpc.domain.access import ANONYMOUS, Credentials, Principal
from lot_grpc.pb.lot.v1 import memory_service_pb2, pattern_service_pb2
from lot_grpc.server.build import build_server
from lot_grpc.server.guards import Guards
from lot_grpc.server.limits import Limits
from lot_grpc.server.servicers import build_servicers
from lot_grpc.settings_file import load_settings

FLOOD, STEADY = "flood", "steady"


class Trusting:
    """Takes a caller's word for who it is. Only for this measurement."""

    def __init__(self, calls_per_second: float) -> None:
        self._limits = {FLOOD: calls_per_second}

    async def authenticate(self, credentials: Credentials) -> Principal:
        [bearer] = credentials.authorizations
        name = bearer.removeprefix("Bearer ")
        return replace(ANONYMOUS, id=name, name=name, calls_per_second=self._limits.get(name, 0.0))


async def serve(folder: Path, calls_per_second: float, *, fair: bool) -> None:
    async with throwaway(load_settings(), folder) as services:
        limits = Limits(max_concurrent_calls=1024)
        servicers = build_servicers(
            services,
            SystemClock(),
            version="flood",
            limits=limits,
            max_batch_items=500,
            min_free_bytes=0,
        )
        names = (memory_service_pb2, pattern_service_pb2)
        wanted = {one for module in names for one in module.DESCRIPTOR.services_by_name.values()}
        server = build_server(
            {service: one for service, one in servicers.items() if service in wanted},
            limits,
            gate=services.runtime.gate,
            guards=Guards(authenticator=Trusting(calls_per_second), fair=fair),
        )
        run = services.housekeeping.run(lambda *_: None, lambda *_: None)
        housekeeping = asyncio.create_task(run)
        settle_collector()  # as a server does
        print(await server.start("127.0.0.1:0"), flush=True)
        await asyncio.to_thread(sys.stdin.read)
        housekeeping.cancel()
        await server.stop(1)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(Path(sys.argv[1]), float(sys.argv[2]), fair=sys.argv[3] == "fair"))
