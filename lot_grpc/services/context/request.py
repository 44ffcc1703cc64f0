"""The task of a context request: as given, or from an earlier episode."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lot_grpc.domain.complexity import Complexity
from lot_grpc.domain.context.named_error import named_error
from lot_grpc.domain.context.task_language import languages_of
from lot_grpc.domain.errors import EpisodeNotFoundError
from lot_grpc.domain.languages import language_name
from lot_grpc.domain.recommendation import TaskProfile
from lot_grpc.domain.text_form import visible
from lot_grpc.ports import Condition, Equals, Missing, OneOf, Order, VectorStore
from lot_grpc.services.records.collections import EPISODES, SORT_KEY
from lot_grpc.services.records.episodes import episode_from_record

_NEWEST_FIRST = Order(SORT_KEY, descending=True)


@dataclass(frozen=True, slots=True)
class ContextRequest:
    """A request for context: one of ``task`` and ``task_id``, the rest empty if not given.

    ``limit`` applies to each kind. ``max_tokens`` 0: no bound. ``min_similarity`` None: what is
    unlikely to help is omitted; 0: nothing is. ``min_match`` omits more; None: it does not.
    ``preference_categories`` empty: all.
    """

    task: str = ""
    task_id: str = ""
    category: str = ""
    task_type: str = ""
    language: str = ""
    complexity: Complexity | None = None
    limit: int = 3
    max_tokens: int = 0
    min_similarity: float | None = None
    preference_categories: tuple[str, ...] = ()
    min_match: float | None = None

    @property
    def judges(self) -> bool:
        """Whether match probabilities are needed."""
        return self.likely_only or self.min_match is not None

    @property
    def likely_only(self) -> bool:
        """Whether hits that are unlikely to help are left out."""
        return self.min_similarity is None

    @property
    def error(self) -> str:
        """The error that the task contains; "" if none."""
        return named_error(self.task)

    @property
    def in_language(self) -> list[Condition]:
        """Conditions for records in the language, by default the task's, or without one."""
        names: tuple[str, ...] = ()
        if visible(self.language):
            names = (language_name(self.language),)
        elif self.likely_only:
            names = languages_of(self.task)
        if not names:
            return []
        return [OneOf((*(Equals("language", name) for name in names), Missing("language")))]

    @property
    def own_words(self) -> Sequence[str]:
        """The texts that regular expressions of patterns are matched against."""
        return [text for text in (self.task, self.task_type) if text]

    @property
    def profile(self) -> TaskProfile:
        """The task as compared by recommendations."""
        return TaskProfile(self.task, self.category, self.task_type, self.complexity)


async def filled_in(store: VectorStore, namespace: str, request: ContextRequest) -> ContextRequest:
    """The question with what its ``task_id`` says: the newest episode of it.

    What is given comes first. Raises EpisodeNotFoundError.
    """
    if not request.task_id:
        return request
    newest = await store.scroll(
        EPISODES,
        namespace,
        [Equals("task_id", request.task_id)],
        limit=1,
        order=_NEWEST_FIRST,
    )
    if not newest:
        hint = "no episode has this task_id; set task instead"
        raise EpisodeNotFoundError(namespace, request.task_id, hint, "task_id")
    start = episode_from_record(newest[0]).start
    return replace(
        request,
        task=start.task,
        category=visible(request.category) or start.category,
        task_type=visible(request.task_type) or start.task_type,
        complexity=request.complexity or start.complexity,
    )
