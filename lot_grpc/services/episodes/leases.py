"""Renews the leases of this process's open streams.

They tell other processes that an episode is being recorded. A writer that another process has
replaced is detected here and its stream stopped, even if it is idle.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

from lot_grpc.domain.errors import (
    EpisodeEndedError,
    EpisodeNotFoundError,
    NamespaceClearingError,
    WriterReplacedError,
)
from lot_grpc.services.episodes.active_streams import ActiveStreams, OpenStream
from lot_grpc.services.episodes.fence import LEASE_SECONDS, Fence

RENEW_SECONDS: Final = LEASE_SECONDS / 3
"""Interval of renewals: two in a row may fail."""

_AT_ONCE = 16


class Leases:
    """Renews."""

    def __init__(self, fence: Fence, active_streams: ActiveStreams) -> None:
        self._fence = fence
        self._active_streams = active_streams

    async def renew(self) -> None:
        """Renew all once; does nothing if no other process can write.

        Raises StoreUnavailableError, StorageFullError; those that were not renewed may lapse.
        """
        if not self._fence.needed:
            return
        waiting = deque(self._active_streams.open())

        async def work() -> None:
            while waiting:
                await self._renew(waiting.popleft())

        done = await asyncio.gather(*(work() for _ in range(_AT_ONCE)), return_exceptions=True)
        for failure in done:
            if failure is not None:
                raise failure

    async def _renew(self, writer: OpenStream) -> None:
        if self._active_streams.current(writer.namespace, writer.episode_id) is not writer:
            return  # it was closed in the meantime
        try:
            if await self._fence.renew(writer):
                return
            standing = await self._fence.standing(
                writer.namespace, writer.episode_id, writer.epoch, writer.last
            )
        except (EpisodeNotFoundError, NamespaceClearingError) as error:
            writer.stop(error)
            return
        status = standing.episode.status
        if status.ended:
            writer.stop(EpisodeEndedError(writer.episode_id, status.name, "its stream is closed"))
        elif not standing.valid:
            writer.stop(WriterReplacedError(writer.episode_id))
