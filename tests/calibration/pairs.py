"""Pairs of tasks, written by hand, of which is known whether they are the same.

Two tasks are the same where the same thing is to be done, so that what solved the one serves the
other: other names, places, numbers and values may stand in them. An opposite, a negation, the same
act on another kind of thing and another act on the same thing are other tasks.

``pairs.txt`` has them, what is looked for and what is stored on a line, under ``## KIND same`` or
``## KIND other``. The first of each kind are compared with themselves too: the same words are the
same task. Every other one takes part in the fit; the rest (``HELD``) is only measured.
"""

from __future__ import annotations

from collections.abc import Iterator
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


def _read() -> Iterator[TaskPair]:
    kind, word = "", ""
    for line in Path(__file__).with_name("pairs.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            kind, word = line.removeprefix("## ").split()
        else:
            query, stored = line.split(" | ")
            yield TaskPair(kind, query, stored, word == "same")


_WRITTEN: Final = tuple(_read())
_KINDS: Final = tuple(dict.fromkeys(one.kind for one in _WRITTEN))
PAIRS: Final = (
    *_WRITTEN,
    *(
        TaskPair("repeat", one.query, one.query, same=True)
        for kind in _KINDS
        for one in [one for one in _WRITTEN if one.kind == kind][:_REPEATED]
    ),
)
FITTED: Final = PAIRS[::2]
HELD: Final = PAIRS[1::2]
