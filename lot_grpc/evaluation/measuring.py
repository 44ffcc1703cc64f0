"""Runs every query of a set by every leg."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lot_grpc.evaluation.dataset import Dataset, EvalQuery
from lot_grpc.evaluation.metrics import DEPTH, scores
from lot_grpc.evaluation.searcher import HYBRID, RERANK, Progress, Searcher

PerQuery = Mapping[str, Mapping[str, float]]
"""Metrics by query id."""


@dataclass(frozen=True, slots=True)
class Measured:
    """The measurements of a set. Mappings are by leg; times in milliseconds, one per query."""

    dataset: Dataset
    per_query: Mapping[str, PerQuery]
    times: Mapping[str, Sequence[float]]
    truncated_documents: int = 0
    truncated_queries: int = 0

    @property
    def legs(self) -> tuple[str, ...]:
        """The legs measured, in the order of tables."""
        return tuple(self.per_query)

    def column(self, leg: str, metric: str, queries: Sequence[EvalQuery]) -> list[float]:
        """A metric of each of the queries."""
        measured = self.per_query[leg]
        return [measured[query.id][metric] for query in queries]


@dataclass(slots=True)
class _Leg:
    scores: dict[str, dict[str, float]] = field(default_factory=dict)
    times: list[float] = field(default_factory=list)
    truncated: int = 0


async def measure(
    dataset: Dataset, searcher: Searcher, legs: Sequence[str], progress: Progress
) -> Measured:
    """Index a set and run its answerable queries one by one, leg by leg."""
    indexed = await searcher.index(dataset.documents, progress)
    found = {leg: await _measure_leg(dataset, searcher, leg, progress) for leg in legs}
    return Measured(
        dataset,
        {leg: one.scores for leg, one in found.items()},
        {leg: one.times for leg, one in found.items()},
        indexed.truncated,
        max((one.truncated for one in found.values()), default=0),
    )


async def _measure_leg(dataset: Dataset, searcher: Searcher, leg: str, progress: Progress) -> _Leg:
    done = _Leg()
    queries = dataset.answerable
    for number, query in enumerate(queries):
        progress(f"{dataset.name}: {leg}", number, len(queries))
        started = time.perf_counter()
        found = await searcher.search(
            query,
            HYBRID if leg == RERANK else leg,
            DEPTH + len(query.exclude),
            rerank=leg == RERANK,
        )
        done.times.append(1000 * (time.perf_counter() - started))
        done.truncated += found.truncated
        ranking = [document for document in found.ids if document not in query.exclude]
        done.scores[query.id] = scores(ranking[:DEPTH], query.judged)
    progress(f"{dataset.name}: {leg}", len(queries), len(queries))
    return done
