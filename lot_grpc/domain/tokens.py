"""Texts as tokens: words, marks, and literals that stand for themselves."""

from __future__ import annotations

import re
from typing import Final

from lot_grpc.domain.text_form import normal_form

TOKEN: Final = re.compile(
    r"""
      [a-zA-Z][a-zA-Z0-9+.-]*://\S+(?<![.,;:!?)])     # a URL
    | [\w.+-]+@[\w-]+\.[\w.-]*\w                       # an address
    | "[^"\n]*" | `[^`\n]*` | “[^”\n]*”                # a quotation
    | (?<!\w)'[^'\n]+'(?!\w)
    | (?<!\w)(?:~|\.{1,2})?/[\w./-]*\w                 # a path
    | \w+(?:[/.-]\w+)*/\w+(?:[/.-]\w+)*
    | [$€£]?\d+(?:[.,]\d+)*%?(?!\w)                    # a number
    | \w+(?:['\u2019.-]\w+)*                           # a word
    | \S
    """,
    re.VERBOSE,
)

_LITERAL: Final = re.compile(r"[\d/@\"`“']")


def means_the_same_things(one: str, other: str) -> bool:
    """Whether two texts may be two wordings of one thing, as far as that can be told without them.

    They may not if their literals (numbers, quotations, URLs, addresses, paths, versions) differ or
    come in another order, nor if they have the same words in another order ("from Paris to Rome"):
    an embedding hardly sees either.
    """
    first, second = _words(one), _words(other)
    if _literals(first) != _literals(second):
        return False
    return first == second or sorted(first) != sorted(second)


def _words(text: str) -> list[str]:
    found = (match[0].casefold() for match in TOKEN.finditer(normal_form(text)))
    return [token for token in found if len(token) > 1 or token.isalnum()]


def _literals(tokens: list[str]) -> list[str]:
    return [token for token in tokens if _LITERAL.search(token.replace("'s", ""))]
