"""Counts of what was acknowledged, read from the journals as they grow."""

from __future__ import annotations

import json
from pathlib import Path

from tests.soak.journal import Entry

_ASKS = {
    "outcome": "outcomes",
    "save": "patterns",
    "memory": "memories",
    "event": "single events",
    "episode": "whole episodes",
}


class Tally:
    """Counts so far. ``counts`` is by what is told."""

    def __init__(self) -> None:
        self.counts = dict.fromkeys(
            ("events", "episodes", *_ASKS.values(), "recalls", "replays", "changes"), 0
        )
        self._read: dict[Path, int] = {}
        self._asks: dict[str, str] = {}
        self._acked: dict[str, int] = {}

    def read(self, folder: Path) -> None:
        """Take in what is new in the journals of a folder."""
        for path in folder.glob("*.journal"):
            with path.open("rb") as file:
                file.seek(self._read.get(path, 0))
                whole, newline, _torn = file.read().rpartition(b"\n")
            for line in whole.splitlines():
                self._count(json.loads(line))
            self._read[path] = self._read.get(path, 0) + len(whole) + len(newline)

    def _count(self, entry: Entry) -> None:
        kind = entry["kind"]
        if kind == "ask" and entry["what"] in _ASKS:
            self._asks[entry["id"]] = _ASKS[entry["what"]]
        elif kind == "ack" and (what := self._asks.pop(entry["id"], None)):
            self.counts[what] += 1
        elif kind == "acked":
            before = self._acked.get(entry["episode"], 0)
            self._acked[entry["episode"]] = max(before, entry["n"])
            self.counts["events"] += max(0, entry["n"] - before)
        elif kind == "ended":
            self.counts["episodes"] += 1
        elif kind == "recalled":
            self.counts["recalls"] += 1
        elif kind == "replayed":
            self.counts["replays"] += 1
        elif kind == "change":
            self.counts["changes"] += 1
