"""Finds what fixed an error: solutions of the same error first, then of similar ones.

Two errors are the same if the most specific signature of one (``domain.error_text``) is among the
other's, since the text logged around an error varies. A signature that occurs on unrelated errors
of a namespace is a wrapper; then another signature must agree too. Both legs search for the nearest
of the same error, so that among many, the one with the same names is read. They are ordered by how
similar the raw messages are: first by whether the parts that the signature omits are the same
(``error_text.differences``), since another module's name means another fix, which the cosine of a
long log does not reliably show; then by their cosine. Reliability orders those that are nearly
equal. Similar errors are found as in any recall (``recall.search``).

Solutions that did not work are found in the same way and reported separately.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Final

from lot_grpc.domain.error_found import (
    RELIABILITY,
    ErrorFound,
    best_hits,
    compare_names,
    same_error_found,
    similar_error_found,
    sort_key,
    without_parts,
    without_reliability,
)
from lot_grpc.domain.error_solution import ErrorSolutionFilter
from lot_grpc.domain.error_text.signature import ErrorRead
from lot_grpc.domain.fusion import FusionWeights, Relevance
from lot_grpc.domain.match_probability import NONE_LEFT_OUT, LeftOut, fitting
from lot_grpc.domain.query import Legs
from lot_grpc.domain.ranking import pool_size
from lot_grpc.domain.retrieval import RetrievalMethod, RetrievalOptions
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
    Record,
    SearchQuery,
    VectorStore,
)
from lot_grpc.services.errors.error_reading import StoredErrors, read_aside
from lot_grpc.services.errors.spec import ERROR_SOLUTION
from lot_grpc.services.recall.matching import judged, rated
from lot_grpc.services.recall.search import Candidates, HybridSearch, SearchRequest
from lot_grpc.services.records.collections import ERROR_SOLUTIONS, SPARSE_VECTOR, TEXT_VECTOR
from lot_grpc.services.records.error_solutions import (
    error_solution_conditions,
    error_solution_from_record,
)
from lot_grpc.services.records.origin import RECALLABLE, held_back
from lot_grpc.services.retrievals.retrievals import Retrievals

_COMPARED: Final = 10
"""How many similar errors are checked for being the same, and how many of those found by the words
of each of the first ``_STATED`` statements."""
_STATED: Final = 2
_STAND_IN: Final = re.compile(r"<\w+>")


@dataclass(frozen=True, slots=True)
class ErrorQuery:
    """The error to find solutions for: ``error_type``, ``error_message`` or both.

    ``error_type`` matches solutions of this type or of none; ``language`` and ``categories`` (any
    of them) match only those. ``min_similarity`` (0: no bound) and ``min_match`` (None: no bound)
    apply to similar errors only; these have a probability if ``min_match`` is given. What did not
    work is reported for the same signature; with ``include_unsolved`` for similar errors too.
    ``explain`` fills in the parts of scores. ``where`` must hold as well. With ``shared_limit``,
    ``limit`` covers both together: what did not work is only looked up if there is room. A caller
    that needs more than solutions passes the ``embedding`` of the query and records the answer
    itself: then the query is ``quiet``, gets no retrieval_id, and the parts of all scores are
    filled in.
    """

    error_type: str = ""
    error_message: str = ""
    language: str = ""
    categories: tuple[str, ...] = ()
    limit: int = 3
    min_similarity: float = 0.0
    include_unsolved: bool = False
    shared_limit: bool = False
    explain: bool = False
    where: tuple[Condition, ...] = ()
    embedding: asyncio.Future[Embedding] | None = None
    quiet: bool = False
    legs: Legs = Legs.HYBRID
    """For measurements; a single leg is searched without the signature."""
    min_match: float | None = None

    @property
    def text(self) -> str:
        """The text to search for; see ``domain.error_solution.search_text``."""
        return joined(self.error_type, self.error_message)


@dataclass(frozen=True, slots=True)
class ErrorAnswer:
    """Solutions that worked, best first, and separately those that did not.

    ``signature`` is that of the queried error. ``truncated``: not all of it was read.
    ``wordless``: it has no words to search for. ``left_out``: what was below ``min_match``.
    """

    hits: list[ErrorFound]
    retrieval_id: str
    signature: str
    truncated: bool = False
    wordless: bool = False
    unsolved: list[ErrorFound] = field(default_factory=list)
    left_out: LeftOut = NONE_LEFT_OUT


class ErrorSolutionFinder:
    """Finds error solutions."""

    def __init__(self, store: VectorStore, embedder: Embedder, retrievals: Retrievals) -> None:
        self._store = store
        self._embedder = embedder
        searched = ERROR_SOLUTION.collection.search_fields
        self._searching = HybridSearch(store, embedder, searched, FusionWeights())
        raw = replace(searched, dense=(TEXT_VECTOR,))
        self._searching_raw = HybridSearch(store, embedder, raw, FusionWeights())
        self._retrievals = retrievals
        self._stored = StoredErrors()

    async def find(self, namespace: str, request: ErrorQuery) -> ErrorAnswer:
        """The solutions of an error, those with its signature first.

        Raises MatchUnavailableError.
        """
        begun = None if request.quiet else await self._retrievals.begin(namespace)
        error = await read_aside(request.error_type, request.error_message)
        if request.legs is not Legs.HYBRID:
            return await self._by_leg(namespace, request, error)
        solved = self._best(namespace, request, error, worked=True, similar=True)
        if request.shared_limit:
            hits, candidates, left_out = await solved
            unsolved: list[ErrorFound] = []
            if room := request.limit - len(hits):
                unsolved, more = await self._unsolved(namespace, request, error)
                unsolved, left_out = unsolved[:room], left_out + more
        else:
            (hits, candidates, left_out), (unsolved, more) = await asyncio.gather(
                solved, self._unsolved(namespace, request, error)
            )
            left_out += more
        retrieval_id = ""
        if begun is not None:
            retrieval_id = begun.retrieval_id
            self._retrievals.remember(
                begun,
                RetrievalMethod.FIND_ERROR_SOLUTIONS,
                request.text,
                candidates.vector,
                [hit.item() for hit in (*hits, *unsolved)],
                RetrievalOptions(
                    limit=request.limit,
                    min_similarity=request.min_similarity,
                    min_match=request.min_match,
                ),
            )
            if not request.explain:
                hits, unsolved = without_parts(hits), without_parts(unsolved)
        return ErrorAnswer(
            hits,
            retrieval_id,
            error.signature,
            candidates.truncated,
            candidates.wordless,
            unsolved,
            left_out,
        )

    async def _unsolved(
        self, namespace: str, request: ErrorQuery, error: ErrorRead
    ) -> tuple[list[ErrorFound], LeftOut]:
        """What did not work, best first."""
        similar = request.include_unsolved
        hits, _, left_out = await self._best(
            namespace, request, error, worked=False, similar=similar
        )
        return hits, left_out

    async def _best(
        self, namespace: str, request: ErrorQuery, error: ErrorRead, *, worked: bool, similar: bool
    ) -> tuple[list[ErrorFound], Candidates, LeftOut]:
        """The best that are likely enough to fit, the last pool, and what was left out."""
        wide = replace(request, limit=judged(self._embedder, request.min_match, request.limit))
        hits, candidates = await self._ranked(
            namespace, wide, error, worked=worked, similar=similar
        )
        if request.min_match is not None:
            hits = rated(self._embedder, request.text, hits)
        page, left_out = fitting(hits, request.min_match, request.limit)
        return page, candidates, left_out

    async def _ranked(
        self, namespace: str, request: ErrorQuery, error: ErrorRead, *, worked: bool, similar: bool
    ) -> tuple[list[ErrorFound], Candidates]:
        """The best for the same error, then for similar ones, and the last pool searched."""
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
        return sorted([*hits, *rest], key=sort_key)[: request.limit], others

    async def _by_leg(self, namespace: str, request: ErrorQuery, error: ErrorRead) -> ErrorAnswer:
        """What a single leg finds."""
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
        """Ids of errors with the words of an error's statements: a log has many other words."""
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
        """The best solutions of the same error."""
        read = await self._read(namespace, same.found[: pool_size(request.limit)])
        by_signatures = await self._stored.compared(
            error, [record for _, record in read], wrapped=True
        )
        matching = [
            (one, record, compare_names(*signatures))
            for (one, record), signatures in zip(read, by_signatures, strict=True)
            if signatures
        ]
        # Decoding dominates: skip hits that reliability cannot lift onto the page.
        scores = sorted((without_reliability(one, by) for one, _, by in matching), reverse=True)
        least = scores[request.limit - 1] if len(scores) > request.limit else 0.0
        found = [
            same_error_found(one, error_solution_from_record(record), by)
            for one, record, by in matching
            if without_reliability(one, by) + RELIABILITY >= least
        ]
        return best_hits(found, request.limit)

    async def _similar(
        self,
        namespace: str,
        request: ErrorQuery,
        error: ErrorRead,
        others: Candidates,
        besides: AbstractSet[str],
    ) -> list[ErrorFound]:
        """The best solutions of other errors. Reliability can raise none from further below.

        An error that says the same in other words is the same error; so is one whose signatures
        were made by the rules of another version of this service.
        """
        limit = request.limit + len(besides)
        least = others.found[limit - 1].value - RELIABILITY if len(others.found) > limit else 0.0
        near = [
            one
            for n, one in enumerate(others.found)
            if n < _COMPARED or one.value >= least or one.id in others.also
        ]
        read = [
            (one, record)
            for one, record in await self._read(namespace, near)
            if record.payload["error_solution_id"] not in besides
        ]
        by_signatures = await self._stored.compared(error, [record for _, record in read])
        found = []
        for (one, record), signatures in zip(read, by_signatures, strict=True):
            solution = error_solution_from_record(record)
            if signatures:
                found.append(same_error_found(one, solution, compare_names(*signatures)))
            else:
                found.append(similar_error_found(one, solution))
        return best_hits(found, request.limit)

    async def _read(
        self, namespace: str, found: Sequence[Relevance]
    ) -> list[tuple[Relevance, Record]]:
        """The records of the hits, without those deleted or held back since."""
        if not found:
            return []
        records = await self._store.get(ERROR_SOLUTIONS, namespace, [one.id for one in found])
        recallable = {one for one, record in records.items() if not held_back(record.payload)}
        return [(one, records[one.id]) for one in found if one.id in recallable]


def _conditions(request: ErrorQuery, *, worked: bool) -> list[Condition]:
    """The conditions on any solution, whatever its signature."""
    narrowed = ErrorSolutionFilter(
        languages=(request.language,) if request.language else (),
        categories=request.categories,
        worked=worked,
    )
    where = [*error_solution_conditions(narrowed), RECALLABLE, *request.where]
    if request.error_type:
        where.append(OneOf((Equals("error_type", request.error_type), Missing("error_type"))))
    return where


def _is_same(error: ErrorRead) -> Condition:
    """They share a signature; whether it is specific enough is decided once both are read."""
    return AnyOf("signatures", tuple(one.text for one in error.signatures))
