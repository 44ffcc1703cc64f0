"""The error solutions of MemoryService on the wire."""

from __future__ import annotations

from lot_grpc.domain.errors import ErrorSolutionNotFoundError
from lot_grpc.domain.ids import namespace_or_default
from lot_grpc.pb.lot.v1 import error_solution_pb2 as pb
from lot_grpc.pb.lot.v1 import memory_service_pb2_grpc
from lot_grpc.server.answers import Page
from lot_grpc.server.call import Context
from lot_grpc.server.convert import error_solutions as convert
from lot_grpc.server.convert.outcomes import text_notices
from lot_grpc.server.convert.patterns import same_id
from lot_grpc.server.page_token import position_from_token, position_to_token
from lot_grpc.services.memories.error_finder import ErrorSolutionFinder
from lot_grpc.services.memories.error_outcomes import ErrorOutcomeRecorder
from lot_grpc.services.memories.error_solutions import ErrorSolutions

_DEFAULT_PAGE = 10


class ErrorSolutionServicer(memory_service_pb2_grpc.MemoryServiceServicer):
    """Converts, calls a service, converts back."""

    def __init__(
        self,
        error_solutions: ErrorSolutions,
        finding: ErrorSolutionFinder,
        outcomes: ErrorOutcomeRecorder,
    ) -> None:
        self._error_solutions = error_solutions
        self._finding = finding
        self._outcomes = outcomes

    async def SaveErrorSolution(
        self, request: pb.SaveErrorSolutionRequest, context: Context
    ) -> pb.SaveErrorSolutionResponse:
        draft = convert.draft_from_pb(request)
        saved = await self._error_solutions.save(namespace_or_default(request.namespace), draft)
        return pb.SaveErrorSolutionResponse(
            error_solution=convert.error_solution_to_pb(saved.error_solution),
            created=saved.created,
            notices=[
                *text_notices("error_solution.error_message", truncated=saved.truncated),
                *convert.unchanged_notices(saved.unchanged_fields),
            ],
        )

    async def GetErrorSolution(
        self, request: pb.GetErrorSolutionRequest, context: Context
    ) -> pb.GetErrorSolutionResponse:
        solution = await self._error_solutions.get(
            namespace_or_default(request.namespace), request.error_solution_id
        )
        return pb.GetErrorSolutionResponse(error_solution=convert.error_solution_to_pb(solution))

    async def UpdateErrorSolution(
        self, request: pb.UpdateErrorSolutionRequest, context: Context
    ) -> pb.UpdateErrorSolutionResponse:
        same_id(
            "error_solution", request.error_solution.error_solution_id, request.error_solution_id
        )
        edit = convert.edit_from_pb(request.error_solution, request.update_mask)
        solution, truncated = await self._error_solutions.update(
            namespace_or_default(request.namespace), request.error_solution_id, edit, request.etag
        )
        return pb.UpdateErrorSolutionResponse(
            error_solution=convert.error_solution_to_pb(solution),
            notices=text_notices("error_solution.error_message", truncated=truncated),
        )

    async def FindErrorSolutions(
        self, request: pb.FindErrorSolutionsRequest, context: Context
    ) -> pb.FindErrorSolutionsResponse:
        answer = await self._finding.find(
            namespace_or_default(request.namespace), convert.request_from_pb(request)
        )
        return convert.answer_to_pb(answer)

    async def RecordErrorSolutionOutcome(
        self, request: pb.RecordErrorSolutionOutcomeRequest, context: Context
    ) -> pb.RecordErrorSolutionOutcomeResponse:
        solution = await self._outcomes.record(
            namespace_or_default(request.namespace), convert.outcome_from_pb(request)
        )
        return pb.RecordErrorSolutionOutcomeResponse(
            error_solution=convert.error_solution_to_pb(solution)
        )

    async def ListErrorSolutions(
        self, request: pb.ListErrorSolutionsRequest, context: Context
    ) -> pb.ListErrorSolutionsResponse:
        page = Page(request, pb.ListErrorSolutionsResponse(), convert.error_solution_to_pb)
        found = await self._error_solutions.list_page(
            namespace_or_default(request.namespace),
            convert.filter_from_pb(request.filter),
            request.page_size or _DEFAULT_PAGE,
            position_from_token(request, request.page_token),
            page.fits,
        )
        return page.ending(position_to_token(request, found.next))

    async def DeleteErrorSolution(
        self, request: pb.DeleteErrorSolutionRequest, context: Context
    ) -> pb.DeleteErrorSolutionResponse:
        try:
            await self._error_solutions.delete(
                namespace_or_default(request.namespace), request.error_solution_id, request.etag
            )
        except ErrorSolutionNotFoundError:
            if not request.allow_missing:
                raise
            return pb.DeleteErrorSolutionResponse(deleted=False)
        return pb.DeleteErrorSolutionResponse(deleted=True)
