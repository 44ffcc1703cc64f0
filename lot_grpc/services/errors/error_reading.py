"""Parses long errors outside the event loop."""

from __future__ import annotations

import asyncio
from typing import Final

from lot_grpc.domain.error_text.signature import ErrorRead, read_error

_LONG: Final = 1_024
"""Messages of at least this many characters are parsed in a thread."""


async def read_aside(error_type: str, message: str) -> ErrorRead:
    """``read_error``, in a thread if the message is long. The result is cached for later calls."""
    if len(message) <= _LONG:
        return read_error(error_type, message)
    return await asyncio.to_thread(read_error, error_type, message)
