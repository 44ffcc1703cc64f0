"""Stored texts made safe for a terminal: control sequences are shown, not obeyed."""

from __future__ import annotations

import unicodedata

from google.protobuf.json_format import MessageToDict
from google.protobuf.struct_pb2 import Struct, Value

from lot_grpc.domain.json_values import json_text

_STEERING = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode categories that print nothing but move, hide or reorder what is printed."""

_JOINERS = "\u200c\u200d"
"""Also in category Cf, but harmless, and needed by some scripts and emoji."""

_BYTES = 0x100
_TAB = 4
"""Columns from one tab stop to the next."""


def clean(text: str) -> str:
    r"""The text with each control character escaped, as ``\x1b`` or ``\u202e``."""
    if text.isprintable():
        return text
    return "".join(map(_shown, text))


def one_line(text: str, most: int = 1000) -> str:
    """The first ``most`` characters cleaned, each run of white space as one space."""
    return clean(" ".join(text[:most].split()))


def clean_lines(text: str) -> str:
    """The text with its line breaks, tabs as spaces, and everything else cleaned."""
    return "\n".join(clean(line.expandtabs(_TAB)) for line in text.split("\n"))


def _shown(character: str) -> str:
    if character in _JOINERS or unicodedata.category(character) not in _STEERING:
        return character
    code = ord(character)
    if code < _BYTES:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def data_text(data: Struct | Value, indent: int | None = None) -> str:
    """Free-form data as readable JSON: whole numbers without a point, letters unescaped.

    Not cleaned.
    """
    return json_text(MessageToDict(data), indent=indent, compact=True)
