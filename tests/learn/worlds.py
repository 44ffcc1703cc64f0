"""What the replay draws: which queries are asked, how likely each pattern works, and the coins."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from lot_grpc.evaluation.errors import EvalDataError
from tests.learn.tasks import TaskSet


class Halving(StrEnum):
    """How the queries are divided into those that are asked and those that never are.

    By TEMPLATE no right pattern of a query never asked was right for one that was.
    """

    QUERY = "query"
    TEMPLATE = "template"


@dataclass(frozen=True)
class Chances:
    """How likely each pattern works, uniform in [0, 1], where its template is the query's."""

    tasks: TaskSet
    of: tuple[float, ...]

    def success(self, query: int, pattern: int | None) -> float:
        """The chance of a pattern on a query; 0 for a wrong one and for none."""
        if pattern is None or pattern not in self.tasks.right[query]:
            return 0.0
        return self.of[pattern]

    def best(self, query: int) -> float:
        """What the oracle reaches, who knows every chance and every template."""
        return max(self.of[pattern] for pattern in self.tasks.right[query])


@dataclass(frozen=True)
class Ask:
    """One ask. It succeeds if ``coin`` is below the chance of the pattern that is taken."""

    number: int
    query: int
    coin: float


@dataclass(frozen=True)
class Trial:
    """One seed: the queries that are asked and those that never are, and the hidden chances.

    ``after`` are the chances once all have been drawn anew.
    """

    seed: int
    asked: tuple[int, ...]
    never: tuple[int, ...]
    before: Chances
    after: Chances

    def asks(self, count: int) -> Iterator[Ask]:
        """The same ones for every ranking."""
        draw = random.Random(f"asks {self.seed}")
        for number in range(count):
            yield Ask(number, draw.choice(self.asked), draw.random())


def drawn(tasks: TaskSet, seed: int, halving: Halving = Halving.QUERY) -> Trial:
    """Draw a trial."""
    draw = random.Random(f"trial {seed}")
    groups = [[query] for query in range(len(tasks.queries))]
    if halving is Halving.TEMPLATE:
        groups = _by_template(tasks)
    draw.shuffle(groups)
    asked: list[int] = []
    never: list[int] = []
    for group in groups:
        fits = len(asked) + len(group) <= len(tasks.queries) // 2
        (asked if fits else never).extend(group)
    if not asked:
        raise EvalDataError(f"{tasks.name}: all queries share a template, so they cannot be halved")
    before, after = (Chances(tasks, tuple(draw.random() for _ in tasks.stored)) for _ in range(2))
    return Trial(seed, tuple(sorted(asked)), tuple(sorted(never)), before, after)


def _by_template(tasks: TaskSet) -> list[list[int]]:
    """Queries in groups: those of a group share right patterns, directly or through others."""
    groups: list[tuple[set[int], list[int]]] = []
    for query, right in enumerate(tasks.right):
        joined = [group for group in groups if group[0] & right]
        groups = [group for group in groups if not group[0] & right]
        patterns = set(right).union(*(group[0] for group in joined))
        groups.append((patterns, [one for group in joined for one in group[1]] + [query]))
    return [queries for _, queries in groups]


def mean(values: Sequence[float]) -> float:
    """Their mean; they are not empty."""
    return sum(values) / len(values)


def oracle(chances: Chances, queries: Sequence[int]) -> float:
    """The share of successes of the oracle."""
    return mean([chances.best(query) for query in queries])


def share(
    chances: Chances, queries: Sequence[int], taken: Callable[[int], Sequence[int | None]]
) -> float:
    """The expected share of successes. ``taken``: what is taken for a query, equally likely."""
    return mean(
        [mean([chances.success(query, pattern) for pattern in taken(query)]) for query in queries]
    )


def way(reached: float, relevance: float, best: float) -> float:
    """How far from RELEVANCE to the oracle; 0 where there is no way to go."""
    return (reached - relevance) / (best - relevance) if best > relevance else 0.0
