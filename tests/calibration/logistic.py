"""Logistic regression, and how well probabilities hold."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]

_RIDGE = 1e-6
"""Pulls the weights towards 0 by so little that it matters only where data leave them open."""
BINS = 10


def fit(features: Floats, right: Floats, counts: Floats) -> Floats:
    """The weights of greatest likelihood, by Newton's method. ``counts``: what each row counts."""
    weights = np.zeros(features.shape[1])
    ridge = np.diag([0.0, *([_RIDGE] * (features.shape[1] - 1))])
    for _ in range(100):
        likely = probabilities(features, weights)
        slope = features.T @ (counts * (likely - right)) + ridge @ weights
        curve = (features * (counts * likely * (1 - likely))[:, None]).T @ features + ridge
        step = np.linalg.solve(curve, slope)
        weights = weights - step
        if np.abs(step).max() < 1e-9:
            return weights
    raise ArithmeticError("the fit does not converge; is one feature a sum of others?")


def probabilities(features: Floats, weights: Floats) -> Floats:
    """What the weights say of each row."""
    return np.asarray(1.0 / (1.0 + np.exp(-(features @ weights))), dtype=np.float64)


def brier(likely: Floats, right: Floats) -> float:
    """The mean square of what they miss by (Brier, 1950); 0 is perfect."""
    return float(np.mean((likely - right) ** 2))


def reliability(likely: Floats, right: Floats, counts: Floats) -> list[tuple[float, float, float]]:
    """By bins of equal width: mean probability, share that is right, share of all."""
    place = np.minimum((likely * BINS).astype(int), BINS - 1)
    found = []
    for number in range(BINS):
        here = place == number
        if (total := float(counts[here].sum())) > 0:
            said = float((counts * likely)[here].sum()) / total
            was = float((counts * right)[here].sum()) / total
            found.append((said, was, total / float(counts.sum())))
    return found


def calibration_error(likely: Floats, right: Floats) -> float:
    """The expected calibration error (Naeini and others, 2015): the mean gap over the bins."""
    rows = reliability(likely, right, np.ones(len(right)))
    return sum(share * abs(said - was) for said, was, share in rows)


def ranked_right(likely: Floats, right: Floats) -> float:
    """The chance that a right one has a larger probability than a wrong one (AUC)."""
    good, bad = likely[right == 1], np.sort(likely[right == 0])
    below = np.searchsorted(bad, good, "left") + np.searchsorted(bad, good, "right")
    return float(below.sum()) / (2 * len(good) * len(bad))
