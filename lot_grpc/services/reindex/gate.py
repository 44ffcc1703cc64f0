"""Keeps calls that work with vectors apart from the switch to another model.

A call embeds first and searches or writes later; if the model were switched in between, vectors of
two models would meet. So calls share the gate, and the switch waits until none is running and
blocks new ones while it lasts.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

_BRIEF_SECONDS = 0.25
"""A call that has run longer may run much longer, so at first the gate stays open behind it."""

_PATIENCE = 4
"""After waiting this many times a call's duration, the gate closes behind it; otherwise overlapping
calls would keep it open forever."""

_LOOK_SECONDS = 0.05


class ModelGate:
    """A shared/exclusive lock. Not reentrant within a task."""

    def __init__(self) -> None:
        self._since: dict[object, float] = {}
        self._open = asyncio.Event()
        self._open.set()
        self._empty = asyncio.Event()

    @property
    def in_use(self) -> bool:
        """Whether any call or periodic task is inside."""
        return bool(self._since)

    @asynccontextmanager
    async def together(self) -> AsyncIterator[None]:
        """Enter shared; waits while another holds it exclusively."""
        while not self._open.is_set():
            await self._open.wait()
        ticket = object()
        self._since[ticket] = time.monotonic()
        try:
            yield
        finally:
            del self._since[ticket]
            if not self._since:
                self._empty.set()

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Enter exclusively. Waits for long calls to end before blocking others."""
        await self._close()
        try:
            yield
        finally:
            self._open.set()

    async def _close(self) -> None:
        began = time.monotonic()
        brief = _BRIEF_SECONDS
        while not await self._closed_behind_calls(brief):
            await asyncio.sleep(_LOOK_SECONDS)
            brief = max(_BRIEF_SECONDS, (time.monotonic() - began) / _PATIENCE)

    async def _closed_behind_calls(self, brief: float) -> bool:
        """Close the gate, unless a call that is under way lasts longer: then it stays open."""
        if self._since and time.monotonic() - min(self._since.values()) > brief:
            return False
        self._open.clear()
        self._empty.clear()
        try:
            async with asyncio.timeout(brief):
                if self._since:
                    await self._empty.wait()
        except BaseException as error:
            self._open.set()
            if isinstance(error, TimeoutError):
                return False
            raise
        return True
