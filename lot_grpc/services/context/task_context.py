"""The context of a task: everything known for it, in one call and with one embedding.

The task is embedded once; all kinds are asked at the same time, each with this vector. One
retrieval records the answer, so that an outcome of what is used is learned for this task.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from lot_grpc.domain.context.apart import distinguish
from lot_grpc.domain.context.failing import TaskWarning, warnings_of
from lot_grpc.domain.context.known import Known, KnownEpisode, KnownError, KnownPattern
from lot_grpc.domain.context.markdown import SHORTENED
from lot_grpc.domain.context.prompt import Prompt, prompt_of
from lot_grpc.domain.episode import Episode, EpisodeStatus
from lot_grpc.domain.error_found import ErrorFound, without_parts
from lot_grpc.domain.memory import Memory
from lot_grpc.domain.preference import Preference
from lot_grpc.domain.query import EpisodeFilter, Legs, MemoryFilter, PatternFilter, Ranking
from lot_grpc.lexical.bm25 import lexical_query
from lot_grpc.ports import AnyOf, Embedding, Equals, Not
from lot_grpc.services.context.likely import NearHits, likely_hits
from lot_grpc.services.context.patterns import ContextPatterns, PatternChooser
from lot_grpc.services.context.preferences import liked
from lot_grpc.services.context.receipts import ContextReceipts
from lot_grpc.services.context.request import ContextRequest, filled_in
from lot_grpc.services.errors.error_finder import ErrorAnswer, ErrorQuery, ErrorSolutionFinder
from lot_grpc.services.learning.recommendations import Recommended, Recommender
from lot_grpc.services.memories.passages import Passage, PassageMatcher
from lot_grpc.services.recall.module import RecallModule
from lot_grpc.services.recall.recall import Answer, Hit, RecallRequest
from lot_grpc.services.recall.search import embed_wordless
from lot_grpc.services.recall.targets import (
    RecallOptions,
    episode_request,
    memory_request,
    pattern_request,
)
from lot_grpc.services.runtime import Runtime

FAILURES: Final = 10
"""So many failed episodes, the most similar by meaning, warnings are drawn from."""

_AS_LIKE: Final = 0.2
"""A failure warns if its similarity is at most this much below that of the most similar episode,
failed or not: what is less like the task than that is of another task."""

_LIKE_AT_ALL: Final = 0.3
"""And if it is no less than this, which unrelated texts do not pass with the default model."""

_EPISODES: Final = 2
"""Episodes read for each place, so that similar runs of one task need not fill them all."""

_ENDED: Final = Not(AnyOf("status", tuple(one.value for one in EpisodeStatus if not one.ended)))
"""Most episodes have ended, and excluding the few others is faster than including the many."""

_FAILED: Final = Equals("status", EpisodeStatus.FAILED.value)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TaskContext:
    """What is known. ``errors`` that worked come first, then what did not help.

    ``passages``: of each memory, the one nearest to the task; None where its content is short.
    ``near`` says what was left out.
    """

    episodes: Sequence[Hit[Episode]]
    patterns: ContextPatterns
    memories: Sequence[Hit[Memory]]
    passages: list[Passage | None]
    errors: Sequence[ErrorFound]
    warnings: tuple[TaskWarning, ...]
    preferences: tuple[Preference, ...]
    recommended: Recommended
    prompt: Prompt
    retrieval_id: str
    near: NearHits

    @property
    def truncated(self) -> bool:
        """Whether the model did not read all of the task."""
        return self.patterns.truncated

    @property
    def wordless(self) -> bool:
        """Whether the task has no text to search for."""
        return self.patterns.wordless


class TaskContextBuilder:
    """Builds the context of a task."""

    def __init__(
        self,
        runtime: Runtime,
        recall: RecallModule,
        passages: PassageMatcher,
        errors: ErrorSolutionFinder,
        recommender: Recommender,
        receipts: ContextReceipts,
    ) -> None:
        self._store = runtime.store
        self._validity = recall.validity
        self._embedder = runtime.model
        self._patterns = PatternChooser(runtime.store, recall.patterns)
        self._episodes = recall.episodes
        self._memories = recall.memories
        self._learned = recall.learned_tasks
        self._passages = passages
        self._errors = errors
        self._recommending = recommender
        self._receipts = receipts

    async def gather(self, namespace: str, request: ContextRequest) -> TaskContext:
        """Everything known for the task. Raises EpisodeNotFoundError, MatchUnavailableError."""
        request = await filled_in(self._store, namespace, request)
        recall_request = pattern_request(_recall(request, request.limit), PatternFilter())
        recall_request = _narrowed(recall_request, request)
        embedding = asyncio.ensure_future(self._embed(request.task))
        try:
            return await self._gather(namespace, request, recall_request, embedding)
        finally:
            embedding.cancel()

    async def _gather(
        self,
        namespace: str,
        request: ContextRequest,
        recall_request: RecallRequest,
        embedding: asyncio.Future[Embedding],
    ) -> TaskContext:
        """All of it; what needs no vector is looked for while that is made."""
        begun = await self._receipts.begin(namespace)
        self_matched, preferences = await asyncio.gather(
            self._learned.matching(namespace, request.own_words, recall_request.where),
            liked(self._store, namespace, request.task, request.preference_categories),
        )
        with_it = _Shared(embedding, begun.holdout)
        patterns, (episodes, failures), memories, recommended, solutions = await asyncio.gather(
            self._patterns.choose(
                namespace,
                replace(
                    with_it.recall_request(recall_request), self_matched=frozenset(self_matched)
                ),
            ),
            self._runs(namespace, request, with_it),
            self._remembered(namespace, request, with_it),
            self._recommending.recommend(
                namespace, request.profile, request.limit, given=embedding, matches=False
            ),
            self._solutions(namespace, request, embedding),
        )
        vector = (await embedding).vector
        runs = distinguish([(hit, hit.thing) for hit in episodes.hits], request.limit)
        near = NearHits(
            patterns,
            runs,
            failures,
            memories.hits,
            [*solutions.hits, *solutions.unsolved],
            below_min_match=patterns.left_out
            + episodes.left_out
            + memories.left_out
            + solutions.left_out,
        )
        if request.likely_only:
            near = likely_hits(self._embedder, request, near)
        passages = await self._passages.of([hit.thing for hit in near.memories], vector)
        read = [_read(hit.thing, one) for hit, one in zip(near.memories, passages, strict=True)]
        warnings = warnings_of([hit.thing for hit in near.failures], request.limit)
        known = _known(near, read, warnings, preferences, recommended)
        retrieval_id = self._receipts.record(begun, request, vector, near, warnings, recommended)
        return TaskContext(
            near.episodes,
            near.patterns,
            near.memories,
            passages,
            without_parts(near.errors),
            warnings,
            preferences,
            recommended,
            prompt_of(known, request.max_tokens),
            retrieval_id,
            near,
        )

    async def _embed(self, task: str) -> Embedding:
        if lexical_query(task).terms:
            return await self._embedder.embed_query(task)
        return await embed_wordless(self._embedder, task)

    async def _runs(
        self, namespace: str, request: ContextRequest, with_it: _Shared
    ) -> tuple[Answer[Episode], list[Hit[Episode]]]:
        """Ended episodes, and the failed ones to warn of."""
        options = _recall(request, _EPISODES * request.limit)
        by_meaning = replace(_recall(request, FAILURES), legs=Legs.DENSE, ranking=Ranking.RELEVANCE)
        recall_requests = [
            replace(_any_episode(options), filters={"statuses": [_ENDED]}),
            replace(_any_episode(by_meaning), filters={"statuses": [_FAILED]}),
        ]
        found, failures = await asyncio.gather(
            *(
                self._episodes.find(namespace, with_it.recall_request(one))
                for one in recall_requests
            )
        )
        nearest = max((hit.similarity for hit in found.hits), default=0.0)
        least = max(_LIKE_AT_ALL, nearest - _AS_LIKE)
        like = [hit for hit in failures.hits if hit.similarity >= least]
        return found, like

    async def _remembered(
        self, namespace: str, request: ContextRequest, with_it: _Shared
    ) -> Answer[Memory]:
        options, criteria = _recall(request, request.limit), MemoryFilter()
        true = await self._validity.conditions(namespace, criteria)
        recall_request = _narrowed(memory_request(options, criteria, true), request)
        return await self._memories.find(namespace, with_it.recall_request(recall_request))

    async def _solutions(
        self, namespace: str, request: ContextRequest, embedding: asyncio.Future[Embedding]
    ) -> ErrorAnswer:
        """Solutions of the error that the task names, if it names one."""
        if not (error := request.error):
            return ErrorAnswer([], "", "")
        recall_request = ErrorQuery(
            error_message=error,
            limit=request.limit,
            min_similarity=request.min_similarity or 0.0,
            shared_limit=True,
            where=tuple(request.in_language),
            embedding=embedding,
            quiet=True,
            min_match=request.min_match,
        )
        return await self._errors.find(namespace, recall_request)


@dataclass(frozen=True, slots=True)
class _Shared:
    """What all searches of one context share."""

    embedding: asyncio.Future[Embedding]
    holdout: bool | None

    def recall_request(self, one: RecallRequest) -> RecallRequest:
        """A question that is asked with it; its answer is remembered with all others."""
        return replace(one, embedding=self.embedding, quiet=True, holdout=self.holdout)


def _recall(request: ContextRequest, limit: int) -> RecallOptions:
    return RecallOptions(
        request.task, limit, request.min_similarity or 0.0, min_match=request.min_match
    )


def _any_episode(options: RecallOptions) -> RecallRequest:
    return episode_request(options, EpisodeFilter(), success_only=False)


def _narrowed(recall_request: RecallRequest, request: ContextRequest) -> RecallRequest:
    """Narrow the request to records in the language or without one."""
    if not (in_language := request.in_language):
        return recall_request
    return replace(recall_request, filters={**recall_request.filters, "language": in_language})


def _read(memory: Memory, passage: Passage | None) -> Memory:
    """The memory as shown: of a long one, the passage nearest to the task."""
    if passage is None:
        return memory
    left_out = (passage.span.start > 0, passage.span.end < len(memory.content.content))
    before, after = (SHORTENED if left else "" for left in left_out)
    between = "\n" if "\n" in passage.text else " "
    text = between.join(filter(None, (before, passage.text, after)))
    return replace(memory, content=replace(memory.content, content=text))


def _known(
    near: NearHits,
    memories: Sequence[Memory],
    warnings: tuple[TaskWarning, ...],
    preferences: tuple[Preference, ...],
    recommended: Recommended,
) -> Known:
    """The same without how it was found, for the prompt."""
    return Known(
        recommendations=recommended.recommendations,
        advised_by=tuple(one.episode.episode_id for one in recommended.similar),
        errors=tuple(
            KnownError(hit.error_solution, hit.exact, hit.differences) for hit in near.errors
        ),
        patterns=tuple(
            KnownPattern(hit.thing, hit.thing.pattern_id in near.patterns.matched, hit.match)
            for hit in near.patterns.hits
        ),
        warnings=warnings,
        preferences=preferences,
        memories=tuple(memories),
        episodes=tuple(KnownEpisode(hit.thing, hit.match) for hit in near.episodes),
    )
