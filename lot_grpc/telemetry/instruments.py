"""Counters, gauges and histograms, as cheap as a call can afford.

They are plain numbers in this process, read by whatever publishes them. Each is safe to use from
any thread, except the series of ``of``. Labels are given by position, in the order in which the
metric declares them; their values must come from a small set, never from a caller.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")

Labels: TypeAlias = tuple[str, ...]

MAX_SERIES: Final = 2000
"""How many combinations of labels a metric has at most; those beyond it are counted as `other`."""

SECONDS: Final = (
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0
)  # fmt: skip
"""Upper bounds of buckets of times, from half a millisecond to a minute."""


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


class Count:
    """One series of a counter. ``value`` may be raised without a lock, by a single thread."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: float = 0


class Counter(Metric):
    """A number that only grows.

    One without labels begins at 0, and so do the series of ``known``, so that a query of their
    growth sees the first count as well; others are absent until they are counted.
    """

    def __init__(
        self,
        name: str,
        help: str,
        labels: Sequence[str] = (),
        known: Iterable[str | Labels] = (),
    ) -> None:
        super().__init__(name, help, labels)
        self._series: dict[Labels, Count] = {} if labels else {(): Count()}
        for one in known:
            self.of(*((one,) if isinstance(one, str) else one))

    def add(self, *labels: str, by: float = 1) -> None:
        """Count."""
        with self._lock:
            self._of(labels).value += by

    def of(self, *labels: str) -> Count:
        """A series that only one thread counts, by itself: for what happens at each call."""
        with self._lock:
            return self._of(labels)

    def _of(self, labels: Labels) -> Count:
        try:
            return self._series[labels]
        except KeyError:
            return self._series.setdefault(self._admitted(labels, len(self._series)), Count())

    def values(self) -> dict[Labels, float]:
        """The value of each series."""
        with self._lock:
            return {labels: one.value for labels, one in self._series.items()}


class Gauge(Metric):
    """A number that goes up and down: set, or read from the objects that know it.

    A series that was never set is absent. The values of several objects are added up; the sum is 0
    once all of them are gone.
    """

    def __init__(self, name: str, help: str, labels: Sequence[str] = ()) -> None:
        super().__init__(name, help, labels)
        self._values: dict[Labels, float] = {}
        self._owners: WeakKeyDictionary[Any, Callable[[Any], float]] | None = None

    def set(self, value: float, *labels: str) -> None:
        """Replace the value of a series."""
        with self._lock:
            if labels not in self._values:
                labels = self._admitted(labels, len(self._values))
            self._values[labels] = float(value)  # not a bool, which is no number in OTLP

    def follow(self, owner: T, read: Callable[[T], float]) -> None:
        """Let ``read`` tell the value, for as long as ``owner`` lives. Only without labels.

        ``read`` must not refer to the owner itself, and is called in the thread of ``refresh``.
        """
        if self._owners is None:
            self._owners = WeakKeyDictionary()
        self._owners[owner] = read
        self.refresh()

    def refresh(self) -> None:
        """Read the value from the owners; called in their thread before the metric is published."""
        if self._owners is not None:
            self.set(sum(read(owner) for owner, read in list(self._owners.items())))

    def values(self) -> dict[Labels, float]:
        """The value of each series."""
        with self._lock:
            return dict(self._values)


class Buckets:
    """One series of a histogram: how many values are in each bucket, and their sum."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        """Count a value without a lock: only for a single thread."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def copy(self) -> Buckets:
        """It as it is now. Its counts are not cumulative."""
        copied = Buckets(self.bounds)
        copied.counts, copied.total = self.counts.copy(), self.total
        return copied


class Histogram(Metric):
    """How values are distributed. ``bounds`` are the upper bounds of the buckets but the last."""

    def __init__(
        self, name: str, help: str, labels: Sequence[str] = (), bounds: Sequence[float] = SECONDS
    ) -> None:
        super().__init__(name, help, labels)
        self.bounds = tuple(bounds)
        self._series: dict[Labels, Buckets] = {} if labels else {(): Buckets(self.bounds)}

    def observe(self, value: float, *labels: str) -> None:
        """Count a value."""
        with self._lock:
            self._of(labels).observe(value)

    def of(self, *labels: str) -> Buckets:
        """A series that only one thread counts, by itself: for what happens at each call."""
        with self._lock:
            return self._of(labels)

    def _of(self, labels: Labels) -> Buckets:
        try:
            return self._series[labels]
        except KeyError:
            labels = self._admitted(labels, len(self._series))
            return self._series.setdefault(labels, Buckets(self.bounds))

    def time(self, *labels: str) -> _Timer:
        """A block whose time is counted, also if it fails."""
        return _Timer(self, labels)

    def values(self) -> dict[Labels, Buckets]:
        """A copy of each series."""
        with self._lock:
            return {labels: one.copy() for labels, one in self._series.items()}


class _Timer:
    __slots__ = ("_begun", "_histogram", "_labels")

    def __init__(self, histogram: Histogram, labels: Labels) -> None:
        self._histogram = histogram
        self._labels = labels

    def __enter__(self) -> None:
        self._begun = time.perf_counter()

    def __exit__(self, *error: object) -> None:
        self._histogram.observe(time.perf_counter() - self._begun, *self._labels)
