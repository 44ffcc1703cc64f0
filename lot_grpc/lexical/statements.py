"""Short statements read as words in order, for a comparison of what they say.

``data/conflicts.toml`` has the words.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from lot_grpc.data import read_table
from lot_grpc.domain.text_form import word_form
from lot_grpc.lexical.terms import stem_of

_MOST_STATEMENTS: Final = 4
_MOST_WORDS: Final = 40
"""A text of more or longer statements says too much for a comparison by words."""

_TABLE: Final[dict[str, Any]] = read_table("conflicts.toml")


def words(name: str) -> frozenset[str]:
    """The words of a list in the file."""
    return frozenset(_TABLE[name].split())


def stems(name: str) -> frozenset[str]:
    """Their stems."""
    return frozenset(map(stem_of, words(name)))


WEAK, _NEGATIONS, _UNNAMED = words("weak"), words("negations"), words("unnamed")
COPULAS, PREPOSITIONS = words("copulas"), words("prepositions")
_VERBS: Final = stems("verbs") | stems("relations") | stems("functional") | stems("several")
_SYNONYMS: Final[dict[str, str]] = _TABLE["synonyms"]
_GROUPS: Final = {
    word: (name, value.split("/")[0])
    for name, values in _TABLE["exclusive"].items()
    for value in values.split()
    for word in value.split("/")
}
UNITS: Final = {
    form: (measure, size)
    for measure, units in _TABLE["units"].items()
    for unit, size in units.items()
    for form in (unit, f"{unit}s")
}
_NUMBERS: Final = {word: str(n) for n, word in enumerate(_TABLE["numbers"].split())}

_END: Final = re.compile(r"[.!?;]+(?:\s+|$)|\n+")
_CLOCK: Final = re.compile(
    r"\b(\d{1,2})(?:[:.](\d\d))?\s*([ap])\.?m\b\.?|\b(\d{1,2}):(\d\d)\b", re.IGNORECASE
)
_UNIT: Final = "seconds?|minutes?|hours?|days?|weeks?|months?|years?"
_PLAIN: Final = {
    re.compile(form, re.IGNORECASE): plain
    for form, plain in (
        (r"\bno longer\b|\bno more\b", "not"),
        (r"\bnoon\b", "12:00"),
        (r"\bmidnight\b", "00:00"),
        (r"\bhalf an hour\b", "30 minutes"),
        (rf"\b(for|in|after|within|lasts?|takes?|is|every) an? ({_UNIT})\b", r"\1 1 \2"),
        (r"\bonce an? (hour|week|month|year)\b", r"every 1 \1"),
        (r"\bevery (second|minute|hour|night|week|month|year)\b", r"every 1 \1"),
        # Only what is so now counts.
        (r",?\s*\b(?:instead of|rather than|(?<=, )not)\s+(?:the\s+)?[\w.#+-]+$", ""),
        (r"\bfrom\s+\S+(?:\s+\S+){0,2}?\s+(to|into)\b", r"\1"),
    )
}
"""Wordings that are read like plainer ones."""
_TOKEN: Final = re.compile(
    r"\w+://\S+|(?<![\w.])[~.]{0,2}/[\w./-]*\w|[\w.+-]+@[\w-]+(?:\.[\w-]+)+"
    r"|[$€£]?\d[\d,]*(?:[.:-]\d+)*%?[a-zA-Z]*|[#@]?\w+(?:[-'.]\w+)*[+#]*|[:=]"
)
NUMBER: Final = re.compile(r"v?[$€£]?(\d[\d,]*(?:\.\d+)*)(?:st|nd|rd|th)?(%|[a-z]*)")
_LITERALS: Final = {
    "date": re.compile(r"\d{4}-\d\d-\d\d"),
    "clock": re.compile(r"\d\d:\d\d"),
    "address": re.compile(r"(?:\w+://|[~.]{0,2}/|#|[\w.+-]+@).+"),
}


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a statement: as written, its term, and the kind of value that it is.

    ``kind``: "number", "clock", a group of values of which one is true, "unit", "name", or "".
    """

    at: int
    text: str
    term: str
    kind: str
    content: bool

    @property
    def lower(self) -> str:
        """In lower case."""
        return self.text.lower()

    @property
    def verb(self) -> bool:
        """Whether it may be what a statement says of its subject."""
        return self.lower in COPULAS or self.term in _VERBS


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence without its negations, which stand apart."""

    words: tuple[Word, ...]
    negations: tuple[str, ...]

    @property
    def content(self) -> list[Word]:
        """The words that say something by themselves."""
        return [one for one in self.words if one.content]


@lru_cache(maxsize=512)
def statements_of(text: str) -> tuple[Statement, ...]:
    """The sentences of a text that name what they are about; none of a text of too many."""
    sentences = [one for one in _END.split(word_form(text).replace("\u2019", "'")) if one.strip()]
    if len(sentences) > _MOST_STATEMENTS:
        return ()
    read = (_statement(one.strip()) for one in sentences)
    return tuple(one for one in read if one is not None)


def _statement(sentence: str) -> Statement | None:
    for form, plain in _PLAIN.items():
        sentence = form.sub(plain, sentence)
    sentence = _CLOCK.sub(_clock, sentence)
    tokens = _TOKEN.findall(sentence)
    if not 1 < len(tokens) <= _MOST_WORDS:
        return None
    read: list[Word] = []
    negations: list[str] = []
    for at, token in enumerate(tokens):
        lower = token.lower()
        if lower.replace("'", "") in _NEGATIONS or lower.endswith("n't"):
            negations.append(token)
            continue
        after = tokens[at + 1].lower() if at + 1 < len(tokens) else ""
        read.append(_word(len(read), token, after))
    if len(read) > 1 and read[0].lower in _UNNAMED and read[1].verb:
        return None
    return Statement(tuple(read), tuple(negations))


def _clock(found: re.Match[str]) -> str:
    hour, minute, half, plain_hour, plain_minute = found.groups()
    if half is None:
        return f"{int(plain_hour):02}:{plain_minute}"
    return f"{int(hour) % 12 + (12 if half.lower() == 'p' else 0):02}:{minute or '00'}"


def _word(at: int, token: str, after: str) -> Word:
    lower = token.lower().removesuffix("'s")
    lower = _SYNONYMS.get(lower, lower)
    if lower in _NUMBERS and after:
        return Word(at, token, _NUMBERS[lower], "number", content=True)
    for kind, form in _LITERALS.items():
        if form.fullmatch(lower):
            return Word(at, token, lower, kind, content=True)
    if number := NUMBER.fullmatch(lower):
        return Word(at, token, number[1].replace(",", "") + number[2], "number", content=True)
    if lower in ("on", "off"):  # "is on" says something, "is on Monday" does not
        content = lower == "off" or not after or after in PREPOSITIONS
        return Word(at, token, lower, "", content=content)
    if lower == "may" and token.islower():  # no month
        return Word(at, token, lower, "", content=False)
    content = lower not in WEAK and lower not in PREPOSITIONS and lower[0] not in ":="
    if group := _GROUPS.get(lower):
        return Word(at, token, group[1], group[0], content)
    if lower in UNITS:
        return Word(at, token, lower.removesuffix("s"), "unit", content=True)
    kind = "name" if content and _named(token, at) else ""
    return Word(at, token, stem_of(lower), kind, content)


def _named(token: str, at: int) -> bool:
    """Whether a word is written like a name: with a capital that no beginning explains."""
    return token[0].isupper() if at else not token[1:].islower() and len(token) > 1
