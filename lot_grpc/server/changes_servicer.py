"""MemoryService on the wire: the feed of changes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing

from lot_grpc.pb.lot.v1 import change_pb2 as pb
from lot_grpc.pb.lot.v1 import memory_service_pb2_grpc
from lot_grpc.ports import Clock
from lot_grpc.server.call import Context
from lot_grpc.server.convert.changes import change_event_to_pb, watch_from_pb
from lot_grpc.server.convert.values import time_to_pb
from lot_grpc.server.cursors import cursor_to_token
from lot_grpc.services.changes.events import ChangeBatch
from lot_grpc.services.changes.watcher import ChangeWatcher

_MESSAGE_BYTES = 2**20
"""Of a message, so that a client with gRPC's usual limit of 4 MiB takes it; one change of a large
thing may be more."""


class ChangesServicer(memory_service_pb2_grpc.MemoryServiceServicer):
    """Converts, calls a service, converts back."""

    def __init__(self, change_watcher: ChangeWatcher, clock: Clock) -> None:
        self._change_watcher = change_watcher
        self._clock = clock

    async def WatchChanges(
        self, request: pb.WatchChangesRequest, context: Context
    ) -> AsyncIterator[pb.WatchChangesResponse]:
        async with aclosing(self._change_watcher.watch(watch_from_pb(request))) as batches:
            async for batch in batches:
                for message in _messages(batch):
                    message.server_time.CopyFrom(time_to_pb(self._clock.now()))
                    yield message


def _messages(batch: ChangeBatch) -> Iterator[pb.WatchChangesResponse]:
    """The news in messages of a fair size, each with the cursor behind its last change."""
    message, size = pb.WatchChangesResponse(), 0
    for change in batch.changes:
        event = change_event_to_pb(change)
        if size and size + event.ByteSize() > _MESSAGE_BYTES:
            yield message
            message, size = pb.WatchChangesResponse(), 0
        message.change_events.append(event)
        message.cursor = event.cursor or cursor_to_token(batch.cursor)
        size += event.ByteSize()
    message.cursor = cursor_to_token(batch.cursor)
    yield message
