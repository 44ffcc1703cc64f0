"""Which of the nearest hits are likely enough to help.

There is always a nearest hit. One whose probability of being for the task
(``domain.match_probability``) is far below that of the best can only mislead; so can all of them if
none is likely.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

LEAST: Final = 0.05
"""The minimum probability for a hit to be shown."""

OF_BEST: Final = 0.25
"""And the minimum share of the highest probability of all kinds.

Both were chosen with ``python -m tests.context.measure`` (docs/context.md).
"""


def least_likely(matches: Iterable[float | None]) -> float:
    """The minimum probability for one of these to be shown; None: unknown."""
    return max(LEAST, OF_BEST * max((one for one in matches if one is not None), default=0.0))


def likely_enough(match: float | None, least: float) -> bool:
    """Whether a hit is shown; one whose probability is unknown is."""
    return match is None or match >= least
