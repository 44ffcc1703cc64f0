"""The forms in which texts are compared, and whether a text is blank.

Unicode writes ``é`` as one character or as two, and systems differ in which they send. Compared is
NFC; stored and given back is what was sent. Words are compared in NFKC, in which full-width letters
and ligatures are plain letters, and without invisible marks such as soft hyphens.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Final, Literal

_BREAKS: Final = dict.fromkeys((0x00AD, 0x200B, 0x2060, 0xFEFF))
"""Soft hyphen, zero-width space, word joiner, byte order mark."""

_WITHIN_WORDS: Final = {
    **_BREAKS,
    **dict.fromkeys(
        (0x061C, *range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0xFE00, 0xFE10))
    ),
    **dict.fromkeys((0x2010, 0x2011), "-"),
}
"""Also joiners, direction marks and variation selectors; typographic hyphens become plain ones."""

_PIECE = 1024
"""Characters that are read at once, since no other thread runs meanwhile: putting a run of marks in
order takes the square of its length, and one character may become eighteen. A run of more than half
a piece is cut."""


def normal_form(text: str) -> str:
    """The text in NFC."""
    return text if text.isascii() else _normalized("NFC", text)


def word_form(text: str) -> str:
    """The text as its words are compared."""
    return text if text.isascii() else _normalized("NFKC", text, _WITHIN_WORDS)


def without_breaks(text: str) -> str:
    """The normal form without the invisible marks of where a word may break."""
    return text if text.isascii() else _normalized("NFC", text, _BREAKS)


def _normalized(
    form: Literal["NFC", "NFKC"], text: str, without: Mapping[int, str | None] | None = None
) -> str:
    pieces, start = [], 0
    while start < len(text):
        end = start + _PIECE
        while start + _PIECE // 2 < end < len(text) and _joins(text[end]):
            end -= 1
        piece = unicodedata.normalize(form, text[start:end])
        pieces.append(piece.translate(without) if without else piece)
        start = end
    return "".join(pieces)


def folded(text: str) -> str:
    """The normal form without differences of letter case and white space."""
    return " ".join(normal_form(normal_form(text).casefold()).split())


def visible(text: str) -> str:
    """The text, or "" if it is blank: only white space, controls and zero-width characters.

    The rules of the contract that refuse a blank text use the same definition.
    """
    kinds = map(unicodedata.category, text)
    return text if any(kind[0] != "Z" and kind not in {"Cc", "Cf"} for kind in kinds) else ""


def _joins(character: str) -> bool:
    """Whether it may become one with what stands before it: a mark, a vowel or final of Hangul."""
    if character.isascii():
        return False
    return "\u1160" <= character <= "\u11ff" or unicodedata.category(character)[0] == "M"
