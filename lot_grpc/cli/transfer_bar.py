"""How far an export or an import is: a bar on a terminal, nothing elsewhere."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn


class TransferBar:
    """A bar on stderr, with what was counted beside it."""

    def __init__(self, what: str, total: int) -> None:
        """``total`` in whatever unit ``show`` is told, 0 while unknown."""
        self._bars: Progress | None = None
        if sys.stderr.isatty():
            self._bars = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.percentage:>3.0f} %  {task.fields[counts]}"),
                TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._task = self._bars.add_task(what, total=total or None, counts="")

    def __enter__(self) -> Self:
        if self._bars is not None:
            self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bars is not None:
            self._bars.stop()

    def show(self, done: int, counts: str) -> None:
        """How far it has come, and what to say of it."""
        if self._bars is not None:
            self._bars.update(self._task, completed=done, counts=counts)
