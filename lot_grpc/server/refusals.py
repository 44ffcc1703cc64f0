"""Holds back refusals, so that a client that retries at once does not keep the server busy.

A client that ignores RetryInfo, or tries keys, would fill the event loop with refusals, to the cost
of all others. Held back, each costs as much, but there are only a few hundred per second, however
many calls a client has under way. A call that is within its limits by then is not refused.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from contextlib import suppress
from typing import Final

from lot_grpc.domain.access import Principal

SHORTEST_SECONDS: Final = 0.25
LONGEST_SECONDS: Final = 0.75
"""At random, so that many that came together are not sent together."""
MANY: Final = 256
"""If more of one principal are held back, each waits longer."""
MOST: Final = 2048
"""How many of one principal are held back, each with up to 64 KiB of request that gRPC received;
others are sent at once."""


class Refusals:
    """The refusals that are held back, by principal."""

    def __init__(self, draining: asyncio.Event) -> None:
        self._draining = draining
        self._held: Counter[str] = Counter()

    def __len__(self) -> int:
        return self._held.total()

    async def hold_back(self, principal: Principal) -> bool:
        """Wait before a call is refused; False if there are too many that wait. A drain ends it.

        Callers that are not authenticated are one principal, ``ANONYMOUS``.
        """
        name = principal.id
        if self._held[name] >= MOST or self._draining.is_set():
            return False
        self._held[name] += 1
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds(self._held[name])):
                    await self._draining.wait()
        finally:
            self._held[name] -= 1
            if not self._held[name]:
                del self._held[name]
        return True


def seconds(held: int) -> float:
    """How long one of so many waits."""
    drawn = random.uniform(SHORTEST_SECONDS, LONGEST_SECONDS)  # noqa: S311
    return drawn * max(1.0, held / MANY)
