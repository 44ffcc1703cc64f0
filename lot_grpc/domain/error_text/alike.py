"""Whether two statements say the same although their names, or a clause, differ.

Their words are aligned. A word of the vocabulary of error messages (``words``) counts more, the
rarer it is; any other word is a name. Two statements are alike if they have enough words in common,
in the same order, compared with what one says beyond the other, and contradict each other nowhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Final, NamedTuple

from lot_grpc.domain.error_text.parts import LeftOut
from lot_grpc.domain.error_text.vocabulary import GENERIC, STOP, telling_words
from lot_grpc.domain.error_text.words import RANK

_GENERIC_WEIGHT: Final = 0.2
_NEGATION_WEIGHT: Final = 0.3
_SYSTEM_WEIGHT: Final = 0.45
_NUMBER_WEIGHT: Final = 0.7
_CODE_WEIGHT: Final = 1.5
_RANK_WEIGHTS: Final = ((100, 0.5), (400, 0.75), (len(RANK), 1.0))
"""Weight of a word by its frequency rank."""
_JARGON_WEIGHT: Final = 0.3
"""Weight of a word that is not in the vocabulary but is in both."""
_JOINED: Final = 3
"""Words that a name may join and yet be jargon."""
_TYPE_SHARE: Final = 0.5
"""Of the type of an error, which versions rename."""

_LEAST: Final = 1.2
_BESIDES: Final = 2.0
_ENOUGH: Final = 2.2
"""Common weight that is needed: the minimum, and this much per weight that is said besides, up to
what is enough whatever else is said."""
OWN: Final = 1.3
"""Weight of a statement that is enough by itself, whoever says it and whatever precedes it."""
_TELLS: Final = 0.5
_TELLING: Final = 2
"""Words of this weight that must be in common."""
_BEHIND: Final = 0.5
"""What is said besides at the end weighs less: versions add details there."""
_CONFLICT: Final = 0.15
"""The most that may conflict, as a share of the common weight."""
_COMPARED: Final = 64
"""Words of a statement that are compared; the time to align them grows with their square."""
_COVERED: Final = 0.75
_WHOLE: Final = 0.5
"""Shares in common, at least, of what the shorter and of what the longer says."""

_TOKEN: Final = re.compile(
    r"(?P<call>[\w.]+\([^\s()]*\))|(?P<left_out><\w+>)"
    r"|[&$@%]?[^\W_]+(?:(?:[_.:/$\\+-]|->)+[^\W_]+)*"
)
_JOINT: Final = re.compile(r"[._/-]+|(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_CODE: Final = re.compile(r"\b[A-Z]{1,6}\d{3,}\b")
_FORM: Final = re.compile(r"[a-z]{3,}(?:ed|ing|able|ible|tion|ment|ly)")
"""A word of the language, however rare."""
_TYPE: Final = re.compile(r"[\w.$]+(?=: )")
_HEADS: Final = re.compile(
    r"(?:\[[^\]\s]+(?: @ [^\]\s]+)?\] |\([^)\s]+\) ?|[^\s:]\S*: |[Ee]rror in \S+ ?: )+"
)
"""Which program, place or type a statement is of."""

_NEGATIONS: Final = frozenset({"not", "no", "never", "without", "non"})
_NEGATIVE: Final = _NEGATIONS | frozenset(
    ("cannot", "failed", "failure", "fail", "unable", "missing", "unknown", "invalid", "error",
     "undefined", "unsupported")
)  # fmt: skip
_SYSTEM: Final = re.compile(
    r"\b(?:no such (?:file or directory|device|process)|permission denied|connection refused"
    r"|connection reset by peer|connection timed out|broken pipe|address already in use"
    r"|no space left on device|file exists|is a directory|not a directory|operation not permitted"
    r"|invalid argument|network is unreachable|no route to host|out of memory"
    r"|cannot allocate memory|too many open files|directory not empty"
    r"|resource temporarily unavailable|device or resource busy|read-only file system"
    r"|input/output error|bad file descriptor|name or service not known"
    r"|temporary failure in name resolution|(?:context )?deadline exceeded|i/o timeout"
    r"|(?:operation|request|connection|read|write) (?:was )?(?:timed out|cancell?ed|aborted)"
    r"|unexpected (?:eof|end of file)|stack overflow|out of range|end of file)\b",
    re.IGNORECASE,
)
"""What systems and runtimes say about any failure; each counts as one word."""


class _Word(NamedTuple):
    word: str
    weight: float
    jargon: bool = False

    @property
    def tells(self) -> bool:
        return self.jargon or self.weight >= _TELLS


def alike(one: str, other: str) -> bool:
    """Whether two signatures say the same."""
    codes = [set(_CODE.findall(text)) for text in (one, other)]
    if all(codes) and not codes[0] & codes[1]:
        return False
    rest = _without_heads(one)
    if rest and rest == _without_heads(other) and (rest in (one, other) or weight_of(rest) >= OWN):
        return True
    a, b = sorted((_words(one), _words(other)))  # a matcher pairs unlike either way
    if len({word.word for word in a if word.tells} & {word.word for word in b}) < _TELLING:
        return False
    common = conflict = 0.0
    telling, jargon, besides = 0, False, [0.0, 0.0]
    for same, left, right, last in _aligned(a, b):
        if same:
            shared = [min(word.weight for word in pair) for pair in zip(left, right, strict=True)]
            common += sum(shared)
            telling += sum(weight >= _TELLS for weight in shared)
            jargon = jargon or any(word.jargon for word in left)
            continue
        share = _BEHIND if last and not (left and right) else 1.0
        weights = [_besides(words) * share for words in (left, right)]
        if min(weights) == 0.0 < max(weights):
            weights = [
                one or sum(w.weight for w in words)
                for one, words in zip(weights, (left, right), strict=True)
            ]
        besides = [sum(weight) for weight in zip(besides, weights, strict=True)]
        conflict += min(weights) + (_negated(left, right) and max(weights) <= _TELLS)
    return (
        telling + jargon >= _TELLING
        and common >= min(_ENOUGH, _LEAST + _BESIDES * sum(besides))
        and conflict <= _CONFLICT * common
        and common >= _COVERED * (common + min(besides))
        and common >= _WHOLE * (common + max(besides))
    )


def weight_of(text: str) -> float:
    """How much a signature tells."""
    return sum(word.weight for word in _words(text))


def names_in(text: str, left_out: Sequence[LeftOut]) -> tuple[LeftOut, ...]:
    """What a signature leaves out, and the names that stand in it, in the order of its text."""
    rest = iter(left_out)
    names = []
    for found in _TOKEN.finditer(text):
        if found["left_out"]:
            names += [part for part in (next(rest, None),) if part]
        elif _is_name(found):
            names.append(LeftOut("name", found[0]))
    return (*names, *rest)


def _aligned(
    one: Sequence[_Word], other: Sequence[_Word]
) -> Iterator[tuple[bool, Sequence[_Word], Sequence[_Word], bool]]:
    """Runs of words: whether they are the same, those of either, whether they are the last."""
    left, right = ([word.word for word in words] for words in (one, other))
    for tag, i, j, k, n in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        yield tag == "equal", one[i:j], other[k:n], j == len(one) and n == len(other)


def _besides(words: Sequence[_Word]) -> float:
    """How much is said besides; generic words and names are not counted."""
    return sum(word.weight for word in words if not word.jargon and word.weight > _GENERIC_WEIGHT)


def _negated(one: Sequence[_Word], other: Sequence[_Word]) -> bool:
    """Whether one denies what the other does not."""
    left, right = ({word.word for word in words} for words in (one, other))
    return bool(
        (left & _NEGATIONS and not right & _NEGATIVE)
        or (right & _NEGATIONS and not left & _NEGATIVE)
    )


@lru_cache(8192)
def _without_heads(text: str) -> str:
    """What a statement says, whoever says it; "" where that tells nothing."""
    found = _HEADS.match(text)
    rest = text[found.end() :] if found else text
    return rest if telling_words(rest) else ""


@lru_cache(8192)
def _words(text: str) -> tuple[_Word, ...]:
    kind = _TYPE.match(text)
    words: list[_Word] = []
    at = 0
    for phrase in (*_SYSTEM.finditer(text), None):
        end = phrase.start() if phrase else len(text)
        for found in _TOKEN.finditer(text, at, end):
            words += _words_of(found, _TYPE_SHARE if kind and found.end() <= kind.end() else 1.0)
        if phrase:
            words.append(_Word(phrase[0].casefold(), _SYSTEM_WEIGHT))
            at = phrase.end()
    return tuple(words[:_COMPARED])


def _words_of(found: re.Match[str], share: float) -> Iterator[_Word]:
    """The words of a token: several where it joins words, none where it is a name."""
    token = found[0]
    if token.isdigit() or _CODE.fullmatch(token):
        yield _Word(token, _NUMBER_WEIGHT if token.isdigit() else _CODE_WEIGHT)
    elif not _is_name(found):
        weighed = ((part, _weight(part) or 0.0) for part in _parts(token))
        yield from (_Word(part, weight * share) for part, weight in weighed if weight)
    elif not found["call"] and not found["left_out"]:
        parts = _parts(token)
        if len(parts) <= _JOINED and all(part.isalpha() for part in parts):
            yield _Word("-".join(parts), _JARGON_WEIGHT, jargon=True)


def _is_name(found: re.Match[str]) -> bool:
    """Whether a token is none of the language of messages."""
    if found["call"] or found["left_out"]:
        return True
    token = found[0]
    if token.isdigit() or _CODE.fullmatch(token):
        return False
    return any(_weight(part) is None for part in _parts(token))


def _parts(token: str) -> list[str]:
    return [part.casefold() for part in _JOINT.split(token) if part]


def _weight(word: str) -> float | None:
    """How much a word tells; None for a name."""
    if word in _NEGATIONS:
        return _NEGATION_WEIGHT
    if word in STOP:
        return 0.0
    if word in GENERIC:
        return _GENERIC_WEIGHT
    rank = RANK.get(word, len(RANK) if _FORM.fullmatch(word) else None)
    return None if rank is None else next(w for most, w in _RANK_WEIGHTS if rank <= most)
