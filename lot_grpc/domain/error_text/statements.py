"""The statements of an error message, the most specific first.

Any line may name an error. Its score depends on what it is: the end of a trace, a line that a
compiler or a program marks as an error, prose that says that something failed, a warning. A line
whose words are all generic (``vocabulary``) states nothing, so wrappers around an error and the
last lines of build tools drop out; the line after it gets its score.

Every rule reads a line from its beginning and none looks more than a few lines ahead, so that the
time is linear in the message.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from lot_grpc.domain.error_text.candidates import (
    ERROR,
    MARKED,
    NOTE,
    ONE_WORD,
    PROSE,
    TOOL,
    TRACE,
    WARNING,
    Candidate,
    announced,
    candidate,
)
from lot_grpc.domain.error_text.dress import undressed
from lot_grpc.domain.error_text.line import (
    ANY_TYPED,
    Headline,
    short_type,
    typed,
)
from lot_grpc.domain.error_text.parts import TakenApart, taken_apart
from lot_grpc.domain.error_text.tools import READERS, jest_error, maven_error
from lot_grpc.domain.error_text.vocabulary import telling_words

MOST: Final = 5
"""Maximum number of statements."""

_READ: Final = 120
"""How many statements have their words examined."""


_WORD_COUNTS: Final = 0.08
_MOST_WORDS: Final = 8
"""Each specific word adds this much, up to a maximum number: of equals, the more specific wins."""

_NAMES: Final = 0.2
"""Bonus of a line with names, numbers or places of its own."""

_HEADS: Final = 4
_ENOUGH: Final = 3
"""Minimum number of specific words for a sentence to represent a whole text."""

_SHORTEST: Final = 22
"""Minimum number of characters of a first sentence."""

_SENTENCE_END = re.compile(r"(?<=[^\W\d_][^\W\d_])['\")]?(?=[.!?]['\")]? +[A-Z])")

_ORDERED: Final = 0.4
"""The share of both that counts if lines are marked as errors: of those the first mostly causes the
others."""

_LESS: Final = 0.6
"""Malus of a line that only counts errors, or reports something unused."""

_LATE: Final = 0.2
"""Malus of the 400th line, proportionally less for those before it: of equals the first wins."""


_AHEAD: Final = 4
"""How many lines after a line that announces an error belong to it."""

_GROUP = "Exception Group Traceback"
_GROUP_MARGIN = re.compile(r"[ \t]*(?:\+-[+-].*|[|+] ?)")
"""What Python draws to the left of the members of an exception group, and between them."""

_CAUSES = re.compile(r"[ \t]*(?:Caused by:|\[cause\]:|caused by:)[ \t]*(?=\S)")
_GO = re.compile(r"[ \t]*(?:panic: |fatal error: )(?=\S)")
_SERVING = re.compile(r"(?:http: )?panic serving \S+: (?=\S)")
_RUST_NEW = re.compile(r"[ \t]*thread '[^']*' (?:\(\d+\) )?panicked at (?:[^'\s]\S*:|')$")
_RUST_OLD = re.compile(r"[ \t]*thread '[^']*' panicked at '(.*)', \S+:\d+:\d+$")
_PYTHON_FRAME = re.compile(r"[ \t]*File \"[^\"]+\", line \d+")
_TRACEBACK = "Traceback (most recent call last)"

_PROGRAM = re.compile(r"^[a-z][\w+.-]*: (?=[^<]{2})")
"""The program that reports an error, which does not matter."""

_MILD = re.compile(r"\bnever (?:read|used)\b|\bunused\b|\bnot used\b")


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement: its ``headline``, and that without what varies from case to case."""

    headline: Headline
    apart: TakenApart


def statements_of(message: str) -> list[Statement]:
    """At most ``MOST`` distinct statements; empty if a message does not say which error it is."""
    lines = undressed(message)
    if any(_GROUP in line for line in lines):
        margins = ((line, _GROUP_MARGIN.match(line)) for line in lines)
        lines = [bare for line, one in margins if (bare := line[one.end() if one else 0 :])]
    placed = (
        Candidate(one.headline, one.counts - min(_LATE, _LATE * at / 400))
        for at, one in enumerate(_candidates(lines))
    )
    candidates = sorted(placed, key=lambda one: -one.counts)
    found: dict[tuple[str, str], tuple[float, Statement]] = {}
    for one in candidates[:_READ]:
        if len(found) >= MOST and one.counts + _WORD_COUNTS * _MOST_WORDS < min(
            v for v, _ in found.values()
        ):
            break
        headline = Headline(one.headline.type, _without_heads(one.headline.text))
        apart = taken_apart(sentence(headline.text))
        kind = short_type(headline.type)
        words = telling_words(_PROGRAM.sub("", apart.text))
        if not words and not telling_words(kind):
            continue
        share = 1.0 if one.counts < MARKED - _LATE else _ORDERED
        value = one.counts + share * _WORD_COUNTS * min(_MOST_WORDS, len(words))
        value += share * _NAMES if apart.left_out else 0.0
        if apart.text and not apart.left_out and not any(word.isalpha() for word in words):
            value -= 1.0
        if apart.text.startswith("<number> ") or _MILD.search(apart.text):
            value -= _LESS
        key = (kind, apart.text)
        if key not in found or found[key][0] < value:
            found[key] = value, Statement(headline, apart)
    ranked = sorted(found.values(), key=lambda one: -one[0])
    if ranked and ranked[0][0] >= PROSE:
        ranked = [one for one in ranked if one[0] >= WARNING + 0.9]
    return [statement for _, statement in ranked[:MOST]]


