"""Evaluates the part of PromQL that our dashboard and alerts use, over samples in memory.

It follows Prometheus, but for ``increase``, which it does not extrapolate to the ends of the range.
What it does not know, it refuses.
"""

# ruff: noqa: N802 - methods are named like the nodes that they evaluate

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

import promql_parser
from prometheus_client.parser import text_string_to_metric_families

Labels = frozenset[tuple[str, str]]
Vector = dict[Labels, float]
STALE_SECONDS: Final = 300.0

_ARITHMETIC: Final[Mapping[str, Callable[[float, float], float]]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b if b else math.copysign(math.inf, a) if a else math.nan,
}
_COMPARISON: Final[Mapping[str, Callable[[float, float], bool]]] = {
    ">": lambda a, b: a > b,
    "<": lambda a, b: a < b,
    ">=": lambda a, b: a >= b,
    "<=": lambda a, b: a <= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}
_AGGREGATE: Final[Mapping[str, Callable[[list[float]], float]]] = {
    "sum": math.fsum,
    "max": max,
    "min": min,
    "count": len,
}


@dataclass
class Samples:
    """Samples by metric and labels, in the order of their times."""

    series: dict[tuple[str, Labels], list[tuple[float, float]]] = field(default_factory=dict)

    def scrape(self, text: str, at: float, **labels: str) -> None:
        """Add a scrape in the text format; ``labels`` are those that Prometheus adds."""
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                self.add(sample.name, at, sample.value, **sample.labels, **labels)

    def add(self, name: str, at: float, value: float, **labels: str) -> None:
        self.series.setdefault((name, frozenset(labels.items())), []).append((at, value))

    def names(self) -> dict[str, set[str]]:
        """The label names of each metric."""
        found: dict[str, set[str]] = {}
        for name, labels in self.series:
            found.setdefault(name, set()).update(key for key, _ in labels)
        return found


def evaluate(samples: Samples, query: str, at: float) -> Vector:
    """The result at a time; that of a scalar has no labels."""
    found = _Evaluation(samples, at).of(promql_parser.parse(query))
    return found if isinstance(found, dict) else {frozenset(): found}


class _Evaluation:
    def __init__(self, samples: Samples, at: float) -> None:
        self._samples = samples
        self._at = at

    def of(self, node: Any) -> Vector | float:
        evaluate: Callable[[Any], Vector | float] = getattr(self, f"_{type(node).__name__}")
        return evaluate(node)

    def vector(self, node: Any) -> Vector:
        found = self.of(node)
        assert isinstance(found, dict), f"not a vector: {node}"
        return found

    def _NumberLiteral(self, node: Any) -> float:
        return float(node.val)

    def _ParenExpr(self, node: Any) -> Vector | float:
        return self.of(node.expr)

    def _VectorSelector(self, node: Any) -> Vector:
        found = {}
        for labels, points in self._selected(node):
            known = [one for one in points if self._at - STALE_SECONDS < one[0] <= self._at]
            if known:
                found[labels] = known[-1][1]
        return found

    def _selected(self, node: Any) -> Iterable[tuple[Labels, list[tuple[float, float]]]]:
        assert node.offset is None
        assert node.at is None
        assert not node.matchers.or_matchers
        for (name, labels), points in self._samples.series.items():
            if name == node.name and all(
                _matches(one, dict(labels)) for one in node.matchers.matchers
            ):
                yield labels, points

    def _ranges(self, node: Any) -> Iterable[tuple[Labels, list[tuple[float, float]], float]]:
        assert isinstance(node, promql_parser.MatrixSelector)
        seconds = node.range.total_seconds()
        for labels, points in self._selected(node.vector_selector):
            inside = [one for one in points if self._at - seconds < one[0] <= self._at]
            yield labels, inside, seconds

    def _Call(self, node: Any) -> Vector | float:
        return getattr(self, f"_call_{node.func.name}")(*node.args)  # type: ignore[no-any-return]

    def _call_time(self) -> float:
        return float(self._at)

    def _call_rate(self, node: Any) -> Vector:
        return {
            labels: _growth(points) / (points[-1][0] - points[0][0])
            for labels, points, _ in self._ranges(node)
            if len(points) > 1
        }

    def _call_increase(self, node: Any) -> Vector:
        return {
            labels: _growth(points) for labels, points, _ in self._ranges(node) if len(points) > 1
        }

    def _call_min_over_time(self, node: Any) -> Vector:
        return {
            labels: min(value for _, value in points)
            for labels, points, _ in self._ranges(node)
            if points
        }

    def _call_vector(self, node: Any) -> Vector:
        value = self.of(node)
        assert isinstance(value, float)
        return {frozenset(): value}

    def _call_absent(self, node: Any) -> Vector:
        return {} if self.vector(node) else {frozenset(): 1.0}

    def _call_histogram_quantile(self, share: Any, node: Any) -> Vector:
        of = self.of(share)
        assert isinstance(of, float)
        groups: dict[Labels, list[tuple[float, float]]] = {}
        for labels, value in self.vector(node).items():
            bound = float(dict(labels)["le"])
            groups.setdefault(_without(labels, {"le"}), []).append((bound, value))
        return {labels: _quantile(of, sorted(buckets)) for labels, buckets in groups.items()}

    def _AggregateExpr(self, node: Any) -> Vector:
        found = self.vector(node.expr)
        if str(node.op) == "topk":
            most = int(self.of(node.param))  # type: ignore[arg-type]
            best = sorted(found, key=lambda labels: -found[labels])[:most]
            return {labels: found[labels] for labels in best}
        names = set(node.modifier.labels) if node.modifier else set()
        assert node.modifier is None or str(node.modifier.type).endswith("By")
        groups: dict[Labels, list[float]] = {}
        for labels, value in found.items():
            groups.setdefault(_only(labels, names), []).append(value)
        combine = _AGGREGATE[str(node.op)]
        return {labels: float(combine(values)) for labels, values in groups.items()}

    def _BinaryExpr(self, node: Any) -> Vector | float:
        operator, left, right = str(node.op), self.of(node.lhs), self.of(node.rhs)
        names = None
        if node.modifier is not None:
            assert not node.modifier.return_bool
            if node.modifier.matching is not None:
                assert str(node.modifier.matching.type).endswith("Include")
                names = set(node.modifier.matching.labels)
        if operator in ("and", "or", "unless"):
            assert isinstance(left, dict)
            assert isinstance(right, dict)
            return _combined(operator, left, right, names)
        if isinstance(left, float) and isinstance(right, float):
            return _ARITHMETIC[operator](left, right)
        pairs = _pairs(left, right, names)
        if operator in _COMPARISON:
            holds = _COMPARISON[operator]
            return {
                labels: a if isinstance(left, dict) else b for labels, a, b in pairs if holds(a, b)
            }
        compute = _ARITHMETIC[operator]
        return {labels: compute(a, b) for labels, a, b in pairs}


