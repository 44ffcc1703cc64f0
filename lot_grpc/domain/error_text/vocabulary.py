"""Generic words, which do not show which error it is.

``Process completed with exit code 1`` consists only of them, so it names no error: any failure ends
with such a line. The other words of a line show how specific it is.
"""

from __future__ import annotations

import re
from typing import Final

from lot_grpc.data import read_table
from lot_grpc.domain.error_text.words import RANK

_TABLE: Final = read_table("message_vocabulary.toml")

STOP: Final = frozenset(_TABLE["stop"].split())

GENERIC: Final = frozenset(_TABLE["generic"].split())

_VERBS: Final = frozenset(_TABLE["verbs"].split())
"""Words that follow the noun they describe; not names."""

_CODES: Final = re.compile(
    r"(?:code|status|exited with|signal)[ :=(]{0,3}-?(13[2-9]|14\d)\b"
    r"|(?:status(?: code)?|HTTP(?:/[\d.]+)?|code)[ :=(]{0,3}([45]\d\d)\b"
    r"|((?:[Ee]rrno|WinError|os error)[ :=]{0,3}\d\d+|SQLSTATE[ :=\[]{0,3}\w+)"
)
"""Numbers that name a cause: signals (POSIX: 128 + number), HTTP, errno."""

_STAND_IN: Final = re.compile(r"['\"`]?<\w+>['\"`]?")
_COUNT: Final = re.compile(r"\b\w+=<number>")
"""A field of a line of counts."""

_WORD: Final = re.compile(r"[^\W\d_]{2,}")
_JOINT: Final = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def telling_words(text: str) -> set[str]:
    """The words of a normalised text that show which error it is; empty for a generic one."""
    bare = _STAND_IN.sub(" ", _COUNT.sub(" ", text))
    words = {word.casefold() for word in _WORD.findall(_JOINT.sub(" ", bare))}
    telling = {word for word in words if word not in STOP and word not in GENERIC}
    return telling | {found[0] for found in _CODES.finditer(text)}


def says_nothing(word: str) -> bool:
    """Whether it is a generic word of messages and not a name."""
    word = word.casefold()
    return word in STOP or word in GENERIC or word in _VERBS


_PROSE: Final = 4
"""Minimum number of words of a quoted text that is a message, not a name."""


def is_prose(text: str) -> bool:
    """Whether a quoted text is a message, with words from the vocabulary of messages."""
    words = _WORD.findall(text)
    known = sum(word.casefold() in RANK for word in words)
    return (
        " " in text
        and len(words) >= _PROSE
        and known >= _PROSE - 1
        and 2 * known >= len(words)
        and len(telling_words(text)) > 1
    )


def is_known(word: str) -> bool:
    """Whether it is in the vocabulary of messages."""
    return word.casefold() in RANK or says_nothing(word)
