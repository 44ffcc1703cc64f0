"""The line of an error message that says what went wrong, and whether a text names an error."""

from __future__ import annotations

import re

from lot_grpc.domain.error_text.dress import ESCAPES
from lot_grpc.domain.error_text.line import Headline
from lot_grpc.domain.error_text.statements import first_line, statements_of

_MAX_PARSED = 16_384
"""Characters of a task that are read."""

_INFORMATIVE = re.compile(
    r"\b[A-Z][a-z]\w*(?:Error|Exception)\b"
    r"|Traceback \(most recent call last\)|^[ \t]*Caused by: \S"
    r"|^npm ERR!|^\w{0,5}make(?:\[\d+\])?: \*\*\* "
    r"|\berror(?:\[[A-Z]\w{1,12}\]| [A-Z]{1,6}\d{2,6}): \S|\bTS\d{4,5}\b"
    r"|^(?:[^\s:]{1,200}:\d+(?::\d+)?: )?(?:fatal |internal |syntax )?error: \S"
    r"|^panic: \S|\bpanicked at \S|\bgoroutine \d+ \["
    r"|\bE(?:ACCES|ADDRINUSE|AGAIN|BUSY|CONNABORTED|CONNREFUSED|CONNRESET|EXIST|INVAL|ISDIR"
    r"|MFILE|NOENT|NOMEM|NOSPC|NOTDIR|NOTEMPTY|NOTFOUND|PERM|PIPE|ROFS|TIMEDOUT)\b"
    r"|\bERR_[A-Z]{2,}[A-Z_]{0,60}\b|\b[Ee]rrno \d"
    r"|\b(?:exit(?:ed)?(?: with)? (?:code|status)|exited with) [1-9]"
    r"|: command not found\b|\bcommand not found: \S|: No such file or directory\b"
    r"|: [Pp]ermission denied\b|\b[Ss]egmentation fault\b|\bcore dumped\b"
    r"|\bNo module named \S|\bCannot find (?:module|name) \S|\b[Cc]onnection refused\b"
    r"|\bundefined (?:reference to|symbol:|method) \S|\bcannot find symbol\b"
    r"|\b\w+ is not (?:defined|a function|iterable|assignable)\b",
    re.MULTILINE,
)
"""Signs of an error. No repetition is longer than a word, so that the time is linear."""


def headline_of(message: str) -> Headline:
    """The headline of a message: its main statement, else its first line."""
    stated = statements_of(message)
    return stated[0].headline if stated else first_line(message)


def looks_like_error(text: str) -> bool:
    """Whether a task names an error: contains a tool's error output, or a type of error.

    Conservative: mentioning errors in general ("show an error page", "handle exceptions") does not
    count. Of a long text both ends are read.
    """
    if len(text) > _MAX_PARSED:
        text = f"{text[: _MAX_PARSED // 2]}\n{text[-_MAX_PARSED // 2 :]}"
    return _INFORMATIVE.search(ESCAPES.sub("", text)) is not None
