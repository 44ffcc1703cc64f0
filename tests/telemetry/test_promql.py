"""The evaluator of the tests counts as Prometheus does."""

from __future__ import annotations

import math

import pytest

from tests.telemetry.promql import Samples, evaluate


@pytest.fixture
def samples() -> Samples:
    made = Samples()
    for at, a, b in ((0, 0, 10), (60, 6, 10), (120, 18, 2)):
        made.add("c_total", at, a, method="a", code="OK")
        made.add("c_total", at, b, method="b", code="BAD")
        made.add("g", at, a, method="a")
        for le, count in (("1", a / 2), ("2", a), ("+Inf", a)):
            made.add("h_bucket", at, count, le=le)
    return made


@pytest.mark.parametrize(
    ("query", "values"),
    [
        ('c_total{method="a"}', [18]),
        ('c_total{method!="a"}', [2]),
        ('c_total{code=~"OK|X"}', [18]),
        ('c_total{code!~"OK|X"}', [2]),
        ("sum(c_total)", [20]),
        ("max(c_total)", [18]),
        ("min(c_total)", [2]),
        ("sum by (code) (c_total) > 5", [18]),
        ('rate(c_total{method="a"}[5m])', [0.15]),
        ('increase(c_total{method="a"}[5m])', [18]),
        ('increase(c_total{method="b"}[5m])', [2]),
        ('rate(c_total{method="a"}[30s])', []),
        ("min_over_time(g[5m])", [0]),
        ("min_over_time(g[100s])", [6]),
        ("histogram_quantile(0.5, h_bucket)", [1]),
        ("histogram_quantile(0.75, rate(h_bucket[5m]))", [1.5]),
        ("g / 2 + 1", [10]),
        ("time() - g", [102]),
        ("g / g", [1]),
        ("g == 18", [18]),
        ("g != 18", []),
        ("absent(missing)", [1]),
        ("absent(g)", []),
        ("missing or g", [18]),
        ("sum(missing) or vector(0)", [0]),
        ("g unless g", []),
        ("g and on (method) c_total", [18]),
        ("topk(1, c_total)", [18]),
        ("sum(missing) / sum(g)", []),
    ],
)
def test_a_query_has_its_value(samples: Samples, query: str, values: list[float]) -> None:
    found = list(evaluate(samples, query, 120).values())
    assert found == [pytest.approx(value) for value in values]


def test_what_is_old_is_gone(samples: Samples) -> None:
    assert evaluate(samples, "g", 121)
    assert not evaluate(samples, "g", 421)


def test_nothing_divided_by_nothing_is_no_number() -> None:
    samples = Samples()
    samples.add("g", 0, 0)
    (value,) = evaluate(samples, "g / g", 0).values()
    assert math.isnan(value)


def test_what_it_does_not_know_is_refused(samples: Samples) -> None:
    with pytest.raises(AttributeError, match="_call_stddev_over_time"):
        evaluate(samples, "stddev_over_time(g[5m])", 120)
