"""Estimates the number of tokens of a text.

The reader's tokenizer is unknown, and differs from the embedding model's. So tokens are estimated
from characters, on the high side: what fits by this estimate fits a reader's window. A run of ASCII
letters counts one for each three begun, one with digits two for each three, since ids and numbers
are in no vocabulary. Other visible ASCII characters count one each, and so does a line break. For
all else UTF-8 bytes count, two for each three begun: two for a Chinese character or a kana; a
Korean syllable, which some vocabularies split, counts three. Single spaces are free, as they are
part of the next word; a run of several counts one.

Counts of two texts that are joined at a line break add up.
"""

from __future__ import annotations

import re
from typing import Final

_SYLLABLE: Final = 3
_GAP: Final = "\0"
"""What was counted already, between words."""

_WORD: Final = re.compile("[A-Za-z0-9]+")
_RUN: Final = re.compile(r"[ \t\r\v\f]{2,}")
_SYLLABLES: Final = re.compile("[\uac00-\ud7a3]")
_OTHER: Final = re.compile("[^\x00-\x7f]+")


def token_count(text: str) -> int:
    """The estimate."""
    tokens = 0
    if not text.isascii():
        tokens += _SYLLABLE * len(_SYLLABLES.findall(text))
        text = _SYLLABLES.sub(_GAP, text)
        tokens += sum(_thirds(2 * len(run.encode())) for run in _OTHER.findall(text))
        text = _OTHER.sub(_GAP, text)
    marks = len(text) - sum(map(text.count, " \t\r\v\f" + _GAP))
    for word in _WORD.findall(text):
        length = len(word)
        marks -= length
        tokens += _thirds(length if word.isalpha() else 2 * length)
    return tokens + marks + len(_RUN.findall(text))


def _thirds(count: int) -> int:
    return (count + 2) // 3
