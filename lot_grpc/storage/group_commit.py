"""One sync shared by all concurrent writers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class GroupCommit:
    """Lets writers that arrive while a sync is pending share it."""

    def __init__(self, sync: Callable[[], None]) -> None:
        self._sync = sync
        self._due: asyncio.Task[None] | None = None

    async def join(self) -> None:
        """Return once everything written so far is on the disk."""
        if self._due is None:
            self._due = asyncio.create_task(self._run())
        await asyncio.shield(self._due)

    async def _run(self) -> None:
        await asyncio.sleep(0)  # let writers that are ready now still join
        self._due = None
        self._sync()
