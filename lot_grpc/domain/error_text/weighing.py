"""The words of a statement, weighted by how specific each is to an error.

A word from the vocabulary of error messages (``words``) weighs more, the rarer it is; any other
word is a name. A chain of causes begins with the program and place that report it, which count
less.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from lot_grpc.domain.error_text.parts import LeftOut
from lot_grpc.domain.error_text.vocabulary import GENERIC, STOP, telling_words
from lot_grpc.domain.error_text.words import RANK

GENERIC_WEIGHT: Final = 0.2
_NEGATION_WEIGHT: Final = 0.3
_SYSTEM_WEIGHT: Final = 0.45
_NUMBER_WEIGHT: Final = 0.7
_CODE_WEIGHT: Final = 1.5
_RANK_WEIGHTS: Final = ((100, 0.5), (400, 0.75), (len(RANK), 1.0))
"""Weight of a word by its frequency rank."""
_JARGON_WEIGHT: Final = 0.3
"""Weight of a word that is not in the vocabulary but in both texts."""
_JOINED: Final = 3
"""Maximum number of words in a compound name that is still jargon."""
_TYPE_SHARE: Final = 0.5
"""Weight of an error's type, which may be renamed between versions."""

TELLING: Final = 0.5
"""The weight from which a word may distinguish errors."""
_ASIDE: Final = 0.5
"""Share of the weight of what only one text says before the last part of a chain: who and where."""
_COMPARED: Final = 64
"""Words of a statement that are compared; aligning them takes quadratic time."""

