"""Base classes of all errors."""

from __future__ import annotations

from collections.abc import Mapping


class LotError(Exception):
    """A failure reported to the caller. ``metadata`` holds what varies in the message."""

    reason: str = "INTERNAL"

    def __init__(self, message: str, **metadata: object) -> None:
        super().__init__(message)
        self.message = message
        self.metadata: Mapping[str, str] = {key: str(value) for key, value in metadata.items()}


class StartupError(LotError):
    """The service refuses to serve; the sentence says what the operator should do."""

    reason = "STARTUP"
