"""The text of an error by which a repeated report is recognised.

Names, amounts and codes are kept: two errors that differ in one of them are distinct.
"""

from __future__ import annotations

import re
from typing import Final

from lot_grpc.domain.error_text.dress import undressed
from lot_grpc.domain.text_form import normal_form

_PASSING: Final = re.compile(
    r"0x[0-9a-fA-F]+"
    r"|\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b"
    r"|\b(?=[a-f]{0,63}\d)(?=\d{0,63}[a-f])[0-9a-f]{7,64}\b"
    r"|\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?)?"
    r"|(?<=[\w)]):\d+(?::\d+)?\b|\bline \d+|\(\d+,\d+\)|\[\d{1,7}(?:,\d+)?\]"
    r"|\b\d+(?:\.\d+)? ?(?:ms|s|secs?|seconds?|minutes?)\b"
)
"""Addresses, ids, times, positions in a file, durations."""


def distinct_text(message: str) -> str:
    """A message without what surrounds it in logs, and without what varies between runs."""
    lines = (" ".join(line.split()) for line in undressed(normal_form(message)))
    return _PASSING.sub("*", "\n".join(line for line in lines if line))
