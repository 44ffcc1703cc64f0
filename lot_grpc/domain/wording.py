"""What the words of a task say beyond its embedding: its action, and its skeletons.

A skeleton of a task is what is left of its words when one or two values are taken out: "book a
hotel room in …" of "Book a hotel room in Paris". Tasks that share one are of one template.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from lot_grpc.domain.text_form import word_form
from lot_grpc.domain.tokens import TOKEN

MOST_CHARACTERS: Final = 2_000
_MOST_TOKENS: Final = 60
"""Of a task that are read, the first ones."""

LEAST_CONSTANT: Final = 0.5
"""Share of the words of a task that a skeleton must keep."""

LEAST_CONTENT: Final = 2
"""Words other than function words that a skeleton must keep: "make a … for the …" says nothing."""

_ENDS: Final = frozenset(".?!")

_BEFORE: Final = """
    please can could would will you how do does i we to want need like help me us let's lets
    should must now then and
"""
_LEADING: Final = frozenset(_BEFORE.split())
"""Words that may stand before the one that says what to do."""

_BEGINNINGS: Final = """
    for in on at with from after before when if as using given during within under while
    since because once via inside by
"""
_PREPOSITIONS: Final = frozenset(_BEGINNINGS.split())
"""A sentence that begins with one says what to do behind its first comma."""

_FUNCTION: Final = """
    a an the of to in on at for from by with and or is are be was were it its this that
    these those my your our their his her as into over about me you i we do does did how
    what which who where when there all any some no not up out off if then than via per
"""
_FUNCTION_WORDS: Final = frozenset(_FUNCTION.split())


@dataclass(frozen=True)
class Wording:
    """The words of a task, in lower case.

    ``action_places``: where in each sentence the word stands that says what to do, as far as its
    place tells that.
    """

    tokens: tuple[str, ...]
    action_places: tuple[int, ...]

    @property
    def actions(self) -> tuple[str, ...]:
        """What is to be done, a word a sentence."""
        return tuple(self.tokens[at] for at in self.action_places)

    def counts(self) -> tuple[list[int], list[int], list[int]]:
        """How many words, content words and actions stand before each token, and in all."""
        words = [is_word(token) for token in self.tokens]
        content = [
            word and token not in _FUNCTION_WORDS
            for word, token in zip(words, self.tokens, strict=True)
        ]
        actions = [at in self.action_places for at in range(len(self.tokens))]
        return _summed(words), _summed(content), _summed(actions)


def wording_of(task: str) -> Wording:
    """Read a task. Marks at its end are left out."""
    tokens: list[str] = []
    for found in TOKEN.finditer(word_form(task[:MOST_CHARACTERS]).casefold()):
        tokens.append(found[0])
        if len(tokens) == _MOST_TOKENS:
            break
    while tokens and not is_word(tokens[-1]) and len(tokens[-1]) == 1:
        tokens.pop()
    return Wording(tuple(tokens), tuple(action_places(tokens)))


def action_places(tokens: Sequence[str]) -> list[int]:
    """Where in each sentence the word stands that says what to do; tokens are in lower case."""
    places, start = [], 0
    ends = [at for at, token in enumerate(tokens) if token in _ENDS]
    for end in [*ends, len(tokens)]:
        if start < end:
            places.append(_action(tokens, start, end))
        start = end + 1
    return places


def _action(tokens: Sequence[str], start: int, end: int) -> int:
    """Where in a sentence the word stands that says what to do; its last token if none does."""
    if tokens[start] in _PREPOSITIONS and "," in tokens[start:end]:
        start = tokens.index(",", start) + 1
    for at in range(start, end):
        if is_word(tokens[at]) and tokens[at] not in _LEADING:
            return at
    return end - 1


def _summed(marks: list[bool]) -> list[int]:
    return list(accumulate(marks, initial=0))


def is_word(token: str) -> bool:
    """Whether a token is a word or number, not a mark or quotation."""
    return token[0].isalnum()
