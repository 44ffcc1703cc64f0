"""Regular expressions from callers and operators: RE2, which takes linear time for any input.

The only module that knows the library. A regular expression of a caller (``Regex``) is
case-insensitive, compares NFC with NFC and may match anywhere in a text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final

import re2

from lot_grpc.domain.errors import invalid
from lot_grpc.domain.text_form import normal_form

MOST_CHARACTERS: Final = 4_096
"""Characters of a text that are searched: a match over a longer one would block other calls."""

_PROGRAM_BYTES: Final = 256 * 1024
"""Memory of one compiled expression, including its automata. One that needs more is refused."""

_CACHE_SIZE: Final = 1_024
"""How many recently used compiled expressions are cached: as many as a recall tries in a namespace.
With a smaller cache, each recall would compile all of them again. A typical one takes 11 KB
(measured), so all take 11 MiB. The largest take ``_PROGRAM_BYTES``, so at most 256 MiB."""


class Regex:
    """A compiled regular expression."""

    def __init__(self, text: str) -> None:
        """Compile it. Raises ValueError with RE2's own reason."""
        options = re2.Options()
        options.case_sensitive = False
        options.max_mem = _PROGRAM_BYTES
        options.log_errors = False
        try:
            self._compiled = re2.compile(normal_form(text), options)
        except re2.error as error:
            raise ValueError(_reason(error)) from None

    def matches(self, text: str) -> bool:
        """Whether it matches anywhere in the first ``MOST_CHARACTERS`` of a text."""
        return self._compiled.search(normal_form(text[:MOST_CHARACTERS])) is not None


class SpanRegex:
    """An expression whose matches are located in UTF-8 text of any length. Case matters."""

    def __init__(self, text: str) -> None:
        """Compile it. Raises ValueError with RE2's own reason."""
        options = re2.Options()
        options.log_errors = False
        try:
            self._compiled = re2.compile(text, options)
        except re2.error as error:
            raise ValueError(_reason(error)) from None

    def spans(self, text: bytes) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
        """Of each match: its span, and that of its first group that took part (its own if none)."""
        for match in self._compiled.finditer(text):
            number = match.lastindex or 0
            for group in range(1, number):
                if match.start(group) >= 0:
                    number = group
                    break
            yield match.span(), match.span(number)

    def occurs_in(self, text: bytes) -> bool:
        """Whether it matches anywhere."""
        return self._compiled.search(text) is not None


class Literals:
    """Tells which of many literals occur in bytes, in one pass. ASCII case does not matter."""

    def __init__(self, literals: Iterable[str]) -> None:
        options = re2.Options()
        options.case_sensitive = False
        options.encoding = re2.Options.Encoding.LATIN1  # any bytes are valid
        options.literal = True
        self._set = re2.Set.SearchSet(options)
        self._any = False
        for literal in literals:
            self._set.Add(literal.encode())
            self._any = True
        self._set.Compile()

    def found(self, text: bytes) -> list[int]:
        """Indexes of those that occur."""
        return (self._set.Match(text) or []) if self._any else []


@lru_cache(maxsize=_CACHE_SIZE)
def compiled(text: str) -> Regex:
    """The compiled expression of a text. Raises ValueError if RE2 refuses it."""
    return Regex(text)


def check_regex(text: str, field: str) -> None:
    """Raise RequestInvalidError if RE2 refuses the expression; an empty one is accepted."""
    if not text:
        return
    try:
        compiled(text)
    except ValueError as error:
        raise invalid(
            field,
            "regex.re2",
            f"RE2 rejects this regular expression: {error}; see github.com/google/re2/wiki/Syntax",
        ) from None


def _reason(error: Exception) -> str:
    """RE2's reason, which is bytes that may be cut within a UTF-8 character."""
    problem = error.args[0] if error.args else ""
    return problem.decode(errors="replace") if isinstance(problem, bytes) else str(problem)
