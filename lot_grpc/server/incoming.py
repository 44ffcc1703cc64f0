"""Memory for unary requests: how many bytes may be arriving or in use, and for how long.

gRPC's core buffers a whole message before its size is known. A small one is already there and takes
no time. A slower one reserves the size of the largest allowed message; the unneeded part is
released when it has arrived, and the rest when its call is over.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

import grpc.aio
from google.protobuf.message import Message

from lot_grpc.domain.errors import OverloadedError, RequestMalformedError
from lot_grpc.server.call import Context
from lot_grpc.server.limits import Limits
from lot_grpc.server.streams import CANCEL_SECONDS

QUICK_READS: Final = 32
"""How many messages may be read at once without a reservation."""
_QUICK_SECONDS: Final = 0.05
"""How long a message may take to arrive without a reservation."""
_HURRY_SECONDS: Final = 1.0
"""How long one may take while other requests or calls are waiting for memory."""
_SMALL: Final = 64 * 1024
"""Smaller messages need no reservation: core has buffered them, and calls are limited anyway."""


class _Reading:
    """A message that is arriving."""

    __slots__ = ("began", "has_capacity", "limit", "refused")

    def __init__(self, began: float) -> None:
        self.began = began
        self.has_capacity = False
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
    def has_capacity(self) -> bool:
        """Whether there is memory for a message of the largest size now."""
        return self._free >= self._most

    async def receive(self, context: Context, request_type: type[Message]) -> bytes:
        """Read the request. Its bytes count until they are returned with ``release``.

        Raises:
            OverloadedError: there is no memory for it, or it took too long. Nothing was done.
            RequestMalformedError: the call has no request.
        """
        await self._quick.acquire()
        loop = asyncio.get_running_loop()
        reading = _Reading(loop.time())
        timer = loop.call_later(_QUICK_SECONDS, self._make_capacity, reading)
        try:
            async with asyncio.timeout(None) as reading.limit:
                got: Any = await context.read()
        except TimeoutError:
            if reading.refused:
                raise self._no_capacity() from None
            raise OverloadedError(
                f"the request did not arrive within {self._seconds:g} s, or {_HURRY_SECONDS:g} s "
                "while others wait; retry in a moment",
                limit=f"{self._seconds:g} s",
                limit_seconds=f"{self._seconds:g}",
            ) from None
        finally:
            timer.cancel()
            if reading.has_capacity:
                self._slow.discard(reading)
                self._free += self._most
            else:
                self._quick.release()
        if got is grpc.aio.EOF:
            await asyncio.sleep(CANCEL_SECONDS)
            raise RequestMalformedError(
                "the call ended without a request; send one message",
                type=request_type.DESCRIPTOR.full_name,
            )
        raw = bytes(got)
        if _SMALL < len(raw) > self._free:
            self.hurry()
            raise self._no_capacity()
        self._free -= len(raw)
        return raw

    def release(self, size: int) -> None:
        """Return the bytes of a request."""
        self._free += size

    def hurry(self) -> None:
        """Drop requests that have been arriving for over a second, since others are waiting."""
        now = asyncio.get_running_loop().time()
        for reading in self._slow:
            limit = reading.limit
            if limit is not None and not limit.expired():
                limit.reschedule(max(now, reading.began + _HURRY_SECONDS))

    def _make_capacity(self, reading: _Reading) -> None:
        assert reading.limit is not None
        if self.has_capacity:
            self._free -= self._most
            reading.has_capacity = True
            self._slow.add(reading)
            self._quick.release()
            reading.limit.reschedule(reading.began + self._seconds)
        else:
            reading.refused = True
            reading.limit.reschedule(0)
            self.hurry()

    def _no_capacity(self) -> OverloadedError:
        return OverloadedError(
            f"the server's {self._total:,} bytes for requests are in use; retry in a moment",
            limit=self._total,
        )
