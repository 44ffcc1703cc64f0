"""What of the nearest is near enough to be told: what is likely to help.

Something is always nearest. What is for the task by a probability (``domain.match_probability``)
far below that of the best thing known can only mislead beside it, and so can everything where
nothing is likely.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

LEAST: Final = 0.05
"""The least probability with which anything is told."""

OF_BEST: Final = 0.25
"""And the least share of the probability of what is most likely, of whatever kind.

Both were chosen with ``python -m tests.context.measure`` (docs/context.md).
"""


def least_likely(matches: Iterable[float | None]) -> float:
    """The least probability with which one of these is told; None: not known."""
    return max(LEAST, OF_BEST * max((one for one in matches if one is not None), default=0.0))


def likely_enough(match: float | None, least: float) -> bool:
    """Whether it is told; also where it is not known how likely it is."""
    return match is None or match >= least
