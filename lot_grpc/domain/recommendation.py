"""Recommendations for a task, from similar successful episodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from math import fsum
from typing import Final

from lot_grpc.domain.complexity import Complexity, assess_complexity
from lot_grpc.domain.counting import counted
from lot_grpc.domain.episode import Episode, EpisodeStatus
from lot_grpc.domain.ranking import ScorePart
from lot_grpc.domain.trends import NamedCount, most_frequent

STANDARD = "standard"
"""The approach where nothing is known."""
NEIGHBOURS = 10
"""So many similar episodes are taken into account; with all of them confidence is full."""
DEFAULT_THRESHOLD = 0.3
DEFAULT_BOOST = 1.0
LEAST_COSINE = 0.65
"""How similar the texts must be where only they can be compared. Of pairs of WebArena's tasks, with
the default model, 86 % of one form reach it, 5 % of tasks on different sites do."""
_FACTORS = 5
_TOOLS = 3
_APPROACHES = 3


@dataclass(frozen=True, slots=True)
class StructuralWeights:
    """The weight of each agreement in the structural score. They add up to 1."""

    category: float = 0.4
    task_type: float = 0.3
    complexity: float = 0.2
    text: float = 0.1


DEFAULT_WEIGHTS: Final = StructuralWeights()
TEXT_ONLY: Final = StructuralWeights(category=0.0, task_type=0.0, complexity=0.0, text=1.0)
"""Where neither category nor type is named: the score is the cosine."""


@dataclass(frozen=True, slots=True)
class TaskProfile:
    """The profile of a new task. Empty attributes match nothing."""

    task: str = ""
    category: str = ""
    task_type: str = ""
    complexity: Complexity | None = None
    dependencies: tuple[str, ...] = ()
    effort: float = 0.0

    @property
    def assessed(self) -> Complexity:
        """The complexity, as given or derived."""
        return self.complexity or assess_complexity(
            self.task, self.dependencies, self.effort or 1.0, self.category
        )


@dataclass(frozen=True, slots=True)
class Agreement:
    """The attributes in which an episode agrees with a task."""

    category: bool
    task_type: bool
    complexity: bool

    def score(self, weights: StructuralWeights, cosine: float = 0.0) -> float:
        """The structural score, in [0, 1]; a negative cosine counts as 0."""
        parts = (
            self.category * weights.category,
            self.task_type * weights.task_type,
            self.complexity * weights.complexity,
            min(1.0, max(0.0, cosine)) * weights.text,
        )
        return min(1.0, fsum(parts))

    def parts(self, weights: StructuralWeights, cosine: float) -> tuple[ScorePart, ...]:
        """The parts that add up to the score."""
        values = {one.name: float(getattr(self, one.name)) for one in fields(self)}
        values["text"] = min(1.0, max(0.0, cosine))
        return tuple(
            ScorePart(name, value, getattr(weights, name)) for name, value in values.items()
        )


@dataclass(frozen=True, slots=True)
class Recommendations:
    """What to do, field by field as in ``lot.v1.Recommendations``."""

    approach: str
    confidence: float
    similar_count: int
    approaches: tuple[NamedCount, ...]
    success_factors: tuple[NamedCount, ...]
    tools: tuple[NamedCount, ...]
    complexity: Complexity
    compared_count: int = 0
    """The most similar episodes that ended, failed ones too, at most ``NEIGHBOURS``."""
    succeeded_count: int = 0
    """How many of those succeeded."""

    @property
    def sentences(self) -> list[str]:
        """The same in words. The first is the seed's, with its counts."""
        lines = []
        if self.compared_count:
            rate = self.succeeded_count / self.compared_count
            similar = f"{self.succeeded_count} of {counted(self.compared_count, 'similar task')}"
            follow = " Consider following similar approaches." if rate > 1 / 2 else ""
            lines.append(f"{similar} succeeded ({rate:.0%}).{follow}")
        if not self.similar_count:
            return [*lines, f"No similar episode has succeeded yet; use the {STANDARD} approach."]
        similar = _similar(self.similar_count)
        if self.approaches:
            lines.append(
                f'Approach: "{self.approach}" ({self.approaches[0].count} of {similar} used it).'
            )
        if self.success_factors:
            lines.append(f"What helped: {_listed(self.success_factors)}.")
        if self.tools:
            lines.append(f"Tools used: {_listed(self.tools)}.")
        return lines


def _similar(count: int) -> str:
    return f"{count} similar successful episode{'' if count == 1 else 's'}"


def _listed(counts: Iterable[NamedCount]) -> str:
    return ", ".join(f'"{one.name}" ({one.count})' for one in counts)


def recommend(
    neighbours: Sequence[Episode],
    complexity: Complexity,
    boost: float = DEFAULT_BOOST,
    nearest: Sequence[EpisodeStatus] = (),
) -> Recommendations:
    """Sum the most similar successful episodes up, best first, at most ``NEIGHBOURS`` of them.

    Names are counted once an episode; of equally frequent ones the more similar episode's is first.
    ``nearest``: how the most similar episodes of all ended.
    """
    taken = neighbours[:NEIGHBOURS]
    approaches = Counter(episode.approach for episode in taken if episode.approach)
    ends = [episode.end for episode in taken if episode.end is not None]
    factors = Counter(name for end in ends for name in dict.fromkeys(end.success_factors))
    tools = Counter(name for end in ends for name in dict.fromkeys(end.tools_used))
    named = most_frequent(approaches, _APPROACHES)
    return Recommendations(
        approach=named[0].name if named else STANDARD,
        confidence=min(1.0, boost * len(taken) / NEIGHBOURS),
        similar_count=len(taken),
        approaches=named,
        success_factors=most_frequent(factors, _FACTORS),
        tools=most_frequent(tools, _TOOLS),
        complexity=complexity,
        compared_count=len(nearest),
        succeeded_count=sum(one is EpisodeStatus.SUCCEEDED for one in nearest),
    )
