"""Which of the nearest hits are likely enough to help.

Something is always nearest. A thing whose probability of being for the task
(``domain.match_probability``) is far below that of the best one can only mislead; so can all of
them if none is likely.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

LEAST: Final = 0.05
"""The lowest probability with which anything is shown."""

OF_BEST: Final = 0.25
"""And the lowest share of the highest probability, of whatever kind.

Both were chosen with ``python -m tests.context.measure`` (docs/context.md).
"""


def least_likely(matches: Iterable[float | None]) -> float:
    """The lowest probability with which one of these is shown; None: unknown."""
    return max(LEAST, OF_BEST * max((one for one in matches if one is not None), default=0.0))


def likely_enough(match: float | None, least: float) -> bool:
    """Whether it is shown; so is one whose probability is unknown."""
    return match is None or match >= least
