"""MemoryService: memories, task context, and changes; the rest is inherited."""

from __future__ import annotations

import math
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import TypeVar

from lot_grpc.domain.errors import LotError
from lot_grpc.domain.memory import IndexingState
from lot_grpc.pb.lot.v1 import change_pb2, task_context_pb2
from lot_grpc.pb.lot.v1 import memory_service_pb2 as pb
from lot_grpc.ports import Clock
from lot_grpc.server.call import Context
from lot_grpc.server.codec import contexts as contexts_codec
from lot_grpc.server.codec import memories as codec
from lot_grpc.server.codec.changes import batch_to_pb, watch_from_pb
from lot_grpc.server.codec.notices import query_notices
from lot_grpc.server.codec.outcomes import explanation_to_pb
from lot_grpc.server.codec.patterns import same_id
from lot_grpc.server.codec.values import time_to_pb
from lot_grpc.server.servicers.base import carry_out_batch, namespace_of, read_page, was_deleted
from lot_grpc.server.servicers.error_solutions import ErrorSolutionRpcs
from lot_grpc.server.servicers.sessions import SessionRpcs
from lot_grpc.server.status import to_status
from lot_grpc.services.build import Services
from lot_grpc.services.memories.drafts import Created, Updated
from lot_grpc.services.recall.targets import memory_request
from lot_grpc.work import current_work

T = TypeVar("T")

_ANSWER_SECONDS = 1.0
"""A call that waits is answered this long before its time is up, or after nine tenths of it."""


