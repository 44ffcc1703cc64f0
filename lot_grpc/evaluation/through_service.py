"""Searchers over the services as wired for serving, to measure what callers get.

Not over gRPC: the services are called directly, which saves the conversions and changes no ranking.
"""

from __future__ import annotations

from collections.abc import Sequence

from lot_grpc.domain.errors import LotError
from lot_grpc.domain.query import Legs
from lot_grpc.evaluation.as_error_solution import as_error_solution
from lot_grpc.evaluation.as_pattern import are_code, as_filter, as_pattern
from lot_grpc.evaluation.dataset import Document, EvalQuery
from lot_grpc.evaluation.searcher import Found, Indexed, Progress
from lot_grpc.services.build import Services
from lot_grpc.services.errors.drafts import ErrorSolutionDraft
from lot_grpc.services.errors.error_finder import ErrorQuery
from lot_grpc.services.patterns.drafts import Dedupe, PatternDraft
from lot_grpc.services.recall.recall import RecallRequest
from lot_grpc.services.recall.targets import RecallOptions, pattern_request

_NAMESPACE = "eval"
_BATCH = 64


class PatternSearcher:
    """A ``Searcher`` that saves documents as patterns in a temporary store."""

    def __init__(self, services: Services, filter_field: str = "") -> None:
        self._services = services
        self._filter_field = filter_field
        self._ids: dict[str, str] = {}
        """Document by pattern: a document's id may not be valid as a pattern's."""

    async def index(self, documents: Sequence[Document], progress: Progress) -> Indexed:
        """Save the documents as patterns, except blank ones."""
        kept = [document for document in documents if not document.blank]
        code, truncated = are_code(kept), 0
        for start in range(0, len(kept), _BATCH):
            progress("saving documents", start, len(kept))
            truncated += await self._save(start, kept[start : start + _BATCH], code=code)
        progress("saving documents", len(kept), len(kept))
        return Indexed(truncated)

    async def _save(self, start: int, documents: Sequence[Document], *, code: bool) -> int:
        drafts = []
        for number, document in enumerate(documents, start):
            pattern_id = f"d{number:06}"
            self._ids[pattern_id] = document.id
            content = as_pattern(document, self._filter_field, code=code)
            drafts.append(PatternDraft(content, pattern_id=pattern_id, dedupe=Dedupe.NONE))
        truncated = 0
        for result in await self._services.patterns.writer.save_many(_NAMESPACE, drafts):
            if isinstance(result, LotError):
                raise result
            truncated += result.text_truncated or result.code_truncated
        return truncated

    async def search(self, query: EvalQuery, leg: str, limit: int, *, rerank: bool) -> Found:
        """Recall patterns for a query; return the ids of their documents."""
        answer = await self._services.recall.patterns.find(
            _NAMESPACE, self._request(query, leg, limit, rerank=rerank)
        )
        return Found([self._ids[hit.thing.pattern_id] for hit in answer.hits], answer.truncated)

    def _request(self, query: EvalQuery, leg: str, limit: int, *, rerank: bool) -> RecallRequest:
        requested = RecallOptions(query.text, limit, rerank=rerank, legs=Legs(leg))
        return pattern_request(requested, as_filter(query, self._filter_field))


class ErrorSearcher:
    """A ``Searcher`` that saves documents as error solutions in a temporary store."""

    def __init__(self, services: Services, filter_field: str = "") -> None:
        self._services = services
        self._filter_field = filter_field
        self._ids: dict[str, str] = {}
        """Document by error solution."""

    async def index(self, documents: Sequence[Document], progress: Progress) -> Indexed:
        """Save the documents, like SaveErrorSolution."""
        truncated = 0
        for number, document in enumerate(documents):
            progress("saving documents", number, len(documents))
            solution_id = f"d{number:06}"
            self._ids[solution_id] = document.id
            draft = ErrorSolutionDraft(as_error_solution(document), solution_id)
            truncated += (await self._services.errors.solutions.save(_NAMESPACE, draft)).truncated
        progress("saving documents", len(documents), len(documents))
        return Indexed(truncated)

    async def search(self, query: EvalQuery, leg: str, limit: int, *, rerank: bool) -> Found:
        """Find error solutions for a query, as an error message; return their documents' ids.

        They are not reranked. A single leg is searched without the signature.
        """
        requested = ErrorQuery(
            error_message=query.text,
            language=query.filter_value if self._filter_field else "",
            limit=limit,
            legs=Legs(leg),
        )
        answer = await self._services.errors.finder.find(_NAMESPACE, requested)
        found = [self._ids[hit.error_solution.error_solution_id] for hit in answer.hits]
        return Found(found, answer.truncated)