def _matches(matcher: Any, labels: Mapping[str, str]) -> bool:
    value, kind = labels.get(matcher.name, ""), str(matcher.op)
    if kind.endswith("NotEqual"):
        return bool(value != matcher.value)
    if kind.endswith("Equal"):
        return bool(value == matcher.value)
    matched = bool(re.fullmatch(matcher.value, value))
    return not matched if kind.endswith("NotRe") else matched


def _growth(points: list[tuple[float, float]]) -> float:
    """How much a counter grew, over restarts, at which it begins at 0 again."""
    total = 0.0
    for (_, before), (_, after) in pairwise(points):
        total += after - before if after >= before else after
    return total


def _quantile(share: float, buckets: list[tuple[float, float]]) -> float:
    total = buckets[-1][1]
    assert buckets[-1][0] == math.inf
    if not total:
        return math.nan
    rank, lower, below = share * total, 0.0, 0.0
    for bound, count in buckets:
        if count >= rank:
            if bound == math.inf:
                return lower
            return lower + (bound - lower) * (rank - below) / (count - below)
        lower, below = bound, count
    raise AssertionError("unreachable")


def _pairs(
    left: Vector | float, right: Vector | float, names: set[str] | None
) -> list[tuple[Labels, float, float]]:
    if isinstance(right, float):
        assert isinstance(left, dict)
        return [(labels, value, right) for labels, value in left.items()]
    if isinstance(left, float):
        return [(labels, left, value) for labels, value in right.items()]
    others = {_key(labels, names): value for labels, value in right.items()}
    assert len(others) == len(right), "many-to-one matching"
    assert len({_key(labels, names) for labels in left}) == len(left), "many-to-one matching"
    return [
        (labels, value, others[_key(labels, names)])
        for labels, value in left.items()
        if _key(labels, names) in others
    ]


def _combined(operator: str, left: Vector, right: Vector, names: set[str] | None) -> Vector:
    there = {_key(labels, names) for labels in right}
    if operator == "and":
        return {labels: value for labels, value in left.items() if _key(labels, names) in there}
    if operator == "unless":
        return {k: value for k, value in left.items() if _key(k, names) not in there}
    mine = {_key(labels, names) for labels in left}
    return left | {k: value for k, value in right.items() if _key(k, names) not in mine}


def _key(labels: Labels, names: set[str] | None) -> Labels:
    return labels if names is None else _only(labels, names)


def _only(labels: Labels, names: set[str]) -> Labels:
    return frozenset(one for one in labels if one[0] in names)


def _without(labels: Labels, names: set[str]) -> Labels:
    return frozenset(one for one in labels if one[0] not in names)
