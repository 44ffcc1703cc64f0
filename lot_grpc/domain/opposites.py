"""Words of opposite meaning, which an embedding hardly distinguishes.

"Enable dark mode" and "Disable dark mode" have a cosine of .96 but are different tasks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

from lot_grpc.data import read_lines, read_words

PARTICLES: Final = frozenset(("on", "off", "in", "out", "up", "down", "from", "to"))
"""So frequent that they count as opposites only in texts that otherwise differ little."""

_LONGEST_WORD: Final = 40
"""Characters of a word; longer ones are data and have no opposite."""

PAIRED: Final = (
    ("en", "de"), ("en", "dis"), ("in", "ex"), ("in", "de"), ("im", "ex"), ("in", "out"),
    ("up", "down"), ("over", "under"), ("pre", "post"), ("on", "off"), ("inter", "intra"),
)  # fmt: skip
"""Beginnings that make a word and its opposite: encode and decode, include and exclude."""

_NEGATING: Final = ("un", "dis", "de", "non", "in", "im", "ir", "il", "anti", "mis")
_COMPOUNDING: Final = frozenset((*_NEGATING[:4], *(one for pair in PAIRED for one in pair))) - {
    "in",
    "im",
    "on",
    "ex",
}
"""Beginnings that make an opposite with a hyphen too: "non-empty"."""

_SWAPS: Final = (
    *((beginning, "") for beginning in _NEGATING),
    *PAIRED,
    *((other, one) for one, other in PAIRED),
)

_LEAST_REST: Final = 4
"""Minimum number of letters after such a prefix; so "do" and "undo" must be in the list."""

_NOT_OPPOSED: Final = frozenset(read_words("seeming_opposites.txt"))
"""Words that only seem to have such a prefix."""


def _table() -> dict[str, frozenset[str]]:
    table: dict[str, set[str]] = {}
    for line in read_lines("opposites.txt"):
        one, other = (side.split() for side in line.split("|"))
        for word in one:
            table.setdefault(word, set()).update(other)
        for word in other:
            table.setdefault(word, set()).update(one)
    return {word: frozenset(opposite - {word}) for word, opposite in table.items()}


_TABLE: Final = _table()


def one_word(parts: Sequence[str]) -> str:
    """A compound as one word if its opposite is that of the whole ("read-only"); else ""."""
    whole = "".join(parts)
    known = whole in _TABLE or parts[0] in _COMPOUNDING
    return whole if len(parts) > 1 and known else ""


def opposites_among(words: Iterable[str]) -> dict[str, frozenset[str]]:
    """For each word, its opposites among the given words, if there are any."""
    words = frozenset(words)
    bases = frozenset().union(*map(_bases, words))
    having = [word for word in words if not _opposites_of(word).isdisjoint(bases)]
    if not having:
        return {}
    by_base: dict[str, set[str]] = {}
    for word in words:
        for base in _bases(word):
            by_base.setdefault(base, set()).add(word)
    found: dict[str, set[str]] = {}
    for word in having:
        for base in _opposites_of(word) & bases:
            for other in by_base[base]:
                found.setdefault(word, set()).add(other)
                found.setdefault(other, set()).add(word)
    return {word: frozenset(others) for word, others in found.items()}


@lru_cache(maxsize=8_192)
def _bases(word: str) -> frozenset[str]:
    """What a word may be without its ending, and the word itself: "disabling", "disable"."""
    found = {word}
    for ending, instead in (("s", ""), ("es", ""), ("ies", "y"), ("ied", "y"), ("d", ""),
                            ("ed", ""), ("ing", ""), ("ing", "e")):  # fmt: skip
        rest = word.removesuffix(ending)
        if rest != word and len(rest) > 2:
            found.add(rest + instead)
            if ending in ("ed", "ing") and rest[-1] == rest[-2]:
                found.add(rest[:-1])
    return frozenset(found)


@lru_cache(maxsize=8_192)
def _opposites_of(word: str) -> frozenset[str]:
    """The base forms of possible opposites of a word (the rules also give some non-words)."""
    if len(word) > _LONGEST_WORD:
        return frozenset()
    listed: set[str] = set()
    made: set[str] = set()
    for base in _bases(word):
        listed |= _TABLE.get(base, frozenset())
        if base in _NOT_OPPOSED:
            continue
        if len(base) >= _LEAST_REST:
            made.update(beginning + base for beginning in _NEGATING)
        for beginning, instead in _SWAPS:
            rest = base.removeprefix(beginning)
            if rest != base and len(rest) >= _LEAST_REST:
                made.add(instead + rest)
    return frozenset(listed | made - _NOT_OPPOSED)
