"""Texts as tokens: words, marks, and literals that stand for themselves."""

from __future__ import annotations

import re
from typing import Final

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
