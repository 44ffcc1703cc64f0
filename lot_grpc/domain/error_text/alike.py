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
_STRANGERS: Final = 1.5
_BESIDES: Final = 2.0
_ENOUGH: Final = 2.2
"""Common weight that is needed: the minimum, that where two programs say it, and this much per
weight that is said besides, up to what is enough whatever else is said."""
OWN: Final = 1.2
"""Weight of a statement that is enough by itself, whoever says it and whatever precedes it."""
_TELLS: Final = 0.5
_TELLING: Final = 2
"""Words of this weight that must be in common."""
_BEHIND: Final = 0.5
"""What is said besides at the end weighs less: versions add details there."""
_CONFLICT: Final = 0.15
"""The most that may conflict, as a share of the common weight."""
_ASIDE: Final = 0.5
"""What is said besides in front of the last part of a chain weighs less: who says it, and where."""
_FOR_A_NAME: Final = 0.25
_NAME_WORDS: Final = 1
"""Words that may stand where the other text has a name."""
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
_CODE: Final = re.compile(r"\b[A-Z]{1,6}-?\d{3,}\b|\bSQLSTATE\[?\w{5}\b")
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
"""Which program, place or type a statement is of."""

_LINK: Final = re.compile(r" ?: |(?<!\S)(?:in \w+|[a-z]+ing), ")
"""Where a chain of causes goes on."""
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
"""What is said in several ways, with the same meaning."""
_NO_REASON: Final = re.compile(
    r"(?:.*: )?(?:cannot (?!find|locate|resolve)|[Ee]rror [a-z]+ing\b)[^:]*"
)
"""It tells what could not be done. What could not be found is a reason."""
_PARENTHESES: Final = re.compile(r"\([^()]{8,}\)")
_STAND_IN: Final = re.compile(r"(?:\b[a-z]+:)?(['\"]?)<\w+>\1")
_LIST: Final = re.compile(r"\[*<name>\]*(?:(?:,? (?:and|or) |, )\[*<name>\]*)+")
_BEHIND_ALL: Final = re.compile(r" ?[(\[](?:<name>|[a-z]+(?:-[a-z]+)+)[)\]]$| ?\]? \{$")
_NEXT_CLAUSE: Final = (",", ";", ". ", " - ", " -- ")

_NEGATIONS: Final = frozenset({"not", "no", "never", "without", "non"})
_NEGATIVE: Final = _NEGATIONS | frozenset(
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
    r"|unexpected (?:eof|end of file)|stack overflow|out of range|end of file)\b",
    re.IGNORECASE,
)
"""What systems and runtimes say about any failure; each counts as one word."""


class _Word(NamedTuple):
    word: str
    weight: float
    jargon: bool = False
    counts: float = 1.0
    """Share of its weight that counts where the other text does not have it."""
    added: bool = False
    """It stands in parentheses."""
    names: int = 0
    """Names before it in the text."""
    alone: bool = True
    """It is no part of a name of several words."""

    @property
    def tells(self) -> bool:
        return self.jargon or self.weight >= _TELLS


def alike(one: str, other: str) -> bool:
    """Whether two signatures say the same."""
    codes = [set(_CODE.findall(text)) for text in (one, other)]
    if all(codes) and not codes[0] & codes[1]:
        return False
    rest = _without_heads(one)
    if _contains(_bare(one), _without_heads(other)) or _contains(_bare(other), rest):
        return True
    a, b = sorted((_words(one), _words(other)))  # a matcher pairs unlike either way
    said = {word.word for word in b}
    if sum(word.tells and word.word in said for word in a) < _TELLING:
        return False
    if _unlike_causes(a, b):
        return False
    common = conflict = 0.0
    telling, jargon, besides, least = 0, False, [0.0, 0.0], _LEAST
    for same, left, right, last in _aligned(a, b):
        if same:
            shared = [min(word.weight for word in pair) for pair in zip(left, right, strict=True)]
            common += sum(shared)
            telling += sum(weight >= _TELLS for weight in shared)
            jargon = jargon or any(word.jargon for word in left)
            continue
        if all(any(word.jargon and not word.counts for word in words) for words in (left, right)):
            least = _STRANGERS
        alone = not (left and right)
        share = _BEHIND if alone and (last or all(word.added for word in (*left, *right))) else 1.0
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
        and common >= min(_ENOUGH, least + _BESIDES * sum(besides))
        and conflict <= _CONFLICT * common
        and common >= _COVERED * (common + min(besides))
        and common >= _WHOLE * (common + max(besides))
    )


