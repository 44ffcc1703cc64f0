"""Memory of a process and of its children, many times a second."""

from __future__ import annotations

import re
import threading
from contextlib import suppress
from pathlib import Path
from typing import Self

_ANONYMOUS = re.compile(rb"^RssAnon:\s+(\d+) kB", re.MULTILINE)
_PAUSE = 0.01


def _children(pid: int) -> list[int]:
    """Those of a process, and theirs. Few are made, and to look for them takes time."""
    found: list[int] = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):
                found += map(int, (task / "children").read_text().split())
    return found + [below for child in found for below in _children(child)]


def _anonymous(pid: int) -> int:
    """Bytes that a process has in memory, without files that it maps; 0 where there is no /proc."""
    try:
        match = _ANONYMOUS.search(Path(f"/proc/{pid}/status").read_bytes())
    except OSError:
        return 0
    return int(match[1]) * 1024 if match else 0


class Memory:
    """Watches a process in a thread of its own.

    Attributes:
        most: the most that was seen.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._pids: list[int] = []
        self._looks = 0
        self.most = self._lap = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._look()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def start(self) -> int:
        """Bytes now; the most from here on is what ``most_since`` gives."""
        self._lap = 0
        return self._look()

    def most_since(self) -> int:
        self._look()
        return self._lap

    def _look(self) -> int:
        if self._looks % 30 == 0:
            self._pids = [self._pid, *_children(self._pid)]
        self._looks += 1
        now = sum(map(_anonymous, self._pids))
        self._lap = max(self._lap, now)
        self.most = max(self.most, now)
        return now

    def _watch(self) -> None:
        while not self._over.wait(_PAUSE):
            self._look()
