"""The kinds that learn from outcomes, each as the services save, recall and count it."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from lot_grpc.domain.episode import EpisodeEnd, EpisodeStart, EpisodeStatus
from lot_grpc.domain.errors import LotError
from lot_grpc.domain.memory import MemoryContent, MemoryKind
from lot_grpc.domain.outcomes import Outcome, OutcomeStats
from lot_grpc.domain.pattern import PatternContent
from lot_grpc.domain.query import EpisodeFilter, MemoryFilter, PatternFilter
from lot_grpc.evaluation.as_pattern import LANGUAGE
from lot_grpc.services.build import Services
from lot_grpc.services.episodes.drafts import EpisodeDraft
from lot_grpc.services.episodes.spec import EPISODE
from lot_grpc.services.memories.drafts import MemoryDraft
from lot_grpc.services.memories.spec import MEMORY
from lot_grpc.services.outcomes.outcomes import OutcomeDraft
from lot_grpc.services.patterns.drafts import Dedupe, PatternDraft
from lot_grpc.services.patterns.spec import PATTERN
from lot_grpc.services.recall.recall import Answer, RecallRequest
from lot_grpc.services.recall.targets import (
    RecallOptions,
    episode_request,
    memory_request,
    pattern_request,
)
from lot_grpc.services.resource_spec import ResourceSpec

UNFILTERED = PatternFilter()


class Kind(ABC):
    """A kind. What it stores is given as patterns, and filters as filters of patterns."""

    name: ClassVar[str]
    spec: ClassVar[ResourceSpec]

    @abstractmethod
    async def save(
        self, services: Services, ns: str, contents: Mapping[str, PatternContent]
    ) -> None:
        """Save resources by id."""

    @abstractmethod
    def request(self, options: RecallOptions, narrowed: PatternFilter) -> RecallRequest:
        """A recall request."""

    @abstractmethod
    async def find(self, services: Services, ns: str, request: RecallRequest) -> Answer[Any]:
        """Recall."""

    def outcome(self, ids: Sequence[str], outcome: Outcome, **named: Any) -> OutcomeDraft:
        """An outcome of resources of this kind."""
        used: dict[str, Any] = {f"{self.spec.id_key}s": tuple(ids)}
        return replace(OutcomeDraft((), outcome, **named), **used)

    async def outcomes(self, services: Services, ns: str, resource_id: str) -> OutcomeStats:
        """What the outcomes of one add up to."""
        stored: Any = await services.resources.of(self.spec.kind).get(ns, resource_id)
        counted: OutcomeStats = stored.outcomes
        return counted

    def ids(self, answer: Answer[Any]) -> list[str]:
        """Those that were found, best first."""
        return [hit.record.payload[self.spec.id_key] for hit in answer.hits]

    def point(self, ns: str, resource_id: str) -> str:
        """Where one is stored."""
        assert self.spec.point is not None
        return self.spec.point(ns, resource_id)

    def importance(self, resource_id: str) -> float | None:
        """The importance that one is saved with; None for kinds without any."""
        return None

    def __str__(self) -> str:
        return self.name


class Patterns(Kind):
    """Patterns."""

    name = "patterns"
    spec = PATTERN

    async def save(
        self, services: Services, ns: str, contents: Mapping[str, PatternContent]
    ) -> None:
        drafts = [
            PatternDraft(content, pattern_id=one, dedupe=Dedupe.NONE)
            for one, content in contents.items()
        ]
        raise_any(await services.patterns.writer.save_many(ns, drafts))

    def request(self, options: RecallOptions, narrowed: PatternFilter) -> RecallRequest:
        return pattern_request(options, narrowed)

    async def find(self, services: Services, ns: str, request: RecallRequest) -> Answer[Any]:
        return await services.recall.patterns.find(ns, request)


class Memories(Kind):
    """Memories. ``importances``: by id; those of others are uniform in [0, 1]."""

    name = "memories"
    spec = MEMORY

    def __init__(self, importances: Mapping[str, float] | None = None) -> None:
        self._importances = importances or {}

    def importance(self, resource_id: str) -> float:
        drawn = random.Random(f"importance {resource_id}").random()
        return self._importances.get(resource_id, drawn)

    async def save(
        self, services: Services, ns: str, contents: Mapping[str, PatternContent]
    ) -> None:
        drafts = [
            MemoryDraft(
                MemoryContent(
                    content.code or content.task,
                    MemoryKind.CODE_SNIPPET if content.code else MemoryKind.NOTE,
                    title=content.title,
                    language=content.language,
                    labels=content.labels,
                    importance=self.importance(one),
                ),
                memory_id=one,
            )
            for one, content in contents.items()
        ]
        raise_any(await services.memories.memories.create_many(ns, drafts))

    def request(self, options: RecallOptions, narrowed: PatternFilter) -> RecallRequest:
        criteria = MemoryFilter(languages=narrowed.languages, labels=narrowed.labels)
        return memory_request(options, criteria)

    async def find(self, services: Services, ns: str, request: RecallRequest) -> Answer[Any]:
        return await services.recall.memories.find(ns, request)


class Episodes(Kind):
    """Episodes that succeeded, each of one task. What narrows them is a label."""

    name = "episodes"
    spec = EPISODE

    async def save(
        self, services: Services, ns: str, contents: Mapping[str, PatternContent]
    ) -> None:
        for one, content in contents.items():
            task = "\n\n".join(filter(None, (content.title, content.code or content.task)))
            labels = {**content.labels, LANGUAGE: content.language}
            start, end = EpisodeStart(task, labels=labels), EpisodeEnd(EpisodeStatus.SUCCEEDED)
            await services.episodes.creator.record(ns, EpisodeDraft(start, one, end=end))

    def request(self, options: RecallOptions, narrowed: PatternFilter) -> RecallRequest:
        labels = dict(narrowed.labels)
        if narrowed.languages:
            [labels[LANGUAGE]] = narrowed.languages
        return episode_request(options, EpisodeFilter(labels=labels), success_only=False)

    async def find(self, services: Services, ns: str, request: RecallRequest) -> Answer[Any]:
        return await services.recall.episodes.find(ns, request)


def raise_any(results: Sequence[object]) -> None:
    """Raise the first error among the results of a batch."""
    for result in results:
        if isinstance(result, LotError):
            raise result


PATTERNS, MEMORIES, EPISODES = Patterns(), Memories(), Episodes()
KINDS: tuple[Kind, ...] = (PATTERNS, MEMORIES, EPISODES)
