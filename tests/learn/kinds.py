"""The kinds that learn from outcomes, each as the services save, recall and count it."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from lot_grpc.domain.errors import LotError
from lot_grpc.domain.outcomes import Outcome, OutcomeStats
from lot_grpc.domain.pattern import PatternContent
from lot_grpc.domain.query import PatternFilter
from lot_grpc.services.build import Services
from lot_grpc.services.outcomes.outcomes import OutcomeDraft
from lot_grpc.services.patterns.drafts import Dedupe, PatternDraft
from lot_grpc.services.patterns.spec import PATTERN
from lot_grpc.services.recall.recall import Answer, RecallRequest
from lot_grpc.services.recall.targets import RecallOptions, pattern_request
from lot_grpc.services.resource_spec import ResourceSpec

UNFILTERED = PatternFilter()


class Kind(ABC):
    """A kind. What it stores is given as patterns, and filters as filters of patterns."""

    name: ClassVar[str]
    spec: ClassVar[ResourceSpec]
    has_importance: ClassVar[bool] = False

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

    @abstractmethod
    def outcome(self, ids: Sequence[str], outcome: Outcome, **named: Any) -> OutcomeDraft:
        """An outcome of resources of this kind."""

    @abstractmethod
    async def outcomes(self, services: Services, ns: str, resource_id: str) -> OutcomeStats:
        """What the outcomes of one add up to."""

    def ids(self, answer: Answer[Any]) -> list[str]:
        """Those that were found, best first."""
        return [hit.record.payload[self.spec.id_key] for hit in answer.hits]

    def point(self, ns: str, resource_id: str) -> str:
        """Where one is stored."""
        assert self.spec.point is not None
        return self.spec.point(ns, resource_id)

    def importance(self, resource_id: str) -> float | None:
        """The importance that one is saved with, if the kind has any: uniform in [0, 1]."""
        if not self.has_importance:
            return None
        return random.Random(f"importance {resource_id}").random()

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

    def outcome(self, ids: Sequence[str], outcome: Outcome, **named: Any) -> OutcomeDraft:
        return OutcomeDraft(tuple(ids), outcome, **named)

    async def outcomes(self, services: Services, ns: str, resource_id: str) -> OutcomeStats:
        return (await services.patterns.patterns.get(ns, resource_id)).outcomes


def raise_any(results: Sequence[object]) -> None:
    """Raise the first error among the results of a batch."""
    for result in results:
        if isinstance(result, LotError):
            raise result


PATTERNS = Patterns()
KINDS: tuple[Kind, ...] = (PATTERNS,)