_TOKEN: Final = re.compile(
    r"(?P<call>(?<![\w.])[\w.]+\([^\s()]*\))|(?P<left_out><\w+>)"
    r"|[&$@%]?[^\W_]+(?:(?:[_.:/$\\+-]|->)+[^\W_]+)*"
)
_JOINT: Final = re.compile(r"[._/-]+|(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
CODE: Final = re.compile(r"\b[A-Z]{1,6}-?\d{3,}\b|\bSQLSTATE\[?\w{5}\b")
_QUALIFIED: Final = re.compile(r"(?![\w.]*\.[A-Z_]+$)(?:[A-Z]\w*(?:\.\w+)+|\w+\.\w+(?:\.\w+)+)")
_FORM: Final = re.compile(
    r"[a-z]{3,}(?:ed|ing|[ai]ble|[st]ion|ment|ly|i[sz]e|ify|ous|ive|ful|ness|ity|[ae]nce)s?"
)
"""A word of the language, however rare."""
_TYPE: Final = re.compile(r"[\w.$]+(?=: )")
_HEADS: Final = re.compile(
    r"(?:\[(?!Errno)[^\]]{1,60}\] |\([^)\s]+\) ?|[^\s:]\S*: |[Ee]rror in (?:\S+|.{1,100}?) ?: "
    r"|(?:Uncaught|Unhandled)(?: \([\w ]+\))? |(?:in \w+|[a-z]+ing), "
    r"|(?:(?:(?:[A-Z]\w+ )?[Ee]rror|file|line|char|column|position|expression|near|in|at|on|for|-e"
    r"|#?['\"]?<\w+>['\"]?|\([^() ]{1,60}\))(?:,? | ?(?=: )))+: )+"
)
"""The program, place or type at the beginning of a statement."""

_LINK: Final = re.compile(r" ?: |(?<!\S)(?:in \w+|[a-z]+ing), ")
"""Separators between two parts of a chain of causes."""
_SAME: Final = tuple(
    (re.compile(rf"(?:{phrases})\b", re.IGNORECASE), same)
    for phrases, same in (
        (
            r"\b(?:can ?not|can't|could ?n(?:o|')t|(?:was |is )?unable to|(?:has )?failed to)",
            "cannot",
        ),
        (r"(?<=\w)n't", "n not"),
    )
)
"""Phrases with the same meaning, and the word that replaces them."""
_PARENTHESES: Final = re.compile(r"\([^()]{8,}\)")
_STAND_IN: Final = re.compile(r"(?:\b[a-z]+:)?(['\"]?)<\w+>\1")
_LIST: Final = re.compile(r"\[{0,4}<name>\]*(?:(?:,? (?:and|or) |, )\[*<name>\]*)+")
_BEHIND_ALL: Final = re.compile(r" ?[(\[](?:<name>|[a-z]+(?:-[a-z]+)+)[)\]]$| ?\]? \{$")

NEGATIONS: Final = frozenset({"not", "no", "never", "without", "non"})
NEGATIVE: Final = NEGATIONS | frozenset(
    ("cannot", "failed", "failure", "fail", "unable", "missing", "unknown", "invalid", "error",
     "undefined", "unsupported")
)  # fmt: skip
_SYSTEM: Final = re.compile(
    r"(?:\b(?:dial|listen|read|write|accept) (?:tcp|udp|unix)\d?\b[^'\"\n]{0,80}: )?"
    r"(?:\b(?:connect|bind|accept|read|write|open|stat|mkdir): )?"
    r"\b(?P<said>no such (?:file or directory|device|process)|permission denied|connection refused"
    r"|connection reset by peer|connection timed out|broken pipe|address already in use"
    r"|no space left on device|file exists|is a directory|not a directory|operation not permitted"
    r"|invalid argument|network is unreachable|no route to host|out of memory"
    r"|cannot allocate memory|too many open files|directory not empty"
    r"|resource temporarily unavailable|device or resource busy|read-only file system"
    r"|input/output error|bad file descriptor|name or service not known"
    r"|temporary failure in name resolution|(?:context )?deadline exceeded|i/o timeout"
    r"|(?:operation|request|connection|read|write) (?:was )?(?:timed out|cancell?ed|aborted)"
    r"|(?:authentication|authorization) (?:is )?(?:required|failed)|access (?:is )?denied"
    r"|unexpected (?:eof|end of file)|stack overflow|out of range|end of file)\b",
    re.IGNORECASE,
)
"""Phrases that systems and runtimes use for any failure; each counts as one word."""


class Word(NamedTuple):
    """A word of a statement. ``jargon``: it is not in the vocabulary of error messages."""

    word: str
    weight: float
    jargon: bool = False
    counts: float = 1.0
    """The share of its weight that counts if the other text lacks it."""
    added: bool = False
    """Whether it is in parentheses."""
    names: int = 0
    """The number of names before it in the text."""
    alone: bool = True
    """Whether it is a separate token, not part of a compound."""

    @property
    def is_telling(self) -> bool:
        """Whether it may distinguish errors."""
        return self.jargon or self.weight >= TELLING


def weight_of(text: str) -> float:
    """The weight of a signature."""
    return sum(word.weight for word in words_in(text))


def names_in(text: str, left_out: Sequence[LeftOut]) -> tuple[LeftOut, ...]:
    """The parts that a signature omits, and the names in it, in the order of its text."""
    rest = iter(left_out)
    names = []
    for found in _TOKEN.finditer(text):
        if found["left_out"]:
            names += [part for part in (next(rest, None),) if part]
        elif _is_name(found):
            names.append(LeftOut("name", found[0]))
    return (*names, *rest)


@lru_cache(8192)
def bare(text: str) -> str:
    """A statement with one ``<name>`` for each omitted name or list of names."""
    return _BEHIND_ALL.sub("", _LIST.sub("<name>", _STAND_IN.sub("<name>", plain(text))))


@lru_cache(8192)
def without_heads(text: str) -> str:
    """A statement without the program and place that report it; "" if that says nothing."""
    text = bare(text)
    found = _HEADS.match(text)
    rest = text[found.end() :] if found else text
    return rest if telling_words(rest) else ""


def plain(text: str) -> str:
    """A statement with one word for each phrase that has several wordings."""
    for phrases, same in _SAME:
        text = phrases.sub(same, text)
    return text


@lru_cache(8192)
def words_in(text: str) -> tuple[Word, ...]:
    """The words of a text, and an empty one at the end with the count of all names."""
    text = plain(text)
    kind, heads = _TYPE.match(text), _HEADS.match(text)
    head_end = heads.end() if heads and telling_words(text[heads.end() :]) else 0
    links = [link.start() for link in _LINK.finditer(text) if telling_words(text[link.end() :])]
    last_link = links[-1] if links else 0
    parentheses = [one.span() for one in _PARENTHESES.finditer(text)]
    words: list[Word] = []
    at = names = 0

    def counts(place: int) -> float:
        if place < head_end:
            return 0.0
        return _ASIDE if place < last_link else 1.0

    for phrase in (*_SYSTEM.finditer(text), None):
        end = phrase.start() if phrase else len(text)
        for found in _TOKEN.finditer(text, at, end):
            share = _TYPE_SHARE if kind and found.end() <= kind.end() else 1.0
            own = list(_words_of(found, share))
            added = any(start < found.start() < end for start, end in parentheses)
            words += (
                one._replace(counts=counts(found.start()), added=added, names=names) for one in own
            )
            names += not own and _is_name(found)
        if phrase:
            words.append(
                Word(
                    phrase["said"].casefold(),
                    _SYSTEM_WEIGHT,
                    counts=counts(phrase.start()),
                    names=names,
                )
            )
            at = phrase.end()
    return (*words[:_COMPARED], Word("", 0.0, names=names))


def _words_of(found: re.Match[str], share: float) -> Iterator[Word]:
    """The words of a token: several for a compound, none for a name."""
    token = found[0]
    if token.isdigit() or CODE.fullmatch(token):
        yield Word(token, _NUMBER_WEIGHT if token.isdigit() else _CODE_WEIGHT)
    elif not _is_name(found):
        parts = _parts(token)
        weighed = ((part, _weight(part) or 0.0) for part in parts)
        yield from (
            Word(part, weight * share, alone=len(parts) == 1) for part, weight in weighed if weight
        )
    elif not found["call"] and not found["left_out"]:
        parts = _parts(token)
        if len(parts) <= _JOINED and all(part.isalpha() for part in parts):
            yield Word("-".join(parts), _JARGON_WEIGHT, jargon=True)


def _is_name(found: re.Match[str]) -> bool:
    """Whether a token is not in the vocabulary of error messages."""
    token = found[0]
    if found["call"] or found["left_out"] or _QUALIFIED.fullmatch(token):
        return True
    if token.isdigit() or CODE.fullmatch(token):
        return False
    return any(_weight(part) is None for part in _parts(token))


def _parts(token: str) -> list[str]:
    return [part.casefold() for part in _JOINT.split(token) if part]


def _singular(word: str) -> str:
    one = word.removesuffix("s")
    return one if one in RANK and word not in STOP and word not in GENERIC else word


def _weight(word: str) -> float | None:
    """The weight of a word; None for a name."""
    if word in NEGATIONS:
        return _NEGATION_WEIGHT
    if word in STOP:
        return 0.0
    if word in GENERIC:
        return GENERIC_WEIGHT
    rank = RANK.get(_singular(word), len(RANK) if _FORM.fullmatch(word) else None)
    return None if rank is None else next(w for most, w in _RANK_WEIGHTS if rank <= most)
