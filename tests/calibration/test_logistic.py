"""The fit and its measures, on made rows whose answers are known."""

from __future__ import annotations

import numpy as np
import pytest

from tests.calibration.logistic import (
    brier,
    calibration_error,
    fit,
    probabilities,
    ranked_right,
    reliability,
)

DRAW = np.random.default_rng(7)
ROWS = np.column_stack([np.ones(20_000), DRAW.uniform(0, 1, (20_000, 2))])
TRUE = np.array([-3.0, 5.0, 1.0])
RIGHT = (DRAW.uniform(0, 1, 20_000) < probabilities(ROWS, TRUE)).astype(float)
ONES = np.ones(20_000)


def test_the_weights_that_made_the_rows_are_found():
    assert fit(ROWS, RIGHT, ONES) == pytest.approx(TRUE, abs=0.2)


def test_rows_count_as_much_as_they_are_said_to():
    twice = np.where(RIGHT == 1, 2.0, 1.0)
    doubled = np.vstack([ROWS, ROWS[RIGHT == 1]])
    answers = np.concatenate([RIGHT, np.ones(int(RIGHT.sum()))])
    weighted = fit(ROWS, RIGHT, twice)
    assert weighted == pytest.approx(fit(doubled, answers, np.ones(len(answers))), abs=1e-4)


def test_a_feature_that_is_the_sum_of_others_is_refused_or_harmless():
    rows = np.column_stack([ROWS, ROWS[:, 1] + ROWS[:, 2]])
    likely = probabilities(rows, fit(rows, RIGHT, ONES))
    assert likely == pytest.approx(probabilities(ROWS, fit(ROWS, RIGHT, ONES)), abs=1e-3)


def test_true_probabilities_are_calibrated_and_others_are_not():
    true = probabilities(ROWS, TRUE)
    assert calibration_error(true, RIGHT) < 0.02
    assert calibration_error(true**2, RIGHT) > 0.1
    assert brier(true, RIGHT) < brier(true**2, RIGHT)
    assert sum(share for _, _, share in reliability(true, RIGHT, ONES)) == pytest.approx(1)


def test_the_chance_that_right_ones_come_first():
    assert ranked_right(np.array([0.9, 0.8, 0.1]), np.array([1.0, 1.0, 0.0])) == 1
    assert ranked_right(np.array([0.5, 0.5]), np.array([1.0, 0.0])) == 0.5
