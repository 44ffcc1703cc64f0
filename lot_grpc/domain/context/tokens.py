"""How many tokens a text takes, estimated.

The reader's tokenizer is not known, and the embedding model's is another. So tokens are counted by
characters, on the high side: what fits by this estimate fits a reader's window. A run of ASCII
letters counts one for each three begun, one that has digits as well two for each three, since ids
and numbers are in no vocabulary. Other visible ASCII characters count one each, and so does a line
break. Of all else the bytes of UTF-8 count, two for each three begun: two for a Chinese character
or a kana; a Korean syllable, which some vocabularies take apart, counts three. Single spaces are
free, as they are part of the next word; a run of several counts one.

Counts of two texts that are joined at a line break add up.
"""

from __future__ import annotations

import re
from typing import Final

_SYLLABLE: Final = 3
_PIECE: Final = re.compile(
    r"(?P<letters>[A-Za-z]+(?![A-Za-z0-9]))|(?P<digits>[A-Za-z0-9]+)"
    r"|(?P<syllables>[\uac00-\ud7a3]+)|(?P<other>[^\x00-\x7f\uac00-\ud7a3]+)"
    r"|(?P<mark>[^\sA-Za-z0-9]|\n)|(?P<run>[^\S\n]{2,})",
    re.ASCII,
)


def token_count(text: str) -> int:
    """The estimate."""
    return sum(_count(found) for found in _PIECE.finditer(text))


def _count(found: re.Match[str]) -> int:
    kind, piece = found.lastgroup, found[0]
    if kind == "letters":
        return -(-len(piece) // 3)
    if kind == "digits":
        return -(-2 * len(piece) // 3)
    if kind == "syllables":
        return _SYLLABLE * len(piece)
    if kind == "other":
        return -(-2 * len(piece.encode()) // 3)
    return 1
