"""A client's journal: what it was about to do, and what was acknowledged, one line each.

A line is one write to the kernel, so it survives SIGKILL. A line that was torn all the same is cut
off when the journal is opened again: nothing was done after it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

Entry = dict[str, Any]


class Journal:
    """Opened by one process at a time; ``entries`` are those that earlier ones left."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        text = path.read_bytes()
        os.ftruncate(self._file, text.rfind(b"\n") + 1)
        self.entries = read(path)

    def write(self, kind: str, **fields: Any) -> None:
        """Note something; it is safe when this returns."""
        line = json.dumps({"kind": kind, **fields}).encode() + b"\n"
        if os.write(self._file, line) != len(line):
            raise OSError("the journal does not take a whole line")

    def bad(self, what: str) -> None:
        """Note what is wrong; the end of the run tells it."""
        self.write("bad", what=what)


def read(path: Path) -> list[Entry]:
    """All whole lines."""
    whole, _, _torn = path.read_bytes().rpartition(b"\n")
    return [json.loads(line) for line in whole.splitlines()]


def faults(entries: list[Entry]) -> list[str]:
    """What a client itself saw go wrong."""
    return [entry["what"] for entry in entries if entry["kind"] == "bad"]
