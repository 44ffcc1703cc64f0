"""The RPCs of MemoryService for error solutions."""

from __future__ import annotations

from lot_grpc.pb.lot.v1 import error_solution_pb2 as pb
from lot_grpc.pb.lot.v1.memory_service_pb2_grpc import MemoryServiceServicer
from lot_grpc.server.call import Context
from lot_grpc.server.codec import error_solutions as codec
from lot_grpc.server.codec.notices import text_notices
from lot_grpc.server.codec.patterns import same_id
from lot_grpc.server.servicers.base import namespace_of, read_page, was_deleted
from lot_grpc.services.build import Services


class ErrorSolutionRpcs(MemoryServiceServicer):
    """The part of MemoryServicer for error solutions."""

    _services: Services

    async def SaveErrorSolution(
        self, request: pb.SaveErrorSolutionRequest, context: Context
    ) -> pb.SaveErrorSolutionResponse:
        draft = codec.draft_from_pb(request)
        saved = await self._services.errors.solutions.save(namespace_of(request), draft)
        return codec.saved_to_pb(saved)

    async def GetErrorSolution(
        self, request: pb.GetErrorSolutionRequest, context: Context
    ) -> pb.GetErrorSolutionResponse:
        solution = await self._services.errors.solutions.get(
            namespace_of(request), request.error_solution_id
        )
        return pb.GetErrorSolutionResponse(error_solution=codec.error_solution_to_pb(solution))

    async def UpdateErrorSolution(
        self, request: pb.UpdateErrorSolutionRequest, context: Context
    ) -> pb.UpdateErrorSolutionResponse:
        given, beside = request.error_solution, request.error_solution_id
        same_id("error_solution", given.error_solution_id, beside)
        edit = codec.edit_from_pb(given, request.update_mask)
        solution, truncated = await self._services.errors.solutions.update(
            namespace_of(request), beside, edit, request.etag
        )
        return pb.UpdateErrorSolutionResponse(
            error_solution=codec.error_solution_to_pb(solution),
            notices=text_notices("error_solution.error_message", truncated=truncated),
        )

    async def FindErrorSolutions(
        self, request: pb.FindErrorSolutionsRequest, context: Context
    ) -> pb.FindErrorSolutionsResponse:
        answer = await self._services.errors.finder.find(
            namespace_of(request), codec.request_from_pb(request)
        )
        return codec.answer_to_pb(answer)

    async def RecordErrorSolutionOutcome(
        self, request: pb.RecordErrorSolutionOutcomeRequest, context: Context
    ) -> pb.RecordErrorSolutionOutcomeResponse:
        solution = await self._services.outcomes.of_errors.record(
            namespace_of(request), codec.outcome_from_pb(request)
        )
        return pb.RecordErrorSolutionOutcomeResponse(
            error_solution=codec.error_solution_to_pb(solution)
        )

    async def ListErrorSolutions(
        self, request: pb.ListErrorSolutionsRequest, context: Context
    ) -> pb.ListErrorSolutionsResponse:
        response, narrowed = pb.ListErrorSolutionsResponse(), codec.filter_from_pb(request.filter)
        read = self._services.errors.solutions.list_page
        return await read_page(request, response, codec.error_solution_to_pb, read, narrowed)

    async def DeleteErrorSolution(
        self, request: pb.DeleteErrorSolutionRequest, context: Context
    ) -> pb.DeleteErrorSolutionResponse:
        deleting = self._services.errors.solutions.delete(
            namespace_of(request), request.error_solution_id, request.etag
        )
        return pb.DeleteErrorSolutionResponse(deleted=await was_deleted(deleting, request))
