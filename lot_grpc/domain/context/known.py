"""Everything known for a task, by kind."""

from __future__ import annotations

from dataclasses import dataclass

from lot_grpc.domain.context.failing import TaskWarning
from lot_grpc.domain.episode import Episode
from lot_grpc.domain.error_solution import ErrorSolution
from lot_grpc.domain.error_text.differences import Difference
from lot_grpc.domain.memory import Memory
from lot_grpc.domain.pattern import Pattern
from lot_grpc.domain.preference import Preference
from lot_grpc.domain.recommendation import Recommendations


@dataclass(frozen=True, slots=True)
class KnownError:
    """A solution of an error that the task names. ``exact``: it has the same signature.

    ``differences`` are for the same signature only.
    """

    solution: ErrorSolution
    exact: bool
    differences: tuple[Difference, ...] = ()


@dataclass(frozen=True, slots=True)
class KnownPattern:
    """A pattern. ``matched``: its own regular expression matches the task or its type.

    ``match``: the probability that it is for the same task, None if unknown.
    """

    pattern: Pattern
    matched: bool = False
    match: float | None = None


@dataclass(frozen=True, slots=True)
class KnownEpisode:
    """An episode. ``match``: as of a pattern."""

    episode: Episode
    match: float | None = None


@dataclass(frozen=True, slots=True)
class Known:
    """All kinds, each best first. ``advised_by``: episodes behind the recommendations."""

    recommendations: Recommendations
    advised_by: tuple[str, ...] = ()
    errors: tuple[KnownError, ...] = ()
    patterns: tuple[KnownPattern, ...] = ()
    warnings: tuple[TaskWarning, ...] = ()
    preferences: tuple[Preference, ...] = ()
    memories: tuple[Memory, ...] = ()
    episodes: tuple[KnownEpisode, ...] = ()
