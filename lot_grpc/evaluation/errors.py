"""Errors in a set, or in a saved run."""

from __future__ import annotations

from pathlib import Path


class EvalDataError(Exception):
    """Data unusable for measuring. The message says where, what is wrong, and what to do."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


def wrong(path: Path, line: int, what: str) -> EvalDataError:
    """An error in a file; line 0 means the whole file."""
    return EvalDataError(f"{path}, line {line}: {what}" if line else f"{path}: {what}")
