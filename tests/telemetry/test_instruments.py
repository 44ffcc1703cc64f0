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


def test_known_series_of_a_counter_begin_at_zero() -> None:
    counter = Counter("lot_x", "X.", ["a"], ["one", "two"])
    assert counter.values() == {("one",): 0, ("two",): 0}
    assert Counter("lot_x", "X.", ["a", "b"], [("1", "2")]).values() == {("1", "2"): 0}


def test_a_gauge_is_absent_until_it_is_set() -> None:
    gauge = Gauge("lot_x", "X.", ["a"])
    assert gauge.values() == {}
    gauge.set(2, "one")
    gauge.set(1, "one")
    gauge.set(True, "one")
    gauge.refresh()  # it follows nothing
    assert type(gauge.values()["one",]) is float
    assert gauge.values() == {("one",): 1}


def test_a_gauge_sums_up_what_it_follows_while_that_lives() -> None:
    class Queue:
        def __init__(self, length: int) -> None:
            self.length = length

        def read(self) -> int:
            return self.length

    gauge = Gauge("lot_x", "X.")
    one, other = Queue(1), Queue(2)
    gauge.follow(one, Queue.read)
    gauge.follow(other, Queue.read)
    assert gauge.values() == {(): 3}
    one.length = 5
    assert gauge.values() == {(): 3}, "it is read by refresh only"
    gauge.refresh()
    assert gauge.values() == {(): 7}
    del one, other
    gauge.refresh()
    assert gauge.values() == {(): 0}


def test_a_histogram_counts_a_value_in_the_first_bucket_that_holds_it() -> None:
    histogram = Histogram("lot_x_seconds", "X.", bounds=[1, 2])
    assert counts_of(histogram) == {(): [0, 0, 0]}
    for value in (0.5, 1, 1.5, 2, 3):
        histogram.observe(value)
    assert counts_of(histogram) == {(): [2, 2, 1]}
    assert histogram.values()[()].total == 8


def test_a_block_is_timed_also_if_it_fails() -> None:
    histogram = Histogram("lot_x_seconds", "X.", ["a"], bounds=[60])
    with histogram.time("one"):
        pass
    with pytest.raises(KeyError), histogram.time("two"):
        raise KeyError
    assert counts_of(histogram) == {("one",): [1, 0], ("two",): [1, 0]}


def counts_of(histogram: Histogram) -> dict[tuple[str, ...], list[int]]:
    return {labels: series.counts for labels, series in histogram.values().items()}


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
    assert counts_of(histogram) == {(): [40_000, 0]}


def test_a_metric_never_has_more_series_than_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instruments, "MAX_SERIES", 2)
    counter = Counter("lot_x", "X.", ["a"])
    histogram = Histogram("lot_x_seconds", "X.", ["a"], bounds=[1])
    for name in "abcda":
        counter.add(name)
        histogram.observe(1, name)
    assert counter.values() == {("a",): 2, ("b",): 1, ("other",): 2}
    assert counts_of(histogram) == {("a",): [2, 0], ("b",): [1, 0], ("other",): [2, 0]}


def test_names_follow_the_conventions_of_prometheus() -> None:
    names = [metric.name for metric in metrics.ALL]
    assert len(set(names)) == len(names)
    for metric in metrics.ALL:
        assert metric.name.startswith("lot_")
        assert not metric.name.endswith("_total"), "the exposition adds it to counters"
        assert metric.help.endswith(".")
        assert not {"namespace", "principal", "le"} & set(metric.labels)
        if isinstance(metric, Histogram):
            assert metric.name.endswith("_seconds")
            assert list(metric.bounds) == sorted(set(metric.bounds))
