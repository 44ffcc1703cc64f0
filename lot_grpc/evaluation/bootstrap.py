"""Confidence of a mean over queries: percentile bootstrap.

Queries are drawn with replacement, as many as there are, 1,000 times; the interval contains the
middle 95 % of the means. For a difference the per-query differences are drawn, so both sides always
have the same queries (paired). Source: Efron and Tibshirani, "An Introduction to the Bootstrap"
(1993), chapter 13; for retrieval Sakai, SIGIR 2006.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 1000
_SEED = 20_240_229
_PERCENTILES = (2.5, 97.5)
Values = NDArray[np.float64]


class Verdict(StrEnum):
    """What a difference shows."""

    BETTER = "better"
    WORSE = "worse"
    UNSHOWN = "no difference shown"


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with its 95 % interval."""

    mean: float
    low: float
    high: float

    @property
    def verdict(self) -> Verdict:
        """For a difference: on which side of 0 the whole interval is."""
        if self.low > 0:
            return Verdict.BETTER
        return Verdict.WORSE if self.high < 0 else Verdict.UNSHOWN


def estimates(columns: Sequence[Sequence[float]], seed: int = _SEED) -> list[Estimate]:
    """The mean of each column, with one value per query, the same in each. Never empty."""
    values = np.asarray(columns, dtype=np.float64).T
    low, high = np.percentile(_resampled_means(values, seed), _PERCENTILES, axis=0)
    means = values.mean(axis=0)
    return [
        Estimate(float(mean), float(least), float(most))
        for mean, least, most in zip(means, low, high, strict=True)
    ]


def _resampled_means(values: Values, seed: int) -> Values:
    drawing = np.random.default_rng(seed)
    count = len(values)
    means = np.empty((RESAMPLES, values.shape[1]))
    for row in range(RESAMPLES):  # all at once would take gigabytes for a large set
        means[row] = values[drawing.integers(0, count, count)].mean(axis=0)
    return means
