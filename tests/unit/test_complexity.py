from __future__ import annotations

import pytest

from lot_grpc.domain.complexity import Complexity, assess_complexity

LOW, MEDIUM, HIGH = Complexity.LOW, Complexity.MEDIUM, Complexity.HIGH


# (task length, dependencies, effort, category) -> the level, with the points that lead to it.
@pytest.mark.parametrize(
    ("length", "dependencies", "effort", "category", "expected"),
    [
        (10, 0, 1, "frontend", LOW),  # 0
        (100, 0, 1, "frontend", LOW),  # 0: not over 100
        (101, 1, 3, "frontend", LOW),  # 1 + 1 + 1
        (100, 1, 3, "backend", MEDIUM),  # 0 + 1 + 1 + 2
        (101, 0, 3, "backend", MEDIUM),  # 1 + 1 + 2
        (200, 3, 2, "docs", MEDIUM),  # 1 + 3 + 0: effort not over 2
        (201, 0, 2.01, "docs", LOW),  # 2 + 1
        (201, 0, 5, "docs", LOW),  # 2 + 1: effort not over 5
        (201, 0, 5.01, "docs", MEDIUM),  # 2 + 3
        (201, 0, 6, "auth", HIGH),  # 2 + 3 + 2
        (10, 4, 1, "docs", MEDIUM),  # 4
        (10, 3, 1, "docs", LOW),  # 3
        (10, 6, 1, "docs", MEDIUM),  # 6
        (10, 7, 1, "docs", HIGH),  # 7
        (10, 0, 1, "database", LOW),  # 2
        (10, 2, 1, "integration", MEDIUM),  # 4
        (10, 5, 1, "backend", HIGH),  # 7
        (10, 4, 1, "Backend", MEDIUM),  # 4: categories are compared as they stand
        (201, 2, 6, "auth", HIGH),  # 9
    ],
)
def test_points_make_the_complexity(length, dependencies, effort, category, expected):
    given = assess_complexity("x" * length, ["d"] * dependencies, effort, category)
    assert given is expected