def first_line(message: str) -> Headline:
    """The first line, which represents a message without statements."""
    lines = undressed(message)
    return typed(lines[0]) if lines else Headline("", "")


def _without_heads(text: str) -> str:
    """A chain of causes without its first parts, as long as they say nothing."""
    for _ in range(_HEADS):
        head, colon, rest = text.partition(": ")
        if not colon or len(head) > 80 or " " not in head or not rest[:1].isalpha():
            break
        if not head.replace(" ", "").isalpha() or telling_words(head):
            break
        if not telling_words(taken_apart(rest).text):
            break
        text = rest
    return text


def sentence(text: str) -> str:
    """The first sentence, if it says enough: newer versions of tools add advice."""
    found = _SENTENCE_END.search(text, _SHORTEST)
    first = text[: found.end()] if found else ""
    return first if len(telling_words(taken_apart(first).text)) >= _ENOUGH else text


def _candidates(lines: Sequence[str]) -> Iterator[Candidate]:
    if not lines:
        return
    yield from _traces(lines)
    for read in READERS:
        if (found := read(lines)) is not None:
            yield Candidate(found, TRACE if read is not jest_error else ERROR - 0.3)
    if (found := maven_error(lines)) is not None:
        yield Candidate(found, TOOL)
    ahead: tuple[int, float, str] | None = None
    for number, line in enumerate(lines):
        one = candidate(line, lines[number + 1 : number + 4])
        if one is None:
            continue
        generic = _counts(one.headline) or (
            not telling_words(taken_apart(one.headline.text).text) if one.counts >= PROSE else False
        )
        if (
            ahead is not None
            and number - ahead[0] <= _AHEAD
            and not generic
            and one.counts < ahead[1]
            and one.counts not in (NOTE, WARNING)
            and (one.counts >= PROSE or number == ahead[0] + 1)
        ):
            kind = one.headline.type or ahead[2]
            one = Candidate(Headline(kind, one.headline.text), ahead[1])
            ahead = None
        if generic and one.counts >= MARKED:
            kind = one.headline.type
            ahead = (
                number,
                max(PROSE, one.counts - 0.3),
                kind if telling_words(short_type(kind)) else "",
            )
            if ahead[2]:
                one = Candidate(one.headline, one.counts - 1.0)
        yield one


def _traces(lines: Sequence[str]) -> Iterator[Candidate]:
    """Ends of traces, panics and causes; the last counts most, since it is the root cause."""
    for n, line in enumerate(lines):
        if found := _RUST_OLD.match(line):
            yield Candidate(Headline("panic", found[1]), TRACE)
        elif _RUST_NEW.match(line) and n + 1 < len(lines):
            yield Candidate(Headline("panic", lines[n + 1].strip()), TRACE)
        elif (found := _GO.match(line)) or (found := _SERVING.match(line)):
            text = line[found.end() :].strip().removesuffix(" [recovered]")
            kind = "fatal error" if found[0].strip() == "fatal error:" else "panic"
            yield Candidate(Headline(kind, text), TRACE)
    causes = [line[found.end() :] for line in lines if (found := _CAUSES.match(line))]
    for n, cause in enumerate(reversed(causes[-3:])):
        yield Candidate(typed(cause), TRACE - 0.05 - 0.3 * n)
    ends = list(_python_ends(lines))
    for n, end in enumerate(reversed(ends[-3:])):
        yield Candidate(end, TRACE - 0.3 * n)


def _python_ends(lines: Sequence[str]) -> Iterator[Headline]:
    """The first line after each Python traceback that is no longer indented."""
    within = False
    for n, line in enumerate(lines):
        if _TRACEBACK in line or _PYTHON_FRAME.match(line):
            within = True
        elif within and line[0].strip():
            within = False
            found = ANY_TYPED.match(line) if not line.startswith("<") else None
            headline = Headline(found[1], found[2] or "") if found else typed(line)
            if _counts(headline):
                detail = _detail(lines[n + 1 : n + 1 + _AHEAD])
                headline = Headline(headline.type, detail or headline.text)
            yield announced(headline, lines[n + 1 : n + 2])


def _counts(headline: Headline) -> bool:
    """Whether a typed line counts the errors of the next ones."""
    return bool(headline.type and taken_apart(headline.text).text.startswith("<number> "))


def _detail(behind: Sequence[str]) -> str:
    """The first line with several words: the subject of a summary of errors."""
    return next((line.strip() for line in behind if not ONE_WORD.match(line.strip())), "")