def overlap(one: str, other: str) -> float:
    """The share in common of what two statements say, in [0, 1]."""
    a, b = sorted((_words(one), _words(other)))
    if _unlike_causes(a, b):
        return 0.0
    common, besides = 0.0, [0.0, 0.0]
    for same, left, right, _ in _aligned(a, b):
        if same:
            common += sum(min(w.weight for w in pair) for pair in zip(left, right, strict=True))
        else:
            besides = [
                all_ + _besides(words) for all_, words in zip(besides, (left, right), strict=True)
            ]
    return common / (common + max(besides)) if common else 0.0


def states_no_reason(text: str) -> bool:
    """Whether a statement says just what could not be done."""
    return _NO_REASON.fullmatch(_plain(text)) is not None


def _says_enough(text: str) -> bool:
    """Whether a statement is enough by itself, whoever says it."""
    words = _words(text)
    parts = sum(word.weight >= _TELLS for word in words)
    parts += "<name>" in text or any(word.jargon for word in words)
    return parts >= _TELLING and weight_of(text) >= OWN


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
    """Runs of words: whether they are the same, those of either, whether they are the last.

    Words where the other text has a name are most likely names too, and weigh little.
    """
    left, right = ([word.word for word in words[:-1]] for words in (one, other))
    for tag, i, j, k, n in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        same, a, b = tag == "equal", one[i:j], other[k:n]
        if not same:
            names = _names_between(one, i, j), _names_between(other, k, n)
            if names[0] == 0 and _name_for(a, names[1], b):
                a = [word._replace(weight=_FOR_A_NAME) for word in a]
            elif names[1] == 0 and _name_for(b, names[0], a):
                b = [word._replace(weight=_FOR_A_NAME) for word in b]
        yield same, a, b, j == len(left) and n == len(right)


def _names_between(words: Sequence[_Word], start: int, end: int) -> int:
    """Names beside the words of a run, up to the words around it."""
    before = words[start - 1].names if start else 0
    return words[end].names - before


def _name_for(words: Sequence[_Word], names: int, other: Sequence[_Word]) -> bool:
    """Whether the words stand where the other text has a name, or jargon, and nothing else."""
    return (
        0 < len(words) <= _NAME_WORDS
        and all(word.jargon for word in other)
        and names > 0
        and all(word.alone and word.word not in _NEGATIVE for word in words)
    )


def _unlike_causes(one: Sequence[_Word], other: Sequence[_Word]) -> bool:
    """Whether both name what systems say, and not the same."""
    left, right = ({word.word for word in words if " " in word.word} for words in (one, other))
    return bool(left and right) and not left & right


def _besides(words: Sequence[_Word]) -> float:
    """How much is said besides; generic words and names are not counted."""
    return sum(
        word.weight * word.counts
        for word in words
        if not word.jargon and word.weight > _GENERIC_WEIGHT
    )


def _negated(one: Sequence[_Word], other: Sequence[_Word]) -> bool:
    """Whether one denies what the other does not."""
    left, right = ({word.word for word in words} for words in (one, other))
    return bool(
        (left & _NEGATIONS and not right & _NEGATIVE)
        or (right & _NEGATIONS and not left & _NEGATIVE)
    )


