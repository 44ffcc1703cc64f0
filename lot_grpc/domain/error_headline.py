"""The line of an error message, or of a whole stack trace, that says what went wrong.

Of several errors in a trace the one that caused the others counts: Java's last ``Caused by``,
Node's last ``[cause]``, the end of Python's last traceback. Every rule reads a line from its
beginning and none looks further than a line, and lines are read to a bound, so that the time is
linear in the message.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_LONGEST_LINE = 1024
"""Characters of a line that are read; what lies behind is no part of a signature."""

_LINES = 1000
"""So many lines are read from the beginning, and so many from the end."""

_ESCAPES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_GROUP = "Exception Group Traceback"
_GROUP_MARGIN = re.compile(r"[ \t]*(?:\+-[+-].*|[|+] ?)")
"""What Python draws to the left of the members of an exception group, and between them."""

_TRACEBACK = "Traceback (most recent call last):"
_CAUSES = re.compile(r"[ \t]*(?:Caused by:|\[cause\]:|caused by:)[ \t]*(?=\S)")
_THREAD = re.compile(r'Exception in thread "[^"]*" ')
_GO = re.compile(r"[ \t]*(?:panic: |fatal error: )(?=\S)")
_RUST_NEW = re.compile(r"thread '[^']*' (?:\(\d+\) )?panicked at [^'\s]\S*:$")
_RUST_OLD = re.compile(r"thread '[^']*' panicked at '(.*)', \S+:\d+:\d+$")
_FRAME = re.compile(r"[ \t]+at \S|[ \t]+File \"|goroutine \d|[ \t]+\.\.\. \d+ more")
_CODED = re.compile(r"(?:.*?[\s:])??error(?:\[([A-Z]\w{1,12})\]| ([A-Z]{1,6}\d{1,6}))?: (?=\S)")
"""A compiler's line: ``error[E0382]: …``, ``src/a.ts(3,5): error TS2322: …``, ``error: …``."""

_TYPE = (
    r"(?:[A-Za-z_][\w$]*(?:\.|::|/))*"
    r"(?:[A-Za-z_]\w*(?:Error|Exception|Warning|Fault|Failure|Interrupt|Timeout|Exit|Panic|Group)"
    r"|Error|Exception)"
)
_TYPED = re.compile(
    rf"(?:Uncaught |Unhandled |uncaught )?({_TYPE})(?: \[([A-Z]\w*)\])?(?:: ?(.*)|$)"
)
_ANY_TYPED = re.compile(r"([A-Za-z_][\w.$]*)(?:: ?(.*)|$)")
"""Behind a Python traceback whatever stands there is the type, however it is called."""

_SYSTEM_CODE = re.compile(r"(E[A-Z]{3,20}[0-9]?|ERR_[A-Z_]{2,60})(?:: ?| )(.*)")
_SYSTEM_CALL = re.compile(r"[a-z]\w{1,30}(?: \S{1,200})? (E[A-Z][A-Z_]{2,20})\b")
"""``connect ECONNREFUSED …``, ``getaddrinfo ENOTFOUND …``, ``spawn x ENOENT``."""

_CODE_ALONE = re.compile(r"([A-Z]{1,6}\d{2,6}): (.*)")


_TOLD = 16_384
"""Characters of a task that are looked at."""

_TELLS = re.compile(
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
"""What names an error. No repetition is longer than a word, so that the time is linear."""


@dataclass(frozen=True, slots=True)
class Headline:
    """``type`` as it stands in the message, "" where it names none; the ``text`` behind it."""

    type: str
    text: str


def headline_of(message: str) -> Headline:
    """The headline of a message. A message without one counts by its first line."""
    given = _ESCAPES.sub("", message).splitlines()
    if len(given) > 2 * _LINES:
        given = given[:_LINES] + given[-_LINES:]
    lines = [line[:_LONGEST_LINE].rstrip() for line in given]
    if any(_GROUP in line for line in lines):
        lines = [_GROUP_MARGIN.sub("", line, count=1) for line in lines]
    lines = [line for line in lines if line]
    if not lines:
        return Headline("", "")
    return _caused(lines) or _after_traceback(lines) or _panicked(lines) or _thrown(lines)


def looks_like_error(text: str) -> bool:
    """Whether a task names an error: has what a tool prints when it fails, or a type of error.

    Cautious: who speaks of errors in general ("show an error page", "handle exceptions") names
    none. Of a long text both ends are read.
    """
    if len(text) > _TOLD:
        text = f"{text[: _TOLD // 2]}\n{text[-_TOLD // 2 :]}"
    return _TELLS.search(_ESCAPES.sub("", text)) is not None


def _caused(lines: Sequence[str]) -> Headline | None:
    """The last cause that a trace names."""
    for line in reversed(lines):
        if found := _CAUSES.match(line):
            return _typed(line[found.end() :])
    return None


def _after_traceback(lines: Sequence[str]) -> Headline | None:
    """The first line behind the last Python traceback that is not indented any more."""
    last = max((n for n, line in enumerate(lines) if _TRACEBACK in line), default=None)
    if last is None:
        return None
    for line in lines[last + 1 :]:
        if line[0].strip():
            found = _ANY_TYPED.match(line)
            return Headline(found[1], found[2] or "") if found else _typed(line)
    return None


def _panicked(lines: Sequence[str]) -> Headline | None:
    """What Go or Rust panicked with."""
    for n, line in enumerate(lines):
        if found := _RUST_OLD.match(line):
            return Headline("panic", found[1])
        if _RUST_NEW.match(line):
            return Headline("panic", lines[n + 1].strip() if n + 1 < len(lines) else "")
    panics = [line for line in lines if _GO.match(line)]
    if not panics:
        return None
    head, _, text = panics[-1].strip().partition(": ")
    return Headline(head, text.removesuffix(" [recovered]"))


def _thrown(lines: Sequence[str]) -> Headline:
    """The line above the first frame; else the first one that names a type; else the first."""
    frames = [n for n, line in enumerate(lines) if _FRAME.match(line)]
    above = lines[: frames[0]] if frames else lines
    for line in above:
        if _THREAD.match(line) or _CODED.match(line) or _TYPED.match(line):
            return _typed(line)
    first = (above or lines)[0]
    if first.endswith(":") and len(above) > 1:
        first = f"{first} {above[1].strip()}"
    return _typed(first)


def _typed(line: str) -> Headline:
    """A line parted into the type that it begins with and the rest."""
    line = line.strip()
    if found := _THREAD.match(line):
        line = line[found.end() :]
    if (found := _CODED.match(line)) and not _TYPED.match(line):
        return Headline(found[1] or found[2] or "", line[found.end() :])
    if found := _CODE_ALONE.match(line):
        return Headline(found[1], found[2])
    if found := _SYSTEM_CODE.match(line):
        return Headline(found[1], found[2])
    if found := _SYSTEM_CALL.match(line):
        return Headline(found[1], line)
    if not (found := _TYPED.match(line)):
        return Headline("", line)
    text = found[3] or ""
    if found[1] == "Error" and found[2]:
        return Headline(found[2], text)
    if found[1] == "Error":  # as Node calls them all; the code says more
        coded = _typed(text) if _SYSTEM_CODE.match(text) or _SYSTEM_CALL.match(text) else None
        return coded or Headline(found[1], text)
    return Headline(found[1], text)
