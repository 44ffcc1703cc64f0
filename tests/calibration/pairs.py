"""Pairs of tasks, written by hand, of which is known whether they are the same.

Two tasks are the same where the same thing is to be done, so that what solved the one serves the
other: other names, places, numbers and values may stand in them. An opposite, a negation, the same
act on another kind of thing and another act on the same thing are other tasks.

``pairs.txt`` has them, what is looked for and what is stored on a line, under ``## KIND same`` or
``## KIND other``. The first of each kind are compared with themselves too: the same words are the
same task. Every other one takes part in the fit; the rest (``HELD``) is only measured, but was
known to those who chose the features. ``unseen.txt`` has others of the same form, written before
anything of them was measured: neither features nor weights may be chosen by them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

_REPEATED: Final = 6
"""Of each kind so many."""


@dataclass(frozen=True)
class TaskPair:
    """What is looked for, what is stored, and whether it is the same task."""

    kind: str
    query: str
    stored: str
    same: bool


def _read(name: str) -> list[TaskPair]:
    """The pairs of a file, and the first of each kind with themselves."""
    kind, word = "", ""
    written: dict[str, list[TaskPair]] = {}
    for line in Path(__file__).with_name(name).read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            kind, word = line.removeprefix("## ").split()
        else:
            query, stored = line.split(" | ")
            written.setdefault(kind, []).append(TaskPair(kind, query, stored, word == "same"))
    return [one for pairs in written.values() for one in pairs] + [
        TaskPair("repeat", one.query, one.query, same=True)
        for pairs in written.values()
        for one in pairs[:_REPEATED]
    ]


_PAIRS: Final = _read("pairs.txt")
FITTED: Final = _PAIRS[::2]
HELD: Final = _PAIRS[1::2]
UNSEEN: Final = _read("unseen.txt")
