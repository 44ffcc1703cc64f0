"""Counters, gauges and histograms hold what was counted, whoever counts."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from lot_grpc.telemetry import instruments, metrics
from lot_grpc.telemetry.instruments import Counter, Gauge, Histogram


def test_a_counter_without_labels_begins_at_zero() -> None:
    counter = Counter("lot_x", "X.")
    assert counter.values() == {(): 0}
    counter.add()
    counter.add(by=2)
    assert counter.values() == {(): 3}


def test_a_counter_counts_each_combination_of_labels() -> None:
    counter = Counter("lot_x", "X.", ["a", "b"])
    assert counter.values() == {}
    counter.add("1", "2")
    counter.add("1", "2")
    counter.add("2", "1")
    assert counter.values() == {("1", "2"): 2, ("2", "1"): 1}


@pytest.mark.parametrize("labels", [(), ("a",), ("a", "b", "c")])
def test_labels_are_all_given(labels: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="has the labels"):
        Counter("lot_x", "X.", ["a", "b"]).add(*labels)
    with pytest.raises(ValueError, match="has the labels"):
        Gauge("lot_x", "X.", ["a", "b"]).set(1, *labels)
    with pytest.raises(ValueError, match="has the labels"):
        Histogram("lot_x_seconds", "X.", ["a", "b"], bounds=[1]).observe(1, *labels)


def test_a_gauge_is_absent_until_it_is_set_and_after_it_is_cleared() -> None:
    gauge = Gauge("lot_x", "X.", ["a"])
    assert gauge.values() == {}
    gauge.set(2, "one")
    gauge.set(1, "one")
    assert gauge.values() == {("one",): 1}
    gauge.clear()
    assert gauge.values() == {}


def test_a_histogram_counts_a_value_in_the_first_bucket_that_holds_it() -> None:
    histogram = Histogram("lot_x_seconds", "X.", bounds=[1, 2])
    for value in (0.5, 1, 1.5, 2, 3):
        histogram.observe(value)
    assert list(histogram.values()) == [((), (2, 2, 1), 8)]


def test_nothing_is_lost_when_threads_count_at_once() -> None:
    counter = Counter("lot_x", "X.", ["a"])
    histogram = Histogram("lot_x_seconds", "X.", bounds=[1])

    def count(_: int) -> None:
        for _ in range(5000):
            counter.add("a")
            histogram.observe(1)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(count, range(8)))
    assert counter.values() == {("a",): 40_000}
    assert list(histogram.values()) == [((), (40_000, 0), 40_000)]


def test_a_metric_never_has_more_series_than_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instruments, "MAX_SERIES", 2)
    counter = Counter("lot_x", "X.", ["a"])
    histogram = Histogram("lot_x_seconds", "X.", ["a"], bounds=[1])
    for name in "abcda":
        counter.add(name)
        histogram.observe(1, name)
    assert counter.values() == {("a",): 2, ("b",): 1, ("other",): 2}
    counts = {labels: sum(buckets) for labels, buckets, _ in histogram.values()}
    assert counts == {("a",): 2, ("b",): 1, ("other",): 2}


def test_names_follow_the_conventions_of_prometheus() -> None:
    names = [metric.name for metric in metrics.ALL]
    assert len(set(names)) == len(names)
    for metric in metrics.ALL:
        assert metric.name.startswith(("lot_", "process_"))
        assert not metric.name.endswith("_total"), "the exposition adds it to counters"
        assert metric.help.endswith(".")
        assert not {"namespace", "principal", "le"} & set(metric.labels)
        if isinstance(metric, Histogram):
            assert metric.name.endswith(("_seconds", "_bytes", "_size"))
            assert list(metric.bounds) == sorted(set(metric.bounds))
