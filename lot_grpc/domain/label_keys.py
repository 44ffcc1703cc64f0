"""Checks label keys outside the contract: in files and on the command line."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

MAX_BYTES: Final = 256

LABEL_KEY: Final = (
    f"1 to {MAX_BYTES} bytes of text without `=`, control characters, line breaks or bidirectional "
    "overrides, and without leading or trailing white space"
)
"""The rule for label keys, in words (``lot.v1.Memory.labels``)."""

_UNSEEN = re.compile("[=\u202a-\u202e\u2066-\u2069\ufeff\U000e0000-\U000e007f]")


def is_label_key(text: str) -> bool:
    """Whether a text is a valid label key."""
    kinds = [unicodedata.category(one) for one in text]
    return (
        0 < len(text.encode()) <= MAX_BYTES
        and not _UNSEEN.search(text)
        and not {"Cc", "Zl", "Zp"}.intersection(kinds)
        and not {kinds[0][0], kinds[-1][0]}.intersection("Z")
    )