class MemoryServicer(ErrorSolutionRpcs, SessionRpcs):
    """Implements MemoryService: converts, calls a service, converts back."""

    def __init__(
        self, services: Services, clock: Clock, max_batch_items: int, max_call_seconds: float
    ) -> None:
        """``max_call_seconds``: time limit of a call; 0 means none."""
        self._services = services
        self._clock = clock
        self._max_batch_items = max_batch_items
        self._max_call_seconds = max_call_seconds

    async def CreateMemory(
        self, request: pb.CreateMemoryRequest, context: Context
    ) -> pb.CreateMemoryResponse:
        draft = codec.draft_from_pb(request)
        created = await self._services.memories.memories.create(namespace_of(request), draft)
        if request.wait_for_index:
            [created] = await self._indexed([created], context)
        return codec.created_to_pb(created)

    async def BatchCreateMemories(
        self, request: pb.BatchCreateMemoriesRequest, context: Context
    ) -> pb.BatchCreateMemoriesResponse:
        create = partial(self._services.memories.memories.create_many, namespace_of(request))
        results: list[Created | LotError] = await carry_out_batch(
            request.items, self._max_batch_items, codec.draft_from_pb, create
        )
        if request.wait_for_index:
            results = await self._indexed(results, context)
        return pb.BatchCreateMemoriesResponse(
            results=map(_result_to_pb, results),
            # If the same request id occurs twice, the memory was new once.
            created_count=len(
                {r.memory.memory_id for r in results if isinstance(r, Created) and r.created}
            ),
            failed_count=sum(isinstance(r, LotError) for r in results),
        )

    async def GetMemory(
        self, request: pb.GetMemoryRequest, context: Context
    ) -> pb.GetMemoryResponse:
        namespace, memories = namespace_of(request), self._services.memories
        memory = await memories.memories.get(namespace, request.memory_id)
        lineage = (
            await memories.lineage.read(namespace, memory.memory_id)
            if request.include_lineage
            else []
        )
        return pb.GetMemoryResponse(
            memory=codec.memory_to_pb(memory), lineage=map(codec.lineage_to_pb, lineage)
        )

    async def UpdateMemory(
        self, request: pb.UpdateMemoryRequest, context: Context
    ) -> pb.UpdateMemoryResponse:
        same_id("memory", request.memory.memory_id, request.memory_id)
        edit = codec.edit_from_pb(request.memory, request.update_mask)
        updated = await self._services.memories.memories.update(
            namespace_of(request), request.memory_id, edit, request.etag
        )
        if request.wait_for_index:
            [updated] = await self._indexed([updated], context)
        return codec.updated_to_pb(updated)

    async def _indexed(self, results: Sequence[T], context: Context) -> list[T]:
        """Wait for indexing until time is up; return the results with their current memories."""
        waited = [
            one.memory
            for one in results
            if isinstance(one, Created | Updated) and one.memory.indexing is IndexingState.PENDING
        ]
        if not waited:
            return list(results)
        await self._services.memories.indexing.wait(waited, self._patience(context))
        ids = [one.memory_id for one in waited]
        found = await self._services.memories.memories.get_many(waited[0].namespace, ids)
        now = {one.memory_id: one for one in found}
        return [
            replace(one, memory=now.get(one.memory.memory_id, one.memory))
            if isinstance(one, Created | Updated)
            else one
            for one in results
        ]

    def _patience(self, context: Context) -> float:
        """How many seconds a call may wait, so that it is answered before its time is up."""
        left = context.time_remaining()
        bounds = [] if left is None else [left]
        if self._max_call_seconds:
            work = current_work()
            since = time.monotonic() - work.began if work is not None else 0.0
            bounds.append(self._max_call_seconds - since)
        patience = min(bounds, default=math.inf)
        return max(0.0, patience - min(_ANSWER_SECONDS, patience / 10))

    async def DeleteMemory(
        self, request: pb.DeleteMemoryRequest, context: Context
    ) -> pb.DeleteMemoryResponse:
        deleting = self._services.memories.memories.delete(
            namespace_of(request), request.memory_id, request.etag
        )
        return pb.DeleteMemoryResponse(deleted=await was_deleted(deleting, request))

    async def ListMemories(
        self, request: pb.ListMemoriesRequest, context: Context
    ) -> pb.ListMemoriesResponse:
        response, narrowed = pb.ListMemoriesResponse(), codec.filter_from_pb(request.filter)
        read = self._services.memories.memories.list_page
        return await read_page(request, response, codec.memory_to_pb, read, narrowed)

    async def SearchMemories(
        self, request: pb.SearchMemoriesRequest, context: Context
    ) -> pb.SearchMemoriesResponse:
        requested, narrowed = codec.request_from_pb(request), codec.filter_from_pb(request.filter)
        namespace, recall = namespace_of(request), self._services.recall
        true = await recall.validity.conditions(namespace, narrowed, requested.as_of)
        found = await recall.memories.find(namespace, memory_request(requested, narrowed, true))
        passages = await self._services.memories.passages.of(
            [hit.thing for hit in found.hits], found.vector
        )
        return pb.SearchMemoriesResponse(
            hits=[
                codec.memory_hit_to_pb(
                    hit,
                    passage,
                    explain=request.explain,
                    match=requested.min_match is not None,
                )
                for hit, passage in zip(found.hits, passages, strict=True)
            ],
            retrieval_id=found.retrieval_id,
            notices=query_notices(found),
            explanation=explanation_to_pb(found.explanation),
        )

    async def DeleteMemories(
        self, request: pb.DeleteMemoriesRequest, context: Context
    ) -> pb.DeleteMemoriesResponse:
        deleted = await self._services.memories.bulk_deleter.delete(
            namespace_of(request), codec.filter_from_pb(request.filter), dry_run=request.dry_run
        )
        return pb.DeleteMemoriesResponse(deleted_count=deleted.count, memory_ids=deleted.memory_ids)

    async def GetTaskContext(
        self, request: task_context_pb2.GetTaskContextRequest, context: Context
    ) -> task_context_pb2.GetTaskContextResponse:
        requested = contexts_codec.request_from_pb(request)
        found = await self._services.task_contexts.gather(namespace_of(request), requested)
        return contexts_codec.context_to_pb(found, requested)

    async def WatchChanges(
        self, request: change_pb2.WatchChangesRequest, context: Context
    ) -> AsyncIterator[change_pb2.WatchChangesResponse]:
        watcher = self._services.changes.watcher
        requested = watch_from_pb(request, watcher.watched)
        async with aclosing(watcher.watch(requested)) as batches:
            async for batch in batches:
                for message in batch_to_pb(batch, requested.namespace):
                    message.server_time.CopyFrom(time_to_pb(self._clock.now()))
                    yield message


def _result_to_pb(result: Created | LotError) -> pb.CreateMemoryResult:
    if isinstance(result, LotError):
        return pb.CreateMemoryResult(error=to_status(result))
    return pb.CreateMemoryResult(response=codec.created_to_pb(result))
