"""MemoryService on the wire."""

from __future__ import annotations

from lot_grpc.domain.errors import MemoryNotFoundError
from lot_grpc.domain.ids import namespace_or_default
from lot_grpc.domain.memory import Memory
from lot_grpc.domain.query import Ranking
from lot_grpc.pb.lot.v1 import memory_pb2, memory_service_pb2_grpc
from lot_grpc.pb.lot.v1 import memory_service_pb2 as pb
from lot_grpc.server.call import Context
from lot_grpc.server.convert import memories as convert
from lot_grpc.server.convert.outcomes import (
    RANKING,
    explanation_to_pb,
    query_notices,
    score_parts_to_pb,
    text_notices,
)
from lot_grpc.services.memories.memories import Memories
from lot_grpc.services.recall.questions import Asked, memory_question
from lot_grpc.services.recall.recall import Recall

_DEFAULT_LIMIT = 5


class MemoryServicer(memory_service_pb2_grpc.MemoryServiceServicer):
    """Converts, calls a service, converts back."""

    def __init__(self, memories: Memories, recall: Recall[Memory]) -> None:
        self._memories = memories
        self._recall = recall

    async def CreateMemory(
        self, request: pb.CreateMemoryRequest, context: Context
    ) -> pb.CreateMemoryResponse:
        draft = convert.draft_from_pb(request)
        created = await self._memories.create(namespace_or_default(request.namespace), draft)
        return pb.CreateMemoryResponse(
            memory=convert.memory_to_pb(created.memory),
            created=created.created,
            notices=text_notices("memory.content", truncated=created.truncated),
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
        asked = Asked(
            query=request.query,
            limit=request.limit or _DEFAULT_LIMIT,
            min_similarity=request.min_similarity,
            ranking=RANKING.from_pb(request.ranking) or Ranking.BALANCED,
            rerank=request.rerank,
            explain=request.explain,
        )
        found = await self._recall.find(
            namespace_or_default(request.namespace),
            memory_question(asked, convert.filter_from_pb(request.filter)),
        )
        return pb.SearchMemoriesResponse(
            hits=[
                memory_pb2.MemoryHit(
                    memory=convert.memory_to_pb(hit.thing),
                    score=hit.score,
                    similarity=hit.similarity,
                    score_parts=score_parts_to_pb(hit.parts) if request.explain else (),
                )
                for hit in found.hits
            ],
            retrieval_id=found.retrieval_id,
            notices=query_notices(found),
            explanation=explanation_to_pb(found.explanation),
        )
