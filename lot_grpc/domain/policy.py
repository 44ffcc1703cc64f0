"""Policies: how much a namespace keeps, and its thresholds."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from enum import StrEnum

from lot_grpc.domain.action_values import ALPHA, GAMMA
from lot_grpc.domain.ids import RETRIEVAL_LIFE, etag_of
from lot_grpc.domain.origin import OriginKind
from lot_grpc.domain.quota import Quota
from lot_grpc.domain.recommendation import DEFAULT_BOOST, DEFAULT_THRESHOLD
from lot_grpc.domain.retrieval import RetrievalQueries


@dataclass(frozen=True, slots=True)
class NamespacePolicy:
    """Bounds on what is kept; 0 and None mean no bound. Ages in microseconds.

    The thresholds are those of recommendations, then learning rate and discount of action values.
    ``review_origins``: the origins whose writes need a review.
    ``max_retrieval_age`` None: ``RETRIEVAL_LIFE``. ``holdout_share``: the share of recalls that are
    ranked without what was learned, for comparison.
    ``record_quota``, ``byte_quota``: the most that may be stored; 0: the server's default.
    """

    max_episodes: int = 0
    max_error_solutions: int = 0
    max_patterns: int = 0
    max_memories: int = 0
    max_episode_age: int | None = None
    max_error_solution_age: int | None = None
    max_pattern_age: int | None = None
    max_memory_age: int | None = None
    similarity_threshold: float = DEFAULT_THRESHOLD
    confidence_boost: float = DEFAULT_BOOST
    action_learning_rate: float = ALPHA
    action_discount: float = GAMMA
    review_origins: tuple[OriginKind, ...] = ()
    max_retrieval_age: int | None = None
    retrieval_queries: RetrievalQueries = RetrievalQueries.TEXT
    holdout_share: float = 0.0
    record_quota: int = 0
    byte_quota: int = 0

    @property
    def quota(self) -> Quota:
        """Its own quota, without the server's default."""
        return Quota(self.record_quota, self.byte_quota)

    @property
    def retrieval_life(self) -> int:
        """How long a retrieval is retained."""
        return RETRIEVAL_LIFE if self.max_retrieval_age is None else self.max_retrieval_age


DEFAULT = NamespacePolicy()
"""Keep everything."""

BOUNDS = frozenset(one.name for one in fields(NamespacePolicy) if one.name.startswith("max_"))


class PolicyPreset(StrEnum):
    """Bounds to start from."""

    UNLIMITED = "unlimited"
    BOUNDED = "bounded"

    def apply(self, policy: NamespacePolicy) -> NamespacePolicy:
        """A policy with the bounds of this preset, and all else as it is."""
        preset = _PRESETS[self]
        return replace(policy, **{name: getattr(preset, name) for name in BOUNDS})


_PRESETS = {
    PolicyPreset.UNLIMITED: DEFAULT,
    # The retention limits per namespace.
    PolicyPreset.BOUNDED: NamespacePolicy(max_episodes=1000, max_error_solutions=500),
}


@dataclass(frozen=True, slots=True)
class StoredPolicy:
    """The policy of a namespace; ``revision`` 0 is the default, when none was ever set.

    ``update_time`` in microseconds since 1970.
    """

    namespace: str
    policy: NamespacePolicy = DEFAULT
    revision: int = 0
    update_time: int = 0

    @property
    def etag(self) -> str:
        """Changes with every edit; empty if none was set."""
        if not self.revision:
            return ""
        return etag_of(self.namespace, self.update_time, self.revision)


@dataclass(frozen=True, slots=True)
class PolicyEdit:
    """A preset to set first, and then the named fields."""

    policy: NamespacePolicy = DEFAULT
    names: frozenset[str] = frozenset()
    preset: PolicyPreset | None = None

    def apply(self, old: NamespacePolicy) -> NamespacePolicy:
        """The policy after the edit."""
        base = self.preset.apply(old) if self.preset else old
        return replace(base, **{name: getattr(self.policy, name) for name in self.names})
