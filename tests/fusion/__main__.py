"""Fits the numbers of the fusion on all sets but one and tells how the one left out fares.

The sets are those given and one of conversations that comes along. Each is searched through the
services as they are wired, with the model of the settings; with the default model that takes about
a minute for a thousand texts on one core. Exit code 1 if a set that was left out is below its
better leg by more than .01.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lot_grpc.bootstrap import Opened
from lot_grpc.cli.start import begin
from lot_grpc.domain.fusion import FusionWeights, Overlap
from lot_grpc.domain.query import PatternFilter
from lot_grpc.domain.ranking import pool_size
from lot_grpc.evaluation.as_error_solution import are_errors
from lot_grpc.evaluation.as_pattern import as_filter
from lot_grpc.evaluation.dataset import Dataset, EvalQuery
from lot_grpc.evaluation.loading import load_dataset
from lot_grpc.evaluation.metrics import DEPTH
from lot_grpc.evaluation.through_service import _NAMESPACE, ErrorSearcher, PatternSearcher
from lot_grpc.ports import Condition
from lot_grpc.services.errors.spec import ERROR_SOLUTION
from lot_grpc.services.patterns.spec import PATTERN
from lot_grpc.services.recall.search import HybridSearch, SearchRequest
from lot_grpc.services.records.error_solutions import error_solution_point
from lot_grpc.services.records.patterns import pattern_conditions, pattern_point
from tests.fusion.conversations import conversations
from tests.fusion.fitting import Answered, SearchedSet, by_weight, fit, misleads
from tests.learn.served import opened

WORST = -0.01
"""How far a set that was left out may be below its better leg."""


_ALWAYS, _NEVER = 0.0, 2.0
"""Likenesses from which on function words count."""


@dataclass(frozen=True)
class Noting(FusionWeights):
    """Notes what it is given."""

    noted: list[tuple[Overlap, bool]] = field(default_factory=list)

    def meaning(self, shared: Overlap, *, code: bool = False) -> float:
        """As the product has it."""
        self.noted.append((shared, code))
        return FusionWeights.meaning(self, shared, code=code)


async def search_all(serving: Opened, dataset: Dataset) -> SearchedSet:
    """Save a set, and search for each of its queries."""
    of_errors = are_errors(dataset.documents)
    searcher = (ErrorSearcher if of_errors else PatternSearcher)(
        serving.services, dataset.filter_field
    )
    await searcher.index(dataset.documents, lambda *_: None)
    point_of = error_solution_point if of_errors else pattern_point
    names = {point_of(_NAMESPACE, own): document for own, document in searcher._ids.items()}
    searched = (
        ERROR_SOLUTION.collection.search_fields if of_errors else PATTERN.collection.search_fields
    )

    async def answered(query: EvalQuery, like: float) -> Answered:
        noting = Noting(like=like)
        searching = HybridSearch(serving.store, serving.embedder, searched, noting)
        narrowed = [] if of_errors else _conditions(query, dataset.filter_field)
        pool = pool_size(DEPTH + len(query.exclude))
        found = (
            await searching.search(_NAMESPACE, SearchRequest(query.text, narrowed, pool))
        ).found
        named = [(names[one.id], one) for one in found]
        row = by_weight(named, query)
        if not noting.noted:
            return Answered(row)
        return Answered(row, *noting.noted[-1], wrong=misleads(named, query))

    pairs = [(await answered(q, _ALWAYS), await answered(q, _NEVER)) for q in dataset.answerable]
    return SearchedSet(dataset.name, pairs)


def _conditions(query: EvalQuery, field_name: str) -> Sequence[Condition]:
    return pattern_conditions(as_filter(query, field_name) if field_name else PatternFilter())


async def searched_sets(datasets: Sequence[Dataset]) -> list[SearchedSet]:
    """Each set searched for all its queries."""
    settings = begin(None)
    sets = []
    for dataset in datasets:
        with tempfile.TemporaryDirectory(prefix="lot-fusion-") as data:
            async with opened(settings, Path(data), None) as serving:
                sets.append(await search_all(serving, dataset))
    return sets


def main(given: list[str] | None = None) -> int:
    """Fit, print, and tell whether it carries over."""
    parser = argparse.ArgumentParser(prog="python -m tests.fusion", description=__doc__)
    parser.add_argument("--data", type=Path, action="append", required=True, help="a set's folder")
    parser.add_argument("--filter", action="append", default=[], help="SET=FIELD")
    options = parser.parse_args(given)
    filters = dict(one.split("=", 1) for one in options.filter)
    datasets = [load_dataset(folder, filters.get(folder.name, "")) for folder in options.data]
    sets = asyncio.run(searched_sets([*datasets, conversations()]))
    served = FusionWeights()
    print(f"{'':16} {'':26} {'with it left out':^32} {'as served':^16}")
    print(
        f"{'set':16} {'dense':>8} {'words':>8} {'better':>8} {'hybrid':>8} {'gap':>8} "
        f"{'numbers':>14} {'hybrid':>8} {'gap':>8}"
    )
    chosen, all_left_out = fit(sets)
    for one in all_left_out:
        it, left = one.weights, one.left_out
        dense, words = left.legs(served)
        print(
            f"{left.name:16} {dense:8.4f} {words:8.4f} {left.better_leg:8.4f} "
            f"{left.hybrid(it):8.4f} {left.gap(it):+8.4f} {_numbers(it):>14} "
            f"{left.hybrid(served):8.4f} {left.gap(served):+8.4f}"
        )
    print(f"prose, code, like: fitted on all {_numbers(chosen)}; served {_numbers(served)}")
    return int(min(one.left_out.gap(one.weights) for one in all_left_out) < WORST)


def _numbers(weights: FusionWeights) -> str:
    return f"{weights.prose:g} {weights.code:g} {weights.like:g}"


if __name__ == "__main__":
    sys.exit(main())
