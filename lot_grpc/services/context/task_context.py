"""The context of a task: all that is known for it, in one call and with one embedding.

The task is embedded once; all nouns are asked at the same time, each with this vector. One
retrieval remembers the answer, so that an outcome of a pattern is learned for this task.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from lot_grpc.domain.context.apart import told_apart
from lot_grpc.domain.context.failing import TaskWarning, warnings_of
from lot_grpc.domain.context.known import Known, KnownEpisode, KnownError, KnownPattern
from lot_grpc.domain.context.markdown import SHORTENED
from lot_grpc.domain.context.prompt import Prompt, prompt_of
from lot_grpc.domain.episode import Episode, EpisodeStatus
from lot_grpc.domain.memory import Memory
from lot_grpc.domain.pattern import Pattern
from lot_grpc.domain.preference import Preference
from lot_grpc.domain.query import EpisodeFilter, Legs, MemoryFilter, PatternFilter
from lot_grpc.lexical.bm25 import lexical_query
from lot_grpc.ports import Embedder, Embedding, VectorStore
from lot_grpc.services.changes.watching import Watching
from lot_grpc.services.context.asked import ContextQuestion, filled_in
from lot_grpc.services.context.fitting_patterns import ChoosingPatterns, FittingPatterns
from lot_grpc.services.context.liked import liked
from lot_grpc.services.context.likely import NearHits, likely_hits
from lot_grpc.services.learning.recommendations import Recommended, Recommending
from lot_grpc.services.memories.error_finding import ErrorFinding, ErrorFound, ErrorQuestion
from lot_grpc.services.memories.passages import MatchingPassages, Passage
from lot_grpc.services.recall.learned_tasks import LearnedTasks
from lot_grpc.services.recall.questions import (
    Asked,
    episode_question,
    memory_question,
    pattern_question,
)
from lot_grpc.services.recall.recall import Finding, Question, Recall
from lot_grpc.services.recall.retrievals import Retrievals
from lot_grpc.services.recall.search import embed_wordless

FAILURES: Final = 10
"""So many failed episodes, the most similar by meaning, warnings are drawn from."""

_AS_LIKE: Final = 0.2
"""A failure warns if its similarity is at most this much below that of the most similar episode,
failed or not: what is less like the task than that is of another task."""

_LIKE_AT_ALL: Final = 0.3
"""And if it is no less than this, which unrelated texts do not pass with the default model."""

_EPISODES: Final = 2
"""Read for each place, so that runs of one task that went alike need not fill them all."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TaskContext:
    """What is known. ``errors`` that worked come first, then what did not help.

    ``passages``: of each memory, the one nearest to the task; None where its content is short.

    ``left_out``: how many of the nearest of each kind are unlikely to help, by response field.
    """

    episodes: Sequence[Finding[Episode]]
    patterns: FittingPatterns
    memories: Sequence[Finding[Memory]]
    passages: list[Passage | None]
    errors: Sequence[ErrorFound]
    warnings: tuple[TaskWarning, ...]
    preferences: tuple[Preference, ...]
    recommended: Recommended
    prompt: Prompt
    retrieval_id: str
    left_out: Mapping[str, int]

    @property
    def truncated(self) -> bool:
        """Whether not all of the task was read."""
        return self.patterns.truncated

    @property
    def wordless(self) -> bool:
        """Whether the task has nothing to look for."""
        return self.patterns.wordless


