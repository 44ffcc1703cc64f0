"""Splits text into terms, for prose, code and error messages alike.

A word gives its stem. A compound (``snake_case``, ``camelCase``, ``kebab-case``, ``E0308``) gives
the stems of its parts and of the whole written as one word, so that each form finds the others. A
path, a dotted or ``::`` name, a version or a URL gives its parts and itself. Scripts without spaces
between words (Han, kana, Hangul, Thai, Lao, Khmer, Burmese) give single characters and pairs of
neighbours. Latin accents are folded, Arabic and Hebrew vowel signs are dropped.

Any change to the output needs a new ``TERMS``: stored terms must then be regenerated.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Final

from py_rust_stemmers import SnowballStemmer

from lot_grpc.domain.text_form import word_form

TERMS: Final = "lot-terms-2"
"""Name and version of these rules."""

_UNSPACED = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f\u1780-\u17ff"  # Burmese, Khmer
    "\u1100-\u11ff\uac00-\ud7af"  # Hangul
    "\u3005\u3040-\u30ff\u31f0-\u31ff"  # kana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
)
_LETTER = rf"(?:(?![{_UNSPACED}])[\w\u0900-\u0963\u0966-\u0dff])"
"""Including the vowel signs of Indic scripts, which are marks, not letters."""
_TOKEN: Final = re.compile(
    rf"(?P<unspaced>[{_UNSPACED}]+)"
    r"|(?P<named>(?<!\w)[A-Za-z](?:\+\+|#)(?!\w))"  # C++, C#
    rf"|(?P<word>{_LETTER}+(?:['\u2019]{_LETTER}+)*)"
    r"|(?P<symbol>[\u2190-\u21ff\u2300-\u23ff\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff])"
)
# Without the look-behind, or with a backtracking quantifier, a word of 65,536 letters would be read
# again from each of them: a minute.
_COMPOUND: Final = re.compile(r"(?<!\w)\w++(?:(?:::|[-./\\@#:])\w++)++")
_PART: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_JOINT: Final = re.compile("[-_]")
_LATIN: Final = re.compile("[\u00c0-\u024f\u1e00-\u1eff]")
_UNREAD: Final = re.compile(
    "[\u0300-\u036f"  # combining accents
    "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"  # Hebrew points
    "\u0610-\u061a\u0640\u064b-\u065f\u0670]"  # Arabic vowel signs and tatweel
)
"""Marks within words that are often omitted in writing."""

FUNCTION_WORDS: Final = frozenset(
    (  # noqa: SIM905 - read as words
        "a about am an and any are as at be because been being but by can could did do does doing "
        "don dont for from had has have having he her here him his how i if in into is isn isnt it "
        "its itself just let may me might more most must my no nor not now of off on once only or "
        "other our out over own please she should so some such than that the their them then there "
        "these they this those through to too under until up upon us very was we were what when "
        "where which while who whom whose why will with would you your"
    ).split()
)
"""English function words, which name nothing."""

_WORDS_KEPT = 65_536
_PIECE = 4_096
"""Characters that are read at once. This takes about 1 ms, during which the GIL is held."""
_CUT: Final = re.compile(r"\s(?=\w)")
"""Where a text may be cut: no term spans it, and the normal forms of both sides stay the same."""
_LONGEST_WORD = 128
"""Characters of a word that count; a longer one is a blob, distinguished by its beginning."""


@dataclass(slots=True)
class Terms:
    """The terms of a text with their counts, and its number of words, without compounds."""

    counts: dict[str, int] = field(default_factory=dict)
    length: int = 0

    def add(self, term: str) -> None:
        """Count a term."""
        self.counts[term] = self.counts.get(term, 0) + 1


def terms_of(text: str, pause: Callable[[], object] = lambda: None) -> Terms:
    """The terms of a text. ``pause`` is called after each piece of it."""
    found = Terms()
    for piece in _pieces(text):
        _add_terms(found, piece)
        pause()
    return found


def _pieces(text: str) -> Iterator[str]:
    start = 0
    while len(text) - start > _PIECE and (cut := _CUT.search(text, start + _PIECE)):
        yield text[start : cut.end()]
        start = cut.end()
    yield text[start:]


def _add_terms(found: Terms, text: str) -> None:
    text = _UNREAD.sub("", word_form(text))
    for token in _TOKEN.finditer(text):
        kind, word = token.lastgroup, token.group()
        if kind == "unspaced":
            _add_unspaced(found, word)
        elif kind == "word":
            parts, together = _split(word[:_LONGEST_WORD])
            for part in parts:
                found.add(part)
            found.length += len(parts)
            if together:
                found.add(together)
        else:
            found.add(word.lower())
            found.length += 1
    for compound in _COMPOUND.findall(text):
        found.add(_whole(compound[:_LONGEST_WORD]))


def parts_of(word: str) -> tuple[str, ...]:
    """The parts of a word, in lower case; none if it has neither letters nor digits."""
    word = _plain(word[:_LONGEST_WORD])
    parts = _PART.findall(word) if word.isascii() else _JOINT.split(word)
    return tuple(part.lower() for part in parts if part)


def _add_unspaced(found: Terms, run: str) -> None:
    for first, second in pairwise(run):
        found.add(first + second)
    for character in run:
        found.add(character)
    found.length += len(run)


@lru_cache(maxsize=_WORDS_KEPT)
def _split(word: str) -> tuple[tuple[str, ...], str]:
    """Stems of a word's parts, and the word as one if it has more than one part."""
    parts = parts_of(word)
    together = stem_of("".join(parts)) if len(parts) > 1 else ""
    return tuple(map(stem_of, parts)), together


@lru_cache(maxsize=_WORDS_KEPT)
def _whole(compound: str) -> str:
    """A compound as one term. With hyphens it is a word: ``utf-8`` is ``utf8``."""
    compound = _plain(compound).lower()
    if not _is_hyphenated(compound):
        return compound
    return stem_of(compound.replace("-", "").replace("_", ""))


def _is_hyphenated(compound: str) -> bool:
    return not any(separator in compound for separator in "./\\@#:")


def _plain(word: str) -> str:
    """The word without Latin accents, apostrophes and English possessive; \u0451 is \u0435."""
    word = word.replace("\u2019", "'")
    if word.endswith(("'s", "'S")):
        word = word[:-2]
    word = word.replace("'", "")
    if word.isascii():
        return word
    word = word.replace("\u0451", "\u0435").replace("\u0401", "\u0415")
    return _LATIN.sub(lambda match: unicodedata.normalize("NFD", match.group())[0], word)


_ENGLISH = SnowballStemmer("english")
_RUSSIAN = SnowballStemmer("russian")
_ARABIC = SnowballStemmer("arabic")


def stem_of(word: str) -> str:
    """The stem by the rules of the script's most common language; words with digits stay."""
    if not word.isalpha():
        return word
    if word.isascii():
        return str(_ENGLISH.stem_word(word))
    if "\u0400" <= word[0] <= "\u04ff":
        return str(_RUSSIAN.stem_word(word))
    if "\u0600" <= word[0] <= "\u06ff":
        return str(_ARABIC.stem_word(word))
    return word


FUNCTION_TERMS: Final = frozenset(stem_of(word) for word in FUNCTION_WORDS)
"""The function words as terms."""
