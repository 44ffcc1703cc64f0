"""The machine's clock."""

from __future__ import annotations

import time


class SystemClock:
    """The system's clock."""

    def now(self) -> int:
        """Microseconds since 1970."""
        return time.time_ns() // 1000
