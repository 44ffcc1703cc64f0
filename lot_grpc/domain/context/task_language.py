"""The programming language of a task: from what only its tools print, or from its name."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_READ: Final = 8_192
"""Characters of a long task, half of them at each end."""

_MARKS: Final = {
    ("python",): re.compile(
        r"Traceback \(most recent call last\):|^[ \t]*File \"[^\"\n]+\", line \d|\w\.py:\d"
        r"|\bNo module named \S|\b(?:ModuleNotFound|Import|Attribute|Key|Indentation|Name|Index"
        r"|ZeroDivision|UnicodeDecode|UnicodeEncode|FileNotFound|Permission|ConnectionRefused"
        r"|NotImplemented|Recursion|Value|Tab|OS)Error\b(?!\.)"
        r"|\bobject (?:is not \w+able|has no attribute)\b|'NoneType' object"
        r"|\brequired positional argument|^ERROR: (?:Could not|No matching distribution)"
        r"|\bsetup\.py\b|\bBuilding wheel\b",
        re.MULTILINE,
    ),
    ("javascript", "typescript"): re.compile(
        r"\bnode:internal\b|\w\.[cm]?[jt]sx?[:(]\d|\bCannot find (?:module|package) ['\"]"
        r"|^npm (?:ERR!|error) |\bReferenceError: \w+ is not defined|\bERR_[A-Z]+_[A-Z_]+"
        r"|\bCannot read propert(?:y|ies) |\bis not a function\b|\bUnhandledPromiseRejection"
        r"|\bTS\d{4,5}\b|\b(?:connect|listen|getaddrinfo|spawn) E[A-Z]{4,}",
        re.MULTILINE,
    ),
    ("go",): re.compile(
        r"\w\.go:\d|^panic: |^goroutine \d+ \[|\bno required module provides package\b|\bdial tcp\b"
        r"|^go: ",
        re.MULTILINE,
    ),
    ("rust",): re.compile(
        r"\berror\[E\d{4}\]|\w\.rs:\d|\bpanicked at\b|\bunresolved import `|\bcould not compile `"
        r"|\bcannot find \w+ `[^`\n]+` in (?:this scope|crate|module)|\bOs \{ code: \d"
    ),
    ("java", "kotlin", "scala"): re.compile(
        r"^Exception in thread \"|\bjavax?\.\w+\.|\w\.(?:java|kts?|scala):\[?\d"
        r"|^[ \t]+at [\w.$]+\(\w+\.(?:java|kt|scala)|\bcannot find symbol\b"
        r"|^Caused by: [a-z]\w*\.\w",
        re.MULTILINE,
    ),
    ("c", "cpp"): re.compile(
        r"\w\.(?:c|cc|cpp|cxx|h|hh|hpp):\d+(?::\d+)?: |\bundefined reference to [`']"
    ),
    ("csharp",): re.compile(r"\berror CS\d{4}\b|\w\.cs(?:\(\d|:line \d)|\bSystem\.\w+Exception\b"),
    ("ruby",): re.compile(r"\w\.rb:\d|\bNoMethodError\b|\bcannot load such file -- "),
    ("php",): re.compile(r"\bPHP (?:Fatal|Parse|Warning)|\w\.php(?::\d| on line \d)"),
}
"""By language; languages whose solutions work for each other share an entry."""


_NAMES: Final = {
    ("python",): re.compile(r"\b[Pp]ython[23]?\b|\basyncio\b"),
    ("javascript", "typescript"): re.compile(r"\b(?:[Tt]ype|[Jj]ava)[Ss]cript\b|\bNode(?:\.js)?\b"),
    ("go",): re.compile(
        r"\b[Gg]olang\b|\b[Gg]oroutines?\b|\b(?:in|with) Go\b"
        r"|\bGo (?:service|code|package|module|program|server|client|application|binary|gateway)\b"
    ),
    ("rust",): re.compile(r"\bRust\b|\b[Rr]ustc\b"),
    ("java", "kotlin", "scala"): re.compile(r"\bJava\b|\bKotlin\b|\bScala\b"),
    ("c", "cpp"): re.compile(r"(?<!\w)C\+\+(?!\w)"),
    ("csharp",): re.compile(r"(?<!\w)C#(?!\w)"),
    ("ruby",): re.compile(r"\bRuby\b"),
    ("php",): re.compile(r"\bPHP\b"),
}


@lru_cache(maxsize=8)
def languages_of(task: str) -> tuple[str, ...]:
    """The language of the task, with those that count as the same; empty if unclear or several.

    An error in the task takes precedence over a name. Cached, since the search for every kind needs
    it.
    """
    if len(task) > _READ:
        task = f"{task[: _READ // 2]}\n{task[-_READ // 2 :]}"
    for table in (_MARKS, _NAMES):
        found = [languages for languages, marks in table.items() if marks.search(task)]
        if found:
            return found[0] if len(found) == 1 else ()
    return ()
