"""Counters, gauges and histograms, as cheap as a call can afford.

They are plain numbers in this process, read by whatever publishes them. Each is safe to use from
any thread. Labels are given by position, in the order in which the metric declares them; their
values must come from a small set, never from a caller.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

Labels: TypeAlias = tuple[str, ...]

MAX_SERIES: Final = 2000
"""How many combinations of labels a metric has at most; those beyond it are counted as `other`."""


class Metric:
    """What all kinds have. ``name`` is that of Prometheus, with its unit, without ``_total``."""

    def __init__(self, name: str, help: str, labels: Sequence[str] = ()) -> None:
        self.name = name
        self.help = help
        self.labels = tuple(labels)
        self._lock = threading.Lock()

    def _admitted(self, labels: Labels, size: int) -> Labels:
        """The labels under which a new series is kept."""
        if len(labels) != len(self.labels):
            raise ValueError(f"{self.name} has the labels {self.labels}, not {len(labels)} values")
        return labels if size < MAX_SERIES else ("other",) * len(labels)


class Counter(Metric):
    """A number that only grows. One without labels begins at 0, others are absent until counted."""

    def __init__(self, name: str, help: str, labels: Sequence[str] = ()) -> None:
        super().__init__(name, help, labels)
        self._values: dict[Labels, float] = {} if labels else {(): 0}

    def add(self, *labels: str, by: float = 1) -> None:
        """Count."""
        with self._lock:
            try:
                self._values[labels] += by
            except KeyError:
                labels = self._admitted(labels, len(self._values))
                self._values[labels] = self._values.get(labels, 0) + by

    def values(self) -> dict[Labels, float]:
        """The value of each series."""
        with self._lock:
            return dict(self._values)


class Gauge(Metric):
    """A number that goes up and down, absent until it is set."""

    def __init__(self, name: str, help: str, labels: Sequence[str] = ()) -> None:
        super().__init__(name, help, labels)
        self._values: dict[Labels, float] = {}

    def set(self, value: float, *labels: str) -> None:
        """Replace the value of a series."""
        with self._lock:
            if labels not in self._values:
                labels = self._admitted(labels, len(self._values))
            self._values[labels] = value

    def clear(self) -> None:
        """Remove every series, for those that are set anew together."""
        with self._lock:
            self._values = {}

    def values(self) -> dict[Labels, float]:
        """The value of each series."""
        with self._lock:
            return dict(self._values)


class Series:
    """One series of a histogram: how many values are in each bucket, and their sum."""

    __slots__ = ("counts", "total")

    def __init__(self, buckets: int) -> None:
        self.counts = [0] * buckets
        self.total = 0.0


class Histogram(Metric):
    """How values are distributed. ``bounds`` are the upper bounds of the buckets but the last."""

    def __init__(
        self, name: str, help: str, labels: Sequence[str] = (), *, bounds: Sequence[float]
    ) -> None:
        super().__init__(name, help, labels)
        self.bounds = tuple(bounds)
        self._series: dict[Labels, Series] = {}

    def observe(self, value: float, *labels: str) -> None:
        """Count a value."""
        with self._lock:
            try:
                series = self._series[labels]
            except KeyError:
                labels = self._admitted(labels, len(self._series))
                made = Series(len(self.bounds) + 1)
                series = self._series.setdefault(labels, made)
            series.counts[bisect_left(self.bounds, value)] += 1
            series.total += value

    def values(self) -> Iterator[tuple[Labels, tuple[int, ...], float]]:
        """The labels, the count of each bucket (not cumulative) and the sum of each series."""
        with self._lock:
            found = [(key, tuple(one.counts), one.total) for key, one in self._series.items()]
        return iter(found)
