"""Results from measurements: means with intervals, differences, groups."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lot_grpc.evaluation.bootstrap import Estimate, estimates
from lot_grpc.evaluation.dataset import EvalQuery
from lot_grpc.evaluation.measuring import Measured
from lot_grpc.evaluation.metrics import METRICS
from lot_grpc.evaluation.searcher import BM25, DENSE, HYBRID

_DIGITS = 4


@dataclass(frozen=True, slots=True)
class Difference:
    """The differences of one leg to another by metric. ``than`` names the other."""

    than: str
    estimate: Estimate


@dataclass(frozen=True, slots=True)
class Result:
    """The results of a set. ``legs`` and ``groups`` map leg → metric → estimate."""

    measured: Measured
    settings: Mapping[str, Any]
    legs: Mapping[str, Mapping[str, Estimate]]
    p50_ms: Mapping[str, float]
    gain: Mapping[str, Difference]
    """Hybrid against the better of its two legs, by metric; empty unless all three exist."""
    groups: Mapping[str, Group]

    @property
    def unanswerable(self) -> int:
        """Queries without a relevant document, which are in no mean."""
        queries = self.measured.dataset.queries
        return sum(not query.answerable for query in queries)

    @property
    def blank_documents(self) -> int:
        """Documents without any text, which were not saved."""
        return sum(document.blank for document in self.measured.dataset.documents)


@dataclass(frozen=True, slots=True)
class Group:
    """The results over the queries of one kind."""

    queries: int
    legs: Mapping[str, Mapping[str, Estimate]]


def result_of(measured: Measured, settings: Mapping[str, Any]) -> Result:
    """The results of a set. ``settings``: those of the measurement."""
    queries = measured.dataset.answerable
    named: dict[str, list[EvalQuery]] = {}
    for query in queries:
        for name in query.groups:
            named.setdefault(name, []).append(query)
    return Result(
        measured,
        settings,
        legs=_estimates(measured, queries),
        p50_ms={leg: statistics.median(times) for leg, times in measured.times.items()},
        gain=_gain(measured, queries),
        groups={
            name: Group(len(named[name]), _estimates(measured, named[name]))
            for name in sorted(named)
        },
    )


def _estimates(measured: Measured, queries: Sequence[EvalQuery]) -> dict[str, dict[str, Estimate]]:
    keys = [(leg, metric) for leg in measured.legs for metric in METRICS]
    found = estimates([measured.column(leg, metric, queries) for leg, metric in keys])
    legs: dict[str, dict[str, Estimate]] = {leg: {} for leg in measured.legs}
    for (leg, metric), estimate in zip(keys, found, strict=True):
        legs[leg][metric] = estimate
    return legs


def _gain(measured: Measured, queries: Sequence[EvalQuery]) -> dict[str, Difference]:
    if not {DENSE, BM25, HYBRID} <= set(measured.legs):
        return {}
    better, columns = [], []
    for metric in METRICS:
        single = {leg: measured.column(leg, metric, queries) for leg in (DENSE, BM25)}
        best = max(single, key=lambda leg: sum(single[leg]))
        hybrid = measured.column(HYBRID, metric, queries)
        better.append(best)
        columns.append([mine - its for mine, its in zip(hybrid, single[best], strict=True)])
    found = zip(METRICS, better, estimates(columns), strict=True)
    return {metric: Difference(than, estimate) for metric, than, estimate in found}


# --- as JSON ----------------------------------------------------------------------------------


def result_json(result: Result) -> dict[str, Any]:
    """One object: each leg under its own name, with metrics, ``intervals`` and ``p50_ms``."""
    dataset = result.measured.dataset
    report: dict[str, Any] = {
        "data": dataset.name,
        "documents": len(dataset.documents),
        "documents_without_text": result.blank_documents,
        "documents_read_in_part": result.measured.truncated_documents,
        "queries": len(dataset.answerable),
        "queries_without_relevant": result.unanswerable,
        "queries_read_in_part": result.measured.truncated_queries,
        "filter": dataset.filter_field or None,
        "settings": dict(result.settings),
    }
    for leg, metrics in result.legs.items():
        report[leg] = _leg_json(metrics) | {"p50_ms": round(result.p50_ms[leg], 2)}
    if result.gain:
        report["hybrid_minus_better_leg"] = {
            metric: {"better_leg": one.than, **difference_json(one.estimate)}
            for metric, one in result.gain.items()
        }
    if result.groups:
        report["groups"] = {
            name: {"queries": group.queries}
            | {leg: _leg_json(metrics) for leg, metrics in group.legs.items()}
            for name, group in result.groups.items()
        }
    return report


def difference_json(estimate: Estimate) -> dict[str, Any]:
    """A difference with its interval and verdict."""
    return {
        "difference": round(estimate.mean, _DIGITS),
        "interval": interval_json(estimate),
        "shows": estimate.verdict.value,
    }


def interval_json(estimate: Estimate) -> list[float]:
    """Both ends of the 95 % interval."""
    return [round(estimate.low, _DIGITS), round(estimate.high, _DIGITS)]


def _leg_json(metrics: Mapping[str, Estimate]) -> dict[str, Any]:
    means: dict[str, Any] = {name: round(one.mean, _DIGITS) for name, one in metrics.items()}
    return means | {"intervals": {name: interval_json(one) for name, one in metrics.items()}}
