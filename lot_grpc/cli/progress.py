"""Progress of slow work: bars on a terminal, occasional log lines elsewhere."""

from __future__ import annotations

import sys
import threading
from typing import Self

import structlog
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

_LINE_EVERY_PERCENT = 10


def progress_bars() -> Progress:
    """Bars on stderr, or nothing if that is not a terminal. A task has a remark next to its bar."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %  {task.fields[remark]}"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    )


class ProgressDisplay:
    """A ``reports.Progress``. Draws nothing without a task, so that other output stays intact.

    If stderr is not a terminal, it logs a line now and then. Thread-safe.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._bars = progress_bars()
        self._tasks: dict[str, TaskID] = {}
        self._percents: dict[str, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._bars.stop()

    def __call__(self, task: str, done: int, total: int) -> None:
        """Show that ``task`` has reached ``done`` of ``total`` (0 while unknown)."""
        with self._lock:
            if self._bars.disable:
                self._log(task, done, total)
            else:
                self._draw(task, done, total)

    def _draw(self, task: str, done: int, total: int) -> None:
        finished = 0 < total <= done
        if task not in self._tasks and not finished:
            if not self._tasks:
                self._bars.start()
            self._tasks[task] = self._bars.add_task(task, total=None, remark="")
        if task not in self._tasks:
            return
        self._bars.update(self._tasks[task], completed=done, total=total or None)
        if finished:
            self._bars.remove_task(self._tasks.pop(task))
            if not self._tasks:
                self._bars.stop()

    def _log(self, task: str, done: int, total: int) -> None:
        percent = 100 * done // total if total > 0 else 0
        last = self._percents.get(task)
        if last is None or percent >= last + _LINE_EVERY_PERCENT or (percent >= 100 > last):
            self._percents[task] = percent
            structlog.get_logger().info("working", what=task, percent=min(percent, 100))
