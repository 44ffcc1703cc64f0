"""Showing slow work: bars on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import threading
from types import TracebackType
from typing import Self

import structlog
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

_LINE_EVERY_PERCENT = 10


class ProgressDisplay:
    """A ``reports.Progress``. Draws nothing while there is no task, so other output stays whole.

    Bars go to stderr. Thread-safe.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tasks: dict[str, TaskID] = {}
        self._percents: dict[str, int] = {}
        self._bars: Progress | None = None
        self._terminal = sys.stderr.isatty()
        self._log = structlog.get_logger()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._lock:
            self._stop()

    def __call__(self, task: str, done: int, total: int) -> None:
        """Show that ``task`` has come to ``done`` of ``total`` (0 while unknown)."""
        with self._lock:
            if self._terminal:
                self._draw(task, done, total)
            else:
                self._write(task, done, total)

    def _draw(self, task: str, done: int, total: int) -> None:
        if total > 0 and done >= total:
            if task in self._tasks and self._bars:
                self._bars.remove_task(self._tasks.pop(task))
            if not self._tasks:
                self._stop()
            return
        if self._bars is None:
            self._bars = _bars()
            self._bars.start()
        if task not in self._tasks:
            self._tasks[task] = self._bars.add_task(task, total=None)
        self._bars.update(self._tasks[task], completed=done, total=total or None)

    def _write(self, task: str, done: int, total: int) -> None:
        percent = 100 * done // total if total > 0 else 0
        last = self._percents.get(task)
        if last is None or percent >= last + _LINE_EVERY_PERCENT or (percent >= 100 > last):
            self._percents[task] = percent
            self._log.info("working", what=task, percent=min(percent, 100))

    def _stop(self) -> None:
        if self._bars is not None:
            self._bars.stop()
        self._bars = None
        self._tasks.clear()


def _bars() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
