"""Resident memory of the server over time."""

from __future__ import annotations

import statistics
import subprocess
from collections.abc import Sequence

ALLOWED = 0.05

Sample = tuple[float, int]
"""Seconds since the start of the run, bytes."""


def resident(pid: int) -> int:
    """Bytes in RAM of a process, mapped files included; 0 if it is gone."""
    done = subprocess.run(
        ["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return int(done.stdout or 0) * 1024


def growth(samples: Sequence[Sample], seconds: float) -> float:
    """By which share the median of the run's last quarter is above that of the one before.

    Raises:
        ValueError: a quarter has no sample.
    """
    third = [size for at, size in samples if seconds / 2 <= at < seconds * 3 / 4]
    fourth = [size for at, size in samples if seconds * 3 / 4 <= at < seconds]
    if not third or not fourth:
        raise ValueError("a quarter has no sample of the memory")
    return statistics.median(fourth) / statistics.median(third) - 1
