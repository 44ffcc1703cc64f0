"""What is wrong with a set, or with a saved run."""

from __future__ import annotations

from pathlib import Path


class EvalDataError(Exception):
    """Data that cannot be measured with. The message says where, what, and what to do."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


def wrong(path: Path, line: int, what: str) -> EvalDataError:
    """Something wrong in a file; line 0 is the file as a whole."""
    return EvalDataError(f"{path}, line {line}: {what}" if line else f"{path}: {what}")
