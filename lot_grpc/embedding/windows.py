"""Windows: how a text longer than the model's input is read in full.

Windows are contiguous, each as long as the model's input, cut at the beginning of a token, and of a
word if one begins nearby. Each window is embedded separately, a query's with the query prefix. The
text's vector is the weighted mean of theirs, scaled to length 1: the n-th window has weight 1/n,
times its length. So the beginning, which usually says what a text is about, dominates, and the
vector does not jump when a text grows past one window. Of a text that needs more than
``MOST_WINDOWS`` the rest is not read, and only then it counts as truncated.

Measured on 455 abstracts of more than 512 tokens (dense leg, nDCG@10 of the whole set): cut off
.7095, weighted like this .708, equal windows with equal weight .703.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

MOST_WINDOWS = 8
"""Windows read of a text: 4,080 tokens of a document with the default model, some 3,000 words."""

_NEAR = 8
"""A cut moves to the start of a word by at most this share of a window."""


class Windows(NamedTuple):
    """The windows of a text, in order, and whether there is more text after them."""

    texts: tuple[str, ...]
    truncated: bool


def split_text(text: str, starts: Sequence[int], room: int, fits: Callable[[str], bool]) -> Windows:
    """Split a text of more than ``room`` tokens.

    Args:
        text: The text.
        starts: Where each token begins in it, ascending.
        room: Tokens of a window, at least 1.
        fits: Whether the model reads all of a window. Half a word may take more tokens by itself
            than it took in the text; then the window ends earlier.
    """
    windows: list[str] = []
    begin = 0
    while begin < len(starts) and len(windows) < MOST_WINDOWS:
        end = min(begin + room, len(starts))
        if end < len(starts):
            end = _word_before(text, starts, end, max(begin + 1, end - room // _NEAR))
        while end > begin + 1 and not fits(_between(text, starts, begin, end)):
            end -= 1
        windows.append(_between(text, starts, begin, end))
        begin = end
    return Windows(tuple(window for window in windows if window), begin < len(starts))


def split_bytes(text: str, count: int) -> tuple[str, ...]:
    """``count`` windows of about equally many UTF-8 bytes, for when tokens are unknown."""
    raw, places = text.encode(), [0]
    for number in range(1, count):
        even = number * len(raw) // count
        while raw[even] & 0xC0 == 0x80:
            even -= 1  # in the middle of a character
        near = len(raw) // count // _NEAR
        places.append(raw.rfind(b" ", max(0, even - near), even) + 1 or even)
    pairs = itertools.pairwise([*places, len(raw)])
    return tuple(raw[start:end].decode() for start, end in pairs if start < end)


def mean_vector(
    vectors: Sequence[NDArray[np.float32]], windows: Sequence[str]
) -> NDArray[np.float32]:
    """The weighted mean of the windows' unit vectors, as a unit vector.

    If they cancel out, the first one.
    """
    if len(vectors) == 1:
        return vectors[0]
    longest = max(map(len, windows))
    weights = [len(window) / longest / place for place, window in enumerate(windows, 1)]
    total = np.asarray(weights) @ np.asarray(vectors, dtype=np.float64)
    length = float(np.linalg.norm(total))
    return np.asarray(total / length if length else vectors[0], dtype=np.float32)


def _between(text: str, starts: Sequence[int], begin: int, end: int) -> str:
    first = starts[begin] if begin else 0
    return text[first : starts[end] if end < len(starts) else len(text)]


def _word_before(text: str, starts: Sequence[int], end: int, lowest: int) -> int:
    """The last token up to ``end`` that begins a word, or ``end`` itself."""
    for token in range(end, lowest - 1, -1):
        if _begins_word(text, starts[token]):
            return token
    return end


def _begins_word(text: str, place: int) -> bool:
    # Some tokenizers count the space before a word as its beginning.
    return text[place - 1 : place].isspace() or text[place : place + 1].isspace()
