"""Which cases of a proof the normal run takes; ``make exhaustive`` takes all of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def one_in(n: int, cases: Iterable[Any]) -> list[Any]:
    """Parameters of which the normal run takes every ``n``-th."""
    return [
        case if number % n == 0 else pytest.param(*_values(case), marks=pytest.mark.exhaustive)
        for number, case in enumerate(cases)
    ]


def _values(case: Any) -> tuple[Any, ...]:
    return case if isinstance(case, tuple) else (case,)
