"""Whether a text that stands where a secret would stand looks like one."""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final

_PIECES = re.compile(r"[^A-Za-z0-9]+")
_WORD = re.compile(r"[A-Za-z]+[0-9]{0,3}|[0-9]+")
_RUN = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_SYMBOL = re.compile(r"[!@#$%^&*?~+=]")
_EXPRESSION = re.compile(r"[$%{<~/.]|[A-Za-z][A-Za-z0-9+.-]*://")
"""How a reference to a secret begins: a variable, a template, a path, a URL."""

_HEXADECIMAL = re.compile(r"[0-9a-f]+|[0-9A-F]+")

_SHORTEST_KEY = 16

_LONGEST_MEAN_RUN, _SHORT_MEAN_RUN = 3.4, 2.5
"""Characters of one class (capitalized word, capitals, digits) in a row. Random text in 62
characters changes class every two, base 32 every three; words do not. Without digits, words of two
or three letters must be told apart, too."""


def entropy(text: str) -> float:
    """Shannon entropy in bits a character; 0 for an empty text."""
    counts = Counter(text).values()
    total = len(text)
    return -sum(count / total * math.log2(count / total) for count in counts)


def is_random(text: str) -> bool:
    """Whether it is drawn at random, as keys are, and not made of words."""
    if len(text) < _SHORTEST_KEY or _EXPRESSION.match(text):
        return False
    if _has_both(text):
        return _HEXADECIMAL.fullmatch(text) is not None or (
            not _is_wordy(text) and _mean_run(text) <= _LONGEST_MEAN_RUN
        )
    return _mean_run(text) <= _SHORT_MEAN_RUN


def is_password(text: str) -> bool:
    """Whether it mixes letters with digits or symbols, and is no expression or phrase of words."""
    if _EXPRESSION.match(text):
        return False
    if _SYMBOL.search(text):
        return any(character.isalnum() for character in text)
    if _has_both(text):
        return not (_PIECES.search(text) and _is_wordy(text))
    return len(text) >= _SHORTEST_KEY and _mean_run(text) <= _SHORT_MEAN_RUN


def is_jwt(text: str) -> bool:
    """Whether its header is that of a JSON web token."""
    head = text.partition(".")[0]
    try:
        header = json.loads(base64.urlsafe_b64decode(head + "=" * (-len(head) % 4)))
    except (ValueError, binascii.Error, RecursionError):
        return False
    return isinstance(header, dict) and ("alg" in header or "enc" in header)


def is_basic(text: str) -> bool:
    """Whether it is the base 64 of ``user:password``."""
    try:
        plain = base64.b64decode(text + "=" * (-len(text) % 4), validate=True).decode()
    except (ValueError, binascii.Error):
        return False
    return ":" in plain[1:] and plain.isprintable()


CHECKS: Final[Mapping[str, Callable[[str], bool]]] = {
    "random": is_random,
    "password": is_password,
    "jwt": is_jwt,
    "basic": is_basic,
}
"""The checks that a rule can name."""


def _mean_run(text: str) -> float:
    """Mean length of the runs of one class; the length if there are none."""
    return len(text) / max(1, len(_RUN.findall(text)))


def _has_both(text: str) -> bool:
    return any(map(str.isdigit, text)) and any(map(str.isalpha, text))


def _is_wordy(text: str) -> bool:
    """Whether each piece between symbols is a word, a number, or a word with a few digits."""
    return _mean_run(text) > _SHORT_MEAN_RUN and all(
        _WORD.fullmatch(piece) for piece in _PIECES.split(text) if piece
    )
