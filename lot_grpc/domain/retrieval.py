"""Retrievals: what a recall was asked and what it showed; receipts: with its outcomes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from typing import Any, Final

from lot_grpc.domain.change import ResourceKind
from lot_grpc.domain.ids import ResourceRef, etag_of
from lot_grpc.domain.outcomes import Outcome
from lot_grpc.domain.query import Ranking
from lot_grpc.domain.ranking import ScorePart
from lot_grpc.domain.text_form import normal_form

_HASH: Final = re.compile(r"sha256:[0-9a-f]{64}")


class RetrievalMethod(StrEnum):
    """The call that made a retrieval."""

    RECALL_PATTERNS = "recall_patterns"
    RECALL_EPISODES = "recall_episodes"
    SEARCH_MEMORIES = "search_memories"
    FIND_ERROR_SOLUTIONS = "find_error_solutions"
    GET_TASK_CONTEXT = "get_task_context"


class RetrievalQueries(StrEnum):
    """How the queries of retrievals are stored."""

    TEXT = "text"
    HASH = "hash"


def query_hash(query: str) -> str:
    """What is stored instead of a query; equal for texts that differ only in Unicode form."""
    return f"sha256:{sha256(normal_form(query).encode()).hexdigest()}"


def is_query_hash(query: str) -> bool:
    """Whether a stored query is a hash, which has no meaning to embed."""
    return _HASH.fullmatch(query) is not None


def version_of(payload: Mapping[str, Any]) -> tuple[int, int, int]:
    """What the etag of a stored record depends on, besides its id."""
    return payload["create_time"], payload["update_time"], payload["revision"]


@dataclass(slots=True)
class RetrievedItem:
    """A record that a retrieval showed.

    Attributes:
        resource: Its kind and id.
        version: What its etag is computed from when that is needed (``version_of``).
        score: Its score.
        similarity: Its similarity to the query.
        matches: Holds its match probability, if that was computed.
        score_parts: The parts of its score.
    """

    resource: ResourceRef
    version: tuple[int, int, int] = (0, 0, 0)
    score: float = 0.0
    similarity: float = 0.0
    matches: Sequence[float | None] = ()
    score_parts: tuple[ScorePart, ...] = ()

    def etag_in(self, namespace: str) -> str:
        """Its etag when it was shown."""
        return etag_of(namespace, self.resource.id, *self.version)

    @property
    def match_probability(self) -> float | None:
        """The probability that it is for the same task, if it was computed."""
        return self.matches[0] if self.matches else None


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievalOptions:
    """The options of a retrieval that decide what it shows.

    Attributes:
        ranking: How hits were ordered; None where the call has no choice.
        limit: The maximum number of hits, of each kind in a context.
        min_similarity: The least similarity; 0: no bound.
        min_match: The least match probability; None: no bound.
        as_of: The time at which what it shows was true; None: the time of the call.
        rerank: Whether the cross-encoder was used.
        holdout: Whether it was ranked without what was learned, for comparison; None: the policy
            held nothing out, or the ranking does not use what was learned.
    """

    ranking: Ranking | None = None
    limit: int = 0
    min_similarity: float = 0.0
    min_match: float | None = None
    as_of: int | None = None
    rerank: bool = False
    holdout: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrieval:
    """A recall and what it showed. Times in microseconds since 1970.

    Attributes:
        namespace: Its namespace.
        retrieval_id: Its id.
        method: The call.
        query: The query, or its hash if the policy says so (``query_hash``).
        vector: That of the query. Empty: unknown, after an import.
        items: What it showed, best first of each kind.
        options: Its options.
        principal: The name of who made it; empty without authentication.
        create_time: When it was made; different for each in a process.
        expire_time: When it is deleted.
        epoch: The epoch of the model that made the vector (``reindex.epochs``).
    """

    namespace: str
    retrieval_id: str
    method: RetrievalMethod
    query: str
    vector: Sequence[float]
    items: Sequence[RetrievedItem]
    create_time: int
    expire_time: int
    options: RetrievalOptions = field(default_factory=RetrievalOptions)
    principal: str = ""
    epoch: int = 0

    def showed(self, resource: ResourceRef, create_time: int | None) -> bool:
        """Whether it showed the resource that was created then: another may have its id later.

        ``create_time`` None: whichever had the id.
        """
        return any(
            one.resource == resource and create_time in (None, one.version[0]) for one in self.items
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievalOutcome:
    """An outcome that names a retrieval, corrections applied.

    ``used``: what was used; empty if nothing was. ``duration`` in seconds, ``create_time`` in
    microseconds since 1970.
    """

    outcome_id: str
    outcome: Outcome
    used: tuple[ResourceRef, ...]
    create_time: int
    reward: float | None = None
    duration: float | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Receipt:
    """A retrieval, and the outcomes that name it, oldest first."""

    retrieval: Retrieval
    outcomes: tuple[RetrievalOutcome, ...] = ()

    @property
    def outcome_by_resource(self) -> Mapping[ResourceRef, Outcome]:
        """How the latest use of each record that was used went."""
        return {used: one.outcome for one in self.outcomes for used in one.used}


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievalFilter:
    """Narrows retrievals; see ``lot.v1.RetrievalFilter``."""

    methods: tuple[RetrievalMethod, ...] = ()
    item_kinds: tuple[ResourceKind, ...] = ()
    item_id: str = ""
    created_after: int | None = None
    created_before: int | None = None
    has_outcome: bool | None = None
    holdout: bool | None = None
    principal: str = ""
