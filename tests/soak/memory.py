"""Memory of the server over time."""

from __future__ import annotations

import re
import statistics
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ALLOWED = 0.05

_LONG = 300.0
"""Seconds of a run from which on anonymous memory is judged: a short one sees the warm-up alone."""

_ANONYMOUS = re.compile(r"^RssAnon:\s+(\d+) kB", re.MULTILINE)


@dataclass(frozen=True)
class Sample:
    """Memory at a moment, seconds after the start of the run. Sizes are in bytes.

    ``resident`` is all of it in RAM, mapped files included. ``anonymous`` is the part that the
    kernel cannot drop and read again; 0 where it does not tell.
    """

    at: float
    resident: int
    anonymous: int = 0


def sample(pid: int, at: float) -> Sample | None:
    """That of a process; None if it is gone."""
    done = subprocess.run(
        ["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    resident = int(done.stdout.strip() or 0) * 1024
    if not resident:
        return None
    try:
        found = _ANONYMOUS.search(Path(f"/proc/{pid}/status").read_text())
    except OSError:
        found = None
    return Sample(at, resident, int(found[1]) * 1024 if found else 0)


def growth(samples: Sequence[Sample], seconds: float, of: Callable[[Sample], int]) -> float:
    """By which share the median of the run's last quarter is above that of the one before.

    Raises:
        ValueError: a quarter has no sample.
    """
    third = [of(one) for one in samples if seconds / 2 <= one.at < seconds * 3 / 4]
    fourth = [of(one) for one in samples if seconds * 3 / 4 <= one.at < seconds]
    if not third or not fourth:
        raise ValueError("a quarter has no sample of the memory")
    before = statistics.median(third)
    return statistics.median(fourth) / before - 1 if before else 0.0


def grown_too_much(growth: Mapping[str, float], seconds: float) -> list[str]:
    """What is wrong with the growth of each kind of memory in a run of so many seconds."""
    return [
        f"{what} memory grew by {share:.1%} over the last half; {ALLOWED:.0%} is allowed"
        for what, share in growth.items()
        if share > ALLOWED and (what == "resident" or seconds >= _LONG)
    ]
