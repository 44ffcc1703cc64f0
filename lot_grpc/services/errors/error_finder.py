"""Finding what fixed an error: those of the same error first, then those of a similar one.

Two errors are the same where the most telling signature of one (``domain.error_text``) is one of
the other's, since what is logged around an error differs. A signature that a namespace has on
unrelated errors is a wrapper of its own; then another one must agree too. Both legs look for the
nearest of the same error, so that of many the one with the same names is among those read. They
are ordered by how alike the raw messages are: by whether what the signature leaves out is the same
(``error_text.differences``), since another module's name is another fix and no cosine of a long log
tells that surely; and by their cosine. Reliability orders what is all but the same. The rest is
found as any recall finds (``recall.search``).

What did not work is found in the same way and told apart.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Final

from lot_grpc.domain.error_solution import ErrorSolution, ErrorSolutionFilter
from lot_grpc.domain.error_text.differences import Difference, compared
from lot_grpc.domain.error_text.signature import (
    ErrorRead,
    Signature,
    read_error,
    same_error,
    wrappers,
)
from lot_grpc.domain.fusion import FusionWeights, Relevance
from lot_grpc.domain.ids import content_hash
from lot_grpc.domain.query import Legs
from lot_grpc.domain.ranking import ScorePart, pool_size
from lot_grpc.domain.search_text import joined
from lot_grpc.lexical.bm25 import lexical_query
from lot_grpc.ports import (
    AnyOf,
    Condition,
    Embedder,
    Embedding,
    Equals,
    Missing,
    Not,
    OneOf,
    SearchQuery,
    VectorStore,
)
from lot_grpc.services.errors.error_reading import read_aside
from lot_grpc.services.errors.spec import ERROR_SOLUTION
from lot_grpc.services.recall.retrievals import Retrievals
from lot_grpc.services.recall.search import Candidates, HybridSearch, SearchRequest
from lot_grpc.services.records.collections import ERROR_SOLUTIONS, SPARSE_VECTOR, TEXT_VECTOR
from lot_grpc.services.records.error_solutions import (
    error_solution_conditions,
    error_solution_from_record,
)

_SIMILARITY: Final = 0.4
_AGREEMENT: Final = 0.59
_RELIABILITY: Final = 0.01
"""Weights in the score of the same signature: another name weighs more than any likeness. That of
reliability is added to the relevance of similar ones as well; it decides between what is all but
the same, no more."""

_REMEMBERED: Final = 4_096
"""Stored errors whose reading is kept; it takes no more than some KB each."""

_COMPARED: Final = 10
"""How many of the similar errors are checked for being the same, and how many of those found by the
words of each of the first ``_STATED`` statements."""
_STATED: Final = 2
_STAND_IN: Final = re.compile(r"<\w+>")


@dataclass(frozen=True, slots=True)
class ErrorQuery:
    """The error to find solutions for: ``error_type``, ``error_message`` or both.

    With ``error_type`` those of this type or of none; with ``language`` and ``categories`` (any of
    them) just those. ``min_similarity`` bounds similar ones only; 0: no bound. What did not work
    is told of the same signature; with ``include_unsolved`` of similar errors too. ``explain``
    fills the parts of scores. ``where`` must hold as well. One who asks for more than solutions
    gives the ``embedding`` of what is asked, and remembers the answer itself: then it is ``quiet``
    and has no retrieval_id.
    """

    error_type: str = ""
    error_message: str = ""
    language: str = ""
    categories: tuple[str, ...] = ()
    limit: int = 3
    min_similarity: float = 0.0
    include_unsolved: bool = False
    explain: bool = False
    where: tuple[Condition, ...] = ()
    embedding: asyncio.Future[Embedding] | None = None
    quiet: bool = False
    legs: Legs = Legs.HYBRID
    """For measuring; one leg alone is searched without the signature."""

    @property
    def text(self) -> str:
        """What is searched for; as ``domain.error_solution.search_text`` has it."""
        return joined(self.error_type, self.error_message)


@dataclass(frozen=True, slots=True)
class ErrorFound:
    """A solution that was found. ``exact``: of the same signature.

    ``parts`` add up to the score, where asked for. ``differences`` are those of the same signature.
    """

    error_solution: ErrorSolution
    exact: bool
    score: float
    similarity: float
    parts: tuple[ScorePart, ...]
    differences: tuple[Difference, ...] = ()


@dataclass(frozen=True, slots=True)
class ErrorAnswer:
    """Solutions that worked, best first, and apart from them what did not help.

    ``signature`` is that of the error asked for. ``truncated``: not all of it was read.
    ``wordless``: it has nothing to look for.
    """

    hits: list[ErrorFound]
    retrieval_id: str
    signature: str
    truncated: bool = False
    wordless: bool = False
    unsolved: list[ErrorFound] = field(default_factory=list)


class ErrorSolutionFinder:
    """Finds error solutions."""

    def __init__(self, store: VectorStore, embedder: Embedder, retrievals: Retrievals) -> None:
        self._store = store
        searched = ERROR_SOLUTION.collection.search_fields
        self._searching = HybridSearch(store, embedder, searched, FusionWeights())
        raw = replace(searched, dense=(TEXT_VECTOR,))
        self._searching_raw = HybridSearch(store, embedder, raw, FusionWeights())
        self._retrievals = retrievals
        self._errors: dict[str, ErrorRead] = {}
        self._remembering = Lock()

    async def find(self, namespace: str, request: ErrorQuery) -> ErrorAnswer:
        """The solutions of an error, those of its signature first."""
        error = await read_aside(request.error_type, request.error_message)
        if request.legs is not Legs.HYBRID:
            return await self._by_leg(namespace, request, error)
        hits, best = await self._best(namespace, request, error, worked=True, similar=True)
        unsolved, _ = await self._best(
            namespace, request, error, worked=False, similar=request.include_unsolved
        )
        ids = tuple(hit.error_solution.error_solution_id for hit in (*hits, *unsolved))
        retrieval_id = ""
        if not request.quiet:
            retrieval_id = self._retrievals.remember(namespace, request.text, best.vector, ids)
        return ErrorAnswer(
            hits, retrieval_id, error.signature, best.truncated, best.wordless, unsolved
        )

    async def _best(
        self, namespace: str, request: ErrorQuery, error: ErrorRead, *, worked: bool, similar: bool
    ) -> tuple[list[ErrorFound], Candidates]:
        """The best of the same error, then of similar ones, and the last pool that was searched."""
        where, hits, same = _conditions(request, worked=worked), [], Candidates([], ())
        same_error = _is_same(error)
        if error.signatures:
            same = await self._search(namespace, request, [*where, same_error], exact=True)
            hits = await self._exact(namespace, request, error, same)
        if error.signatures and (len(hits) >= request.limit or not similar):
            return hits, same
        if not similar:
            return [], same
        exact = {hit.error_solution.error_solution_id for hit in hits}
        if len(exact) == len(same.found):
            where.append(Not(same_error))
        others = await self._search(namespace, request, where, exact=False, error=error)
        rest = await self._similar(namespace, request, error, others, exact)
        return sorted([*hits, *rest], key=_order)[: request.limit], others

    async def _by_leg(self, namespace: str, request: ErrorQuery, error: ErrorRead) -> ErrorAnswer:
        """What one leg alone finds."""
        where = _conditions(request, worked=True)
        search = SearchRequest(
            request.text, where, pool_size(request.limit), request.min_similarity, request.legs
        )
        found = await self._searching.search(namespace, search)
        hits = await self._similar(namespace, request, error, found, set())
        return ErrorAnswer(hits, "", error.signature, found.truncated, found.wordless)

    async def _search(
        self,
        namespace: str,
        request: ErrorQuery,
        where: Sequence[Condition],
        *,
        exact: bool,
        error: ErrorRead | None = None,
    ) -> Candidates:
        async def also() -> frozenset[str]:
            return await self._stating(namespace, error, where) if error else frozenset()

        least = 0.0 if exact else request.min_similarity
        search = SearchRequest(
            request.text,
            where,
            pool_size(request.limit),
            least,
            also=also,
            embedding=request.embedding,
        )
        return await (self._searching_raw if exact else self._searching).search(namespace, search)

    async def _stating(
        self, namespace: str, error: ErrorRead, where: Sequence[Condition]
    ) -> frozenset[str]:
        """Ids of errors with the words of what an error states: a log has many others."""
        stated = dict.fromkeys((*(one.text for one in error.signatures[:_STATED]), error.cause))
        words = [lexical_query(_STAND_IN.sub(" ", text)) for text in stated]
        queries = [
            SearchQuery(SPARSE_VECTOR, one.vector, _COMPARED, where) for one in words if one.terms
        ]
        if not queries:
            return frozenset()
        found = await self._store.search(ERROR_SOLUTIONS, namespace, queries)
        return frozenset().union(*found.hits)

    async def _exact(
        self, namespace: str, request: ErrorQuery, error: ErrorRead, same: Candidates
    ) -> list[ErrorFound]:
        """The best of the same error."""
        read = await self._read(namespace, same.found[: pool_size(request.limit)])
        compared = await self._compared(error, [solution for _, solution in read], wrapped=True)
        found = [
            _exactly(one, solution, *signatures)
            for (one, solution), signatures in zip(read, compared, strict=True)
            if signatures
        ]
        return _best(found, request.limit, request)

    async def _similar(
        self,
        namespace: str,
        request: ErrorQuery,
        error: ErrorRead,
        others: Candidates,
        besides: AbstractSet[str],
    ) -> list[ErrorFound]:
        """The best of other errors. Reliability can lift none from further below.

        One that says the same in other words is the same error; so is one whose signatures another
        version of this service made by its own rules.
        """
        limit = request.limit + len(besides)
        least = others.found[limit - 1].value - _RELIABILITY if len(others.found) > limit else 0.0
        near = [
            one
            for n, one in enumerate(others.found)
            if n < _COMPARED or one.value >= least or one.id in others.also
        ]
        read = [
            (one, solution)
            for one, solution in await self._read(namespace, near)
            if solution.error_solution_id not in besides
        ]
        compared = await self._compared(error, [solution for _, solution in read])
        found = []
        for (one, solution), signatures in zip(read, compared, strict=True):
            if signatures:
                found.append(_exactly(one, solution, *signatures))
                continue
            reliability = ScorePart("reliability", solution.outcomes.reliability, _RELIABILITY)
            found.append(_found(solution, one.similarity, (*one.parts, reliability)))
        return _best(found, request.limit, request)

    async def _compared(
        self, error: ErrorRead, solutions: Sequence[ErrorSolution], *, wrapped: bool = False
    ) -> list[tuple[Signature, Signature] | None]:
        """By which signatures each is the same error. In a thread, since many take a while.

        ``wrapped``: what these have in common although they are unrelated counts little.
        """

        def compare() -> list[tuple[Signature, Signature] | None]:
            stored = [self._error_of(solution) for solution in solutions]
            little = wrappers(error, stored) if wrapped else frozenset()
            return [same_error(error, one, little) for one in stored]

        return await asyncio.to_thread(compare) if solutions else []

    def _error_of(self, solution: ErrorSolution) -> ErrorRead:
        """A stored error, read once, since a long log takes a while."""
        content = solution.content
        key = content_hash([content.error_type, content.error_message])
        read = self._errors.get(key)
        if read is None:
            read = read_error(content.error_type, content.error_message)
            with self._remembering:
                self._errors[key] = read
                if len(self._errors) > _REMEMBERED:
                    del self._errors[next(iter(self._errors))]
        return read

    async def _read(
        self, namespace: str, found: Sequence[Relevance]
    ) -> list[tuple[Relevance, ErrorSolution]]:
        """The solutions of what was found. One deleted since is left out."""
        records = await self._store.get(ERROR_SOLUTIONS, namespace, [one.id for one in found])
        return [
            (one, error_solution_from_record(records[one.id])) for one in found if one.id in records
        ]


def _conditions(request: ErrorQuery, *, worked: bool) -> list[Condition]:
    """What must hold of any solution, whatever its signature."""
    narrowed = ErrorSolutionFilter(
        languages=(request.language,) if request.language else (),
        categories=request.categories,
        worked=worked,
    )
    where = [*error_solution_conditions(narrowed), *request.where]
    if request.error_type:
        where.append(OneOf((Equals("error_type", request.error_type), Missing("error_type"))))
    return where


def _is_same(error: ErrorRead) -> Condition:
    """They have a signature in common; whether it tells enough shows when both are read."""
    return AnyOf("signatures", tuple(one.text for one in error.signatures))


def _exactly(
    one: Relevance, solution: ErrorSolution, given: Signature, stored: Signature
) -> ErrorFound:
    """A hit of the same error, by signatures that say the same."""
    same = given.text == stored.text
    agreed = compared(*((one.left_out if same else one.names) for one in (given, stored)))
    parts = (
        ScorePart("similarity", one.similarity, _SIMILARITY),
        ScorePart("agreement", agreed.agreement, _AGREEMENT),
        ScorePart("reliability", solution.outcomes.reliability, _RELIABILITY),
    )
    return _found(solution, one.similarity, parts, agreed.differences, exact=True)


def _found(
    solution: ErrorSolution,
    similarity: float,
    parts: tuple[ScorePart, ...],
    differences: tuple[Difference, ...] = (),
    *,
    exact: bool = False,
) -> ErrorFound:
    score = sum(part.value * part.weight for part in parts)
    return ErrorFound(solution, exact, score, similarity, parts, differences)


def _best(found: Sequence[ErrorFound], limit: int, request: ErrorQuery) -> list[ErrorFound]:
    best = sorted(found, key=_order)[:limit]
    return best if request.explain else [replace(hit, parts=()) for hit in best]


def _order(hit: ErrorFound) -> tuple[bool, float, float, int, str]:
    """The same signature first, then best first; of equal ones the more successful, the newer."""
    solution = hit.error_solution
    return (
        not hit.exact,
        -hit.score,
        -solution.outcomes.success_rate,
        -solution.create_time,
        solution.error_solution_id,
    )
