"""What all errors have in common."""

from __future__ import annotations

from collections.abc import Mapping


class LotError(Exception):
    """A failure that the caller is told about. ``metadata`` holds whatever varies in the text."""

    reason: str = "INTERNAL"

    def __init__(self, message: str, **metadata: object) -> None:
        super().__init__(message)
        self.message = message
        self.metadata: Mapping[str, str] = {key: str(value) for key, value in metadata.items()}


class StartupError(LotError):
    """The service refuses to serve; the sentence says what the operator should do."""

    reason = "STARTUP"
