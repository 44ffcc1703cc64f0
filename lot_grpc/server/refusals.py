"""Holds back refusals, so that a client that retries at once does not keep the server busy.

A client that ignores RetryInfo would fill the event loop with refusals, to the cost of all others.
Held back, each costs as much, but there are only a few per second. A call that is within its limits
by then is not refused.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from typing import Final

from lot_grpc.domain.access import Principal

_SHORTEST_SECONDS: Final = 0.25
_LONGEST_SECONDS: Final = 0.75
"""At random, so that many that came together are not sent together."""
_MOST: Final = 1024
"""How many of one principal are held back; others are sent at once."""


class Refusals:
    """The refusals that are held back, by principal."""

    def __init__(self, draining: asyncio.Event) -> None:
        self._draining = draining
        self._held: Counter[str] = Counter()

    async def hold_back(self, principal: Principal) -> bool:
        """Wait before a call is refused; False if there are too many that wait."""
        name = principal.id
        if self._held[name] >= _MOST or self._draining.is_set():
            return False
        self._held[name] += 1
        try:
            await asyncio.sleep(random.uniform(_SHORTEST_SECONDS, _LONGEST_SECONDS))  # noqa: S311
        finally:
            self._held[name] -= 1
            if not self._held[name]:
                del self._held[name]
        return True