class TaskContexts:
    """Gathers them."""

    def __init__(
        self,
        store: VectorStore,
        embedder: Embedder,
        patterns: Recall[Pattern],
        episodes: Recall[Episode],
        memories: Recall[Memory],
        errors: ErrorFinding,
        recommending: Recommending,
        learned: LearnedTasks,
        retrievals: Retrievals,
        watching: Watching,
        passages: MatchingPassages,
    ) -> None:
        self._store = store
        self._passages = passages
        self._embedder = embedder
        self._patterns = ChoosingPatterns(store, patterns)
        self._episodes = episodes
        self._memories = memories
        self._errors = errors
        self._recommending = recommending
        self._learned = learned
        self._retrievals = retrievals
        self._watching = watching

    async def gather(self, namespace: str, asked: ContextQuestion) -> TaskContext:
        """All that is known for the task. Raises EpisodeNotFoundError."""
        asked = await filled_in(self._store, namespace, asked)
        question = pattern_question(_recall(asked, asked.limit), PatternFilter())
        question = _narrowed(question, asked)
        embedding = asyncio.ensure_future(self._embed(asked.task))
        try:
            return await self._gather(namespace, asked, question, embedding)
        finally:
            embedding.cancel()

    async def _gather(
        self,
        namespace: str,
        asked: ContextQuestion,
        question: Question,
        embedding: asyncio.Future[Embedding],
    ) -> TaskContext:
        """All of it; what needs no vector is looked for while that is made."""
        meant, preferences = await asyncio.gather(
            self._learned.matching(namespace, asked.own_words, question.where),
            liked(self._store, namespace, asked.task, asked.preference_categories),
        )
        with_it = _Shared(embedding)
        patterns, (episodes, failures), memories, recommended, errors = await asyncio.gather(
            self._patterns.choose(
                namespace, replace(with_it.question(question), meant=frozenset(meant))
            ),
            self._runs(namespace, asked, with_it),
            self._remembered(namespace, asked, with_it),
            self._recommending.recommend(namespace, asked.profile, asked.limit, given=embedding),
            self._solutions(namespace, asked, embedding),
        )
        vector = (await embedding).vector
        near = NearHits(patterns, episodes, failures, memories, errors)
        if asked.likely_only:
            near = likely_hits(self._embedder, asked, near)
        passages = await self._passages.of([hit.thing for hit in near.memories], vector)
        read = [_read(hit.thing, one) for hit, one in zip(near.memories, passages, strict=True)]
        warnings = warnings_of([hit.thing for hit in near.failures], asked.limit)
        known = _known(near, read, warnings, preferences, recommended)
        pattern_ids = [hit.thing.pattern_id for hit in near.patterns.hits]
        solution_ids = [hit.error_solution.error_solution_id for hit in near.errors]
        retrieval_id = self._retrievals.remember(
            namespace, asked.task, vector, (*pattern_ids, *solution_ids)
        )
        episode_ids = [hit.thing.episode_id for hit in near.episodes]
        self._watching.suggested(namespace, asked.task, pattern_ids, episode_ids, retrieval_id)
        return TaskContext(
            near.episodes,
            near.patterns,
            near.memories,
            passages,
            near.errors,
            warnings,
            preferences,
            recommended,
            prompt_of(known, asked.max_tokens),
            retrieval_id,
            near.left_out,
        )

    async def _embed(self, task: str) -> Embedding:
        if lexical_query(task).terms:
            return await self._embedder.embed_query(task)
        return await embed_wordless(self._embedder, task)

    async def _runs(
        self, namespace: str, asked: ContextQuestion, with_it: _Shared
    ) -> tuple[list[Finding[Episode]], list[Finding[Episode]]]:
        """Ended episodes that tell different things, and the failed ones to warn of."""
        ended = EpisodeFilter(statuses=(EpisodeStatus.SUCCEEDED, EpisodeStatus.FAILED))
        failed = EpisodeFilter(statuses=(EpisodeStatus.FAILED,))
        by_meaning = replace(_recall(asked, FAILURES), legs=Legs.DENSE)
        questions = [
            episode_question(_recall(asked, _EPISODES * asked.limit), ended, success_only=False),
            episode_question(by_meaning, failed, success_only=False),
        ]
        found, failures = await asyncio.gather(
            *(self._episodes.find(namespace, with_it.question(one)) for one in questions)
        )
        nearest = max((hit.similarity for hit in found.hits), default=0.0)
        least = max(_LIKE_AT_ALL, nearest - _AS_LIKE)
        like = [hit for hit in failures.hits if hit.similarity >= least]
        return told_apart([(hit, hit.thing) for hit in found.hits], asked.limit), like

    async def _remembered(
        self, namespace: str, asked: ContextQuestion, with_it: _Shared
    ) -> list[Finding[Memory]]:
        question = _narrowed(memory_question(_recall(asked, asked.limit), MemoryFilter()), asked)
        return (await self._memories.find(namespace, with_it.question(question))).hits

    async def _solutions(
        self, namespace: str, asked: ContextQuestion, embedding: asyncio.Future[Embedding]
    ) -> list[ErrorFound]:
        """Solutions of the error that the task names, if it names one, then what did not help."""
        if not asked.error:
            return []
        question = ErrorQuestion(
            error_message=asked.error,
            limit=asked.limit,
            min_similarity=asked.min_similarity or 0.0,
            where=tuple(asked.in_language),
            embedding=embedding,
            quiet=True,
        )
        answer = await self._errors.find(namespace, question)
        return [*answer.hits, *answer.unsolved][: asked.limit]


@dataclass(frozen=True, slots=True)
class _Shared:
    """What all questions have in common."""

    embedding: asyncio.Future[Embedding]

    def question(self, one: Question) -> Question:
        """A question that is asked with it; its answer is remembered with all others."""
        return replace(one, embedding=self.embedding, quiet=True)


def _recall(asked: ContextQuestion, limit: int) -> Asked:
    return Asked(asked.task, limit, asked.min_similarity or 0.0)


def _narrowed(question: Question, asked: ContextQuestion) -> Question:
    """To things of the language and of none."""
    if not (in_language := asked.in_language):
        return question
    return replace(question, filters={**question.filters, "language": in_language})


def _read(memory: Memory, passage: Passage | None) -> Memory:
    """The memory as it is told: of a long one what is nearest to the task."""
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
