"""Extracts the error that a task names."""

from __future__ import annotations

import re
from typing import Final

from lot_grpc.domain.error_text.headline import looks_like_error

_MOST: Final = 65_536
_BEGINS: Final = re.compile(
    r"(?<![\w.$/])(?:[A-Za-z_]\w{0,80}\.){0,8}"
    r"(?:[A-Za-z_]\w{0,80}(?:Error|Exception|Warning|Fault)|Error|Exception)(?:: ?\S|$)"
    r"|(?<!\w)error(?:\[[A-Z]\w{1,12}\]| [A-Z]{1,6}\d{2,6}): \S"
    r"|^Traceback \(most recent call last\):|^Exception in thread \"",
    re.MULTILINE,
)
"""Where an error begins, as ``Type: message``, a compiler's code or a trace."""


def named_error(task: str) -> str:
    """The error, "" if the task names none.

    "Fix the build: error[E0382]: use of moved value" names what follows "build: ". If no beginning
    is found it is the whole task; an error in backticks ends with them.
    """
    if not looks_like_error(task):
        return ""
    found = _BEGINS.search(task[:_MOST])
    if found is None:
        return task
    error = task[found.start() :]
    return error.partition("`")[0] if task[: found.start()].endswith("`") else error
