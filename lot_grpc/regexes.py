"""Regular expressions from callers: RE2, which takes linear time for any input.

The only module that knows the library. A regular expression is case-insensitive, compares NFC
with NFC and may match anywhere in a text.
"""

from __future__ import annotations

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
