"""The bytes of single requests: how many may be on their way or in use, and for how long.

While a message is read gRPC's core takes in all of it, and its size is not known before. A small
one is there already and takes no time. One that takes longer needs room for the largest that is
allowed; what it did not use is free again when it has arrived, and the rest when its call is over.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

import grpc.aio

from lot_grpc.domain.errors import OverloadedError, RequestMalformedError
from lot_grpc.server.call import Context
from lot_grpc.server.limits import Limits
from lot_grpc.server.streams import CANCEL_SECONDS

QUICK_READS: Final = 32
"""How many messages may be read at once without room."""
_QUICK_SECONDS: Final = 0.05
"""How long a message may take without room."""
_HURRY_SECONDS: Final = 1.0
"""How long one may take where another found no room, or its call no place."""
_SMALL: Final = 64 * 1024
"""Messages up to here need no room: core has buffered them, and calls are limited anyway."""


class _Reading:
    """A message on its way."""

    __slots__ = ("began", "has_room", "limit", "refused")

    def __init__(self, began: float) -> None:
        self.began = began
        self.has_room = False
        self.refused = False
        self.limit: asyncio.Timeout | None = None


class Incoming:
    """Reads the request of a call that has one."""

    def __init__(self, limits: Limits) -> None:
        self._most = limits.max_message_bytes
        self._total = max(limits.max_request_bytes, self._most)
        self._free = self._total
        self._seconds = limits.max_receive_seconds
        self._quick = asyncio.Semaphore(QUICK_READS)
        self._slow: set[_Reading] = set()

    @property
    def has_room(self) -> bool:
        """Whether a message of the largest size would find room now."""
        return self._free >= self._most

    async def receive(self, context: Context) -> bytes:
        """The request. Its bytes count until they are given back with ``release``.

        Raises:
            OverloadedError: there is no room for it, or it took too long. Nothing was done.
            RequestMalformedError: the call has none.
        """
        await self._quick.acquire()
        loop = asyncio.get_running_loop()
        reading = _Reading(loop.time())
        timer = loop.call_later(_QUICK_SECONDS, self._make_room, reading)
        try:
            async with asyncio.timeout(None) as reading.limit:
                got: Any = await context.read()
        except TimeoutError:
            if reading.refused:
                raise self._no_room() from None
            raise OverloadedError(
                f"the request did not arrive within {self._seconds:g} s, or {_HURRY_SECONDS:g} s "
                "while others wait; repeat the call in a moment",
                limit_seconds=f"{self._seconds:g}",
            ) from None
        finally:
            timer.cancel()
            if reading.has_room:
                self._slow.discard(reading)
                self._free += self._most
            else:
                self._quick.release()
        if got is grpc.aio.EOF:
            await asyncio.sleep(CANCEL_SECONDS)
            raise RequestMalformedError("the call ended without a request; send one message")
        raw = bytes(got)
        if _SMALL < len(raw) > self._free:
            self.hurry()
            raise self._no_room()
        self._free -= len(raw)
        return raw

    def release(self, size: int) -> None:
        """Give the bytes of a request back."""
        self._free += size

    def hurry(self) -> None:
        """Others wait: drop what has been arriving for a second."""
        now = asyncio.get_running_loop().time()
        for reading in self._slow:
            limit = reading.limit
            if limit is not None and not limit.expired():
                limit.reschedule(max(now, reading.began + _HURRY_SECONDS))

    def _make_room(self, reading: _Reading) -> None:
        assert reading.limit is not None
        if self.has_room:
            self._free -= self._most
            reading.has_room = True
            self._slow.add(reading)
            self._quick.release()
            reading.limit.reschedule(reading.began + self._seconds)
        else:
            reading.refused = True
            reading.limit.reschedule(0)
            self.hurry()

    def _no_room(self) -> OverloadedError:
        return OverloadedError(
            f"requests of {self._total:,} bytes are on their way or being worked on, the most this "
            "server takes; repeat the call in a moment",
            limit=self._total,
        )