def _contains(whole: str, part: str) -> bool:
    """Whether a statement says what another one says, and a clause more at either end."""
    at = whole.find(part) if part else -1
    return (
        at >= 0
        and (at == 0 or whole[:at].endswith(": "))
        and whole[at + len(part) :].startswith(_NEXT_CLAUSE if at + len(part) < len(whole) else "")
        and _says_enough(part)
    )


@lru_cache(8192)
def _bare(text: str) -> str:
    """A statement, whatever kinds of names it leaves out, and how many one after the other."""
    return _BEHIND_ALL.sub("", _LIST.sub("<name>", _STAND_IN.sub("<name>", _plain(text))))


@lru_cache(8192)
def _without_heads(text: str) -> str:
    """What a statement says, whoever says it and where; "" where that tells nothing."""
    text = _bare(text)
    found = _HEADS.match(text)
    rest = text[found.end() :] if found else text
    return rest if telling_words(rest) else ""


def _plain(text: str) -> str:
    for phrases, same in _SAME:
        text = phrases.sub(same, text)
    return text


@lru_cache(8192)
def _words(text: str) -> tuple[_Word, ...]:
    """The words of a text; the last one is empty, and counts the names."""
    text = _plain(text)
    kind, heads = _TYPE.match(text), _HEADS.match(text)
    said = heads.end() if heads and telling_words(text[heads.end() :]) else 0
    links = [link.start() for link in _LINK.finditer(text) if telling_words(text[link.end() :])]
    last_link = links[-1] if links else 0
    parentheses = [one.span() for one in _PARENTHESES.finditer(text)]
    words: list[_Word] = []
    at = names = 0

    def counts(place: int) -> float:
        if place < said:
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
                _Word(
                    phrase["said"].casefold(),
                    _SYSTEM_WEIGHT,
                    counts=counts(phrase.start()),
                    names=names,
                )
            )
            at = phrase.end()
    return (*words[:_COMPARED], _Word("", 0.0, names=names))


def _words_of(found: re.Match[str], share: float) -> Iterator[_Word]:
    """The words of a token: several where it joins words, none where it is a name."""
    token = found[0]
    if token.isdigit() or _CODE.fullmatch(token):
        yield _Word(token, _NUMBER_WEIGHT if token.isdigit() else _CODE_WEIGHT)
    elif not _is_name(found):
        parts = _parts(token)
        weighed = ((part, _weight(part) or 0.0) for part in parts)
        yield from (
            _Word(part, weight * share, alone=len(parts) == 1) for part, weight in weighed if weight
        )
    elif not found["call"] and not found["left_out"]:
        parts = _parts(token)
        if len(parts) <= _JOINED and all(part.isalpha() for part in parts):
            yield _Word("-".join(parts), _JARGON_WEIGHT, jargon=True)


def _is_name(found: re.Match[str]) -> bool:
    """Whether a token is none of the language of messages."""
    token = found[0]
    if found["call"] or found["left_out"] or _QUALIFIED.fullmatch(token):
        return True
    if token.isdigit() or _CODE.fullmatch(token):
        return False
    return any(_weight(part) is None for part in _parts(token))


def _parts(token: str) -> list[str]:
    """The words that a token joins, known ones in the singular."""
    return [part.casefold() for part in _JOINT.split(token) if part]


def _singular(word: str) -> str:
    one = word.removesuffix("s")
    return one if one in RANK and word not in STOP and word not in GENERIC else word


def _weight(word: str) -> float | None:
    """How much a word tells; None for a name."""
    if word in _NEGATIONS:
        return _NEGATION_WEIGHT
    if word in STOP:
        return 0.0
    if word in GENERIC:
        return _GENERIC_WEIGHT
    rank = RANK.get(_singular(word), len(RANK) if _FORM.fullmatch(word) else None)
    return None if rank is None else next(w for most, w in _RANK_WEIGHTS if rank <= most)
