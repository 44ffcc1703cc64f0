"""MemoryService on the wire."""

from __future__ import annotations

import asyncio

from lot_grpc.domain.counting import counted
from lot_grpc.domain.errors import LimitExceededError, LotError, MemoryNotFoundError
from lot_grpc.domain.ids import namespace_or_default
from lot_grpc.domain.memory import Memory
from lot_grpc.domain.query import Ranking
from lot_grpc.pb.lot.v1 import memory_service_pb2 as pb
from lot_grpc.pb.lot.v1 import memory_service_pb2_grpc
from lot_grpc.server.answers import Page
from lot_grpc.server.call import Context
from lot_grpc.server.convert import memories as convert
from lot_grpc.server.convert.outcomes import (
    RANKING,
    explanation_to_pb,
    query_notices,
)
from lot_grpc.server.convert.patterns import same_id
from lot_grpc.server.page_token import position_from_token, position_to_token
from lot_grpc.server.status import to_status
from lot_grpc.services.memories.bulk_deleter import MemoryBulkDeleter
from lot_grpc.services.memories.drafts import Created, MemoryDraft
from lot_grpc.services.memories.memories import Memories
from lot_grpc.services.memories.passages import PassageMatcher
from lot_grpc.services.recall.recall import Recall
from lot_grpc.services.recall.targets import RecallOptions, memory_request

_DEFAULT_LIMIT = 5
_DEFAULT_PAGE = 10


class MemoryServicer(memory_service_pb2_grpc.MemoryServiceServicer):
    """Converts, calls a service, converts back."""

    def __init__(
        self,
        memories: Memories,
        recall: Recall[Memory],
        passages: PassageMatcher,
        deleting: MemoryBulkDeleter,
        max_batch_items: int,
    ) -> None:
        self._memories = memories
        self._recall = recall
        self._passages = passages
        self._deleting = deleting
        self._max_batch_items = max_batch_items

    async def CreateMemory(
        self, request: pb.CreateMemoryRequest, context: Context
    ) -> pb.CreateMemoryResponse:
        draft = convert.draft_from_pb(request)
        created = await self._memories.create(namespace_or_default(request.namespace), draft)
        return convert.created_to_pb(created)

    async def BatchCreateMemories(
        self, request: pb.BatchCreateMemoriesRequest, context: Context
    ) -> pb.BatchCreateMemoriesResponse:
        if len(request.items) > self._max_batch_items:
            raise LimitExceededError(
                f"at most {counted(self._max_batch_items, 'item')} per batch on this server; "
                "split it",
                limit=self._max_batch_items,
                given=len(request.items),
            )
        drafts: list[MemoryDraft | LotError] = []
        for item in request.items:
            drafts.append(_draft_or_error(item))
            await asyncio.sleep(0)  # a batch of large items must not hold all other calls
        created = iter(
            await self._memories.create_many(
                namespace_or_default(request.namespace),
                [draft for draft in drafts if isinstance(draft, MemoryDraft)],
            )
        )
        results = [draft if isinstance(draft, LotError) else next(created) for draft in drafts]
        return pb.BatchCreateMemoriesResponse(
            results=[_result_to_pb(result) for result in results],
            # One that is named twice by its request id was new once.
            created_count=len(
                {r.memory.memory_id for r in results if isinstance(r, Created) and r.created}
            ),
            failed_count=sum(isinstance(r, LotError) for r in results),
        )

    async def UpdateMemory(
        self, request: pb.UpdateMemoryRequest, context: Context
    ) -> pb.UpdateMemoryResponse:
        same_id("memory", request.memory.memory_id, request.memory_id)
        edit = convert.edit_from_pb(request.memory, request.update_mask)
        updated = await self._memories.update(
            namespace_or_default(request.namespace), request.memory_id, edit, request.etag
        )
        return pb.UpdateMemoryResponse(
            memory=convert.memory_to_pb(updated.memory),
            notices=convert.unread_notices(truncated=updated.truncated),
        )

    async def GetMemory(
        self, request: pb.GetMemoryRequest, context: Context
    ) -> pb.GetMemoryResponse:
        memory = await self._memories.get(
            namespace_or_default(request.namespace), request.memory_id
        )
        return pb.GetMemoryResponse(memory=convert.memory_to_pb(memory))

    async def DeleteMemory(
        self, request: pb.DeleteMemoryRequest, context: Context
    ) -> pb.DeleteMemoryResponse:
        try:
            await self._memories.delete(
                namespace_or_default(request.namespace), request.memory_id, request.etag
            )
        except MemoryNotFoundError:
            if not request.allow_missing:
                raise
            return pb.DeleteMemoryResponse(deleted=False)
        return pb.DeleteMemoryResponse(deleted=True)

    async def SearchMemories(
        self, request: pb.SearchMemoriesRequest, context: Context
    ) -> pb.SearchMemoriesResponse:
        requested = RecallOptions(
            query=request.query,
            limit=request.limit or _DEFAULT_LIMIT,
            min_similarity=request.min_similarity,
            ranking=RANKING.from_pb(request.ranking) or Ranking.BALANCED,
            rerank=request.rerank,
            explain=request.explain,
        )
        found = await self._recall.find(
            namespace_or_default(request.namespace),
            memory_request(requested, convert.filter_from_pb(request.filter)),
        )
        passages = await self._passages.of([hit.thing for hit in found.hits], found.vector)
        return pb.SearchMemoriesResponse(
            hits=[
                convert.memory_hit_to_pb(hit, passage, explain=request.explain)
                for hit, passage in zip(found.hits, passages, strict=True)
            ],
            retrieval_id=found.retrieval_id,
            notices=query_notices(found),
            explanation=explanation_to_pb(found.explanation),
        )

    async def ListMemories(
        self, request: pb.ListMemoriesRequest, context: Context
    ) -> pb.ListMemoriesResponse:
        page = Page(request, pb.ListMemoriesResponse(), convert.memory_to_pb)
        found = await self._memories.list_page(
            namespace_or_default(request.namespace),
            convert.filter_from_pb(request.filter),
            request.page_size or _DEFAULT_PAGE,
            position_from_token(request, request.page_token),
            page.fits,
        )
        return page.ending(position_to_token(request, found.next))

    async def DeleteMemories(
        self, request: pb.DeleteMemoriesRequest, context: Context
    ) -> pb.DeleteMemoriesResponse:
        deleted = await self._deleting.delete(
            namespace_or_default(request.namespace),
            convert.filter_from_pb(request.filter),
            dry_run=request.dry_run,
        )
        return pb.DeleteMemoriesResponse(deleted_count=deleted.count, memory_ids=deleted.memory_ids)


def _draft_or_error(item: pb.CreateMemoryItem) -> MemoryDraft | LotError:
    try:
        return convert.draft_from_pb(item)
    except LotError as error:
        return error


def _result_to_pb(result: Created | LotError) -> pb.CreateMemoryResult:
    if isinstance(result, LotError):
        return pb.CreateMemoryResult(error=to_status(result))
    return pb.CreateMemoryResult(response=convert.created_to_pb(result))
