"""The signatures of an error: its statements without what varies from case to case.

The same error at another place, on another machine or with another name has the same signature.
Two missing modules share one: the difference is in the messages themselves (``differences``). An
error has up to six, the most specific first, since a log contains more than its error; a message of
generic words has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Final

from lot_grpc.domain.error_text.alike import OWN, alike, overlap, states_no_reason
from lot_grpc.domain.error_text.line import short_type
from lot_grpc.domain.error_text.parts import LeftOut, TakenApart, taken_apart
from lot_grpc.domain.error_text.statements import (
    Statement,
    first_line,
    sentence,
    statements_of,
)
from lot_grpc.domain.error_text.vocabulary import telling_words
from lot_grpc.domain.error_text.weighing import names_in, weight_of
from lot_grpc.domain.ids import content_hash
from lot_grpc.domain.text_form import normal_form

VERSION: Final = 5
"""Increased whenever a rule changes. At the next start, signatures of another version are
recomputed from the messages, which are stored unchanged (``services.derived_data``)."""

_KEPT_CHARACTERS: Final = 512
"""Messages up to this many characters are cached."""

_LONGEST: Final = 400
"""Characters of a signature; the rest of a longer one is hashed."""

_CAUSE_WORDS: Final = 3
"""Minimum number of specific words for a cause to identify an error."""

_UNRELATED: Final = 3
"""A line before this many different errors is a wrapper."""

_BESIDES: Final = 1.75
"""Weight of further common statements that makes two errors the same whose first statements only
overlap."""

_OVERLAP: Final = 0.5
"""The minimum overlap of those first statements."""

_ANY: Final = frozenset({"Error", "Exception", "error", "exception"})
"""Types that say nothing; a type in the message is better."""


@dataclass(frozen=True, slots=True)
class Signature:
    """``text`` is ``Type: message``, ``left_out`` the omitted parts, ``line`` the original line."""

    text: str
    left_out: tuple[LeftOut, ...]
    line: str

    @property
    def names(self) -> tuple[LeftOut, ...]:
        """The omitted parts, and the names in its text."""
        return names_in(self.text, self.left_out)


@dataclass(frozen=True, slots=True)
class ErrorRead:
    """An error's signatures, the most specific first; none for an error that says nothing.

    ``line`` says what went wrong: the line of the first signature, else the message's first line.
    """

    signatures: tuple[Signature, ...]
    line: str
    cause: str = ""
    """The signature of the last part of the most specific line, if that is a chain of causes
    (``cannot start: cannot read settings: permission denied for user 'a'``); "" for no chain."""

    @property
    def signature(self) -> str:
        """The most specific signature; "" if there is none."""
        return self.signatures[0].text if self.signatures else ""

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """The parts that the most specific one omits."""
        return self.signatures[0].left_out if self.signatures else ()


def read_error(error_type: str, message: str) -> ErrorRead:
    """Read an error. ``error_type`` may be empty: then it is taken from the message.

    Only the last part of a qualified name counts (``asyncio.exceptions.TimeoutError``,
    ``java.net.ConnectException``).
    """
    remembered = _long_ones if len(message) > _KEPT_CHARACTERS else _remembered
    return remembered(error_type, message)


@lru_cache(4096)
def _remembered(error_type: str, message: str) -> ErrorRead:
    """``read_error`` for short messages, cached: the same failures occur again and again."""
    return _read(error_type, message)


@lru_cache(32)
def _long_ones(error_type: str, message: str) -> ErrorRead:
    """``read_error`` for long messages, cached: a save reads the same one several times."""
    return _read(error_type, message)


def _read(error_type: str, message: str) -> ErrorRead:
    given, message = short_type(normal_form(error_type)), normal_form(message)
    stated = statements_of(message)
    if not stated:
        first = first_line(message)
        alone = Statement(first, taken_apart(first.text))
        line = _signature(given, alone)
        kind = given if given not in _ANY else short_type(first.type)
        if not telling_words(kind) and not telling_words(alone.apart.text):
            return ErrorRead((), line.line)
        stated = [alone]
    signatures = [_signature(given, one) for one in stated]
    cause = _cause(signatures[0])
    if cause is not None:
        signatures.append(cause)
    each = {one.text: one for one in reversed(signatures)}
    return ErrorRead(
        tuple(each.values())[::-1], signatures[0].line, cause.text if cause is not None else ""
    )


def _cause(signature: Signature) -> Signature | None:
    """The last part of a chain of causes, if it is specific enough."""
    head, colon, last = signature.line.rpartition(": ")
    if not colon or ": " not in head:
        return None
    last = sentence(last)
    apart = taken_apart(last)
    if len(telling_words(apart.text)) < _CAUSE_WORDS:
        return None
    return Signature(apart.text, apart.left_out, last)


def _signature(given: str, stated: Statement) -> Signature:
    headline, apart = stated.headline, stated.apart
    named, text = short_type(headline.type), headline.text
    if given in _ANY and named:
        given = named
    if given and named and given != named:
        text = f"{named}: {text}"
        apart = TakenApart(f"{named}: {apart.text}", apart.left_out)
    elif given and not named:
        head, colon, rest = text.partition(":")
        if short_type(head) == given and (colon or head == text):
            text = rest
            apart = taken_apart(text)
    kind = given or named
    whole = f"{kind}: {apart.text}" if kind and apart.text else kind or apart.text
    if len(whole) > _LONGEST:
        whole = f"{whole[:_LONGEST]}…{content_hash(whole[_LONGEST:])[:12]}"
    line = f"{kind}: {text.strip()}" if kind and text.strip() else kind or text.strip()
    return Signature(whole, apart.left_out, line)


def same_error(
    one: ErrorRead, other: ErrorRead, little: AbstractSet[str] = frozenset()
) -> tuple[Signature, Signature] | None:
    """The signatures by which two errors are the same; None if they are different errors.

    The most specific one of either, or its cause, must be one of the other's, or say the same as
    one of them (``alike``). ``little`` are signatures that are not enough for that: then the errors
    must share another one. If the common statements say only what could not be done, and each error
    gives a different reason, they are different. Without a common statement they are still the same
    if their most specific ones overlap and they have enough further statements in common.
    """
    first = {one.signature, one.cause, other.signature, other.cause} - {""}
    equal, agreed = [], []
    for each, match in product(one.signatures, other.signatures):
        if each.text == match.text:
            equal.append((each, match))
        elif (each.text == one.signature and match.text == other.signature) or min(
            weight_of(each.text), weight_of(match.text)
        ) >= OWN:
            agreed.append((each, match))
    telling = any(each.text in first for each, _ in equal)
    if telling:
        equal.sort(key=lambda pair: pair[0].text not in first)
        agreed = [pair for pair in equal if pair[0].text not in little]
    else:
        agreed = [
            (each, match)
            for each, match in agreed
            if (each.text in first or match.text in first)
            and not {each.text, match.text} & little
            and alike(each.text, match.text)
        ]
    for pair in agreed:
        if not _contradicted(one, other, pair):
            return pair
    if agreed or telling or overlap(one.signature, other.signature) < _OVERLAP:
        return None
    besides = [
        (each, match)
        for each, match in product(one.signatures[1:], other.signatures[1:])
        if not {each.text, match.text} & little
        and (each.text == match.text or alike(each.text, match.text))
    ]
    weight = sum(weight_of(each.text) for each, _ in besides)
    return besides[0] if weight >= _BESIDES else None


def same_errors(
    one: ErrorRead, others: Sequence[ErrorRead], little: AbstractSet[str] = frozenset()
) -> list[tuple[Signature, Signature] | None]:
    """``same_error`` for each of several errors; those with equal texts are compared once."""
    places: dict[tuple[str, ...], tuple[int, int] | None] = {}
    pairs: list[tuple[Signature, Signature] | None] = []
    for other in others:
        texts = (other.cause, *(signature.text for signature in other.signatures))
        if texts not in places:
            pair = same_error(one, other, little)
            places[texts] = pair and (
                one.signatures.index(pair[0]),
                other.signatures.index(pair[1]),
            )
        place = places[texts]
        pairs.append(place and (one.signatures[place[0]], other.signatures[place[1]]))
    return pairs


def _contradicted(one: ErrorRead, other: ErrorRead, by: tuple[Signature, Signature]) -> bool:
    """Whether two errors agree only in what could not be done, but not in the reason."""
    if not all(states_no_reason(each.text) for each in by):
        return False
    left, right = (
        [each.text for each in error.signatures if each.text not in (described.text, error.cause)]
        for error, described in zip((one, other), by, strict=True)
    )
    return bool(left and right) and not any(
        each == match or alike(each, match) for each, match in product(left, right)
    )


def wrappers(error: ErrorRead, stored: Sequence[ErrorRead]) -> AbstractSet[str]:
    """Which of an error's signatures say little among the errors of a namespace.

    Such a signature precedes ``_UNRELATED`` errors that otherwise have different statements, like
    the line that a deployment script prints whatever failed.
    """
    return {
        one.text
        for one in error.signatures
        if len({_next_to(each, one.text) for each in stored} - {""}) >= _UNRELATED
    }


def _next_to(error: ErrorRead, signature: str) -> str:
    """An error's most specific statement, apart from this signature."""
    if error.signature != signature or len(error.signatures) == 1:
        return ""
    return error.signatures[1].text


def normalised(text: str) -> str:
    """One line without what varies from case to case."""
    return taken_apart(text).text
