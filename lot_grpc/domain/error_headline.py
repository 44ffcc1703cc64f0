"""The line of an error message, or of a whole stack trace, that says what went wrong.

Of several errors in a trace the one that caused the others counts: Java's last ``Caused by``,
Node's last ``[cause]``, the end of Python's last traceback. Every rule reads a line from its
beginning and none looks further than a line, and lines are read to a bound, so that the time is
linear in the message.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from lot_grpc.domain.error_line import ANY_TYPED, CODED, THREAD, TYPED, Headline, typed
from lot_grpc.domain.error_tools import READERS, maven_error, with_symbol

_LONGEST_LINE = 1024
"""Characters of a line that are read; what lies behind is no part of a signature."""

_LINES = 1000
"""So many lines are read from the beginning, and so many from the end."""

_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]{0,2000}(?:\x07|\x1b\\)")
"""Colours, and the links that compilers give to terminals."""

_LOGGED = re.compile(
    r"(?:\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)? ?"
    r"|#\d{1,4} (?:\d+\.\d+ )?)(?:##\[error\])?"
)
"""What a build server or a container build puts before every line."""

_GROUP = "Exception Group Traceback"
_GROUP_MARGIN = re.compile(r"[ \t]*(?:\+-[+-].*|[|+] ?)")
"""What Python draws to the left of the members of an exception group, and between them."""

_TRACEBACK = "Traceback (most recent call last):"
_CAUSES = re.compile(r"[ \t]*(?:Caused by:|\[cause\]:|caused by:)[ \t]*(?=\S)")
_GO = re.compile(r"[ \t]*(?:panic: |fatal error: )(?=\S)")
_RUST_NEW = re.compile(r"thread '[^']*' (?:\(\d+\) )?panicked at [^'\s]\S*:$")
_RUST_OLD = re.compile(r"thread '[^']*' panicked at '(.*)', \S+:\d+:\d+$")
_PYTHON_FRAME = re.compile(r"[ \t]+File \"[^\"]+\", line \d+")
_FRAME = re.compile(r"[ \t]+at \S|[ \t]+File \"|goroutine \d|[ \t]+\.\.\. \d+ more")
_PLACE = re.compile(r"(?:vet: )?(?:[A-Za-z]:)?[\w./\\@-]+\.[A-Za-z]\w{0,5}:\d+(?::\d+)?: (?=\S)")
"""A file and its line before what is wrong there, as Go and many linters print."""

_TOOL = re.compile(r"ERROR: (?=\S)|\w{0,5}make(?:\[\d+\])?: \*\*\* (?!\[.*\] Error \d)(?=\S)")
_SHELL = re.compile(
    r"(?:\S+: )?(?:line \d+: |\d+: )?[^\s:]+: (?:command )?not found$|\S+: command not found: \S+$"
    r"|(?:\S+: )*\S+: (?:No such file or directory|Permission denied)$"
)

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


def headline_of(message: str) -> Headline:
    """The headline of a message. A message without one counts by its first line."""
    given = _ESCAPES.sub("", message).splitlines()
    if len(given) > 2 * _LINES:
        given = given[:_LINES] + given[-_LINES:]
    lines = [line[:_LONGEST_LINE].rstrip() for line in given]
    if any(_GROUP in line for line in lines):
        lines = [_GROUP_MARGIN.sub("", line, count=1) for line in lines]
    lines = [line for line in lines if line]
    if len(lines) > 1 and sum(_LOGGED.match(line) is not None for line in lines) > len(lines) // 2:
        lines = [line for line in (_LOGGED.sub("", one, count=1) for one in lines) if line]
    if not lines:
        return Headline("", "")
    found = (read(lines) for read in (_panicked, *READERS, _caused, _after_traceback, maven_error))
    return next((one for one in found if one is not None), None) or _thrown(lines)


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
            return typed(line[found.end() :])
    return None


def _after_traceback(lines: Sequence[str]) -> Headline | None:
    """The first line behind the last Python traceback that is not indented any more.

    An error of syntax comes without the traceback's own line.
    """
    last = max((n for n, line in enumerate(lines) if _TRACEBACK in line), default=None)
    if last is None:
        if not _PYTHON_FRAME.match(lines[0]):
            return None
        last = 0
    for line in lines[last + 1 :]:
        if line[0].strip():
            found = ANY_TYPED.match(line)
            return Headline(found[1], found[2] or "") if found else typed(line)
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
    """The line above the first frame; else the first one that says what is wrong; else the first.

    What a linker, a shell or make says counts where no compiler and no program says more.
    """
    frames = [n for n, line in enumerate(lines) if _FRAME.match(line)]
    above = lines[: frames[0]] if frames and frames[0] else lines
    for rules in ((THREAD, CODED, TYPED), (_TOOL, _SHELL, _PLACE)):
        for number, line in enumerate(above):
            if any(rule.match(line) for rule in rules):
                return with_symbol(_bare(line, above[number + 1 :]), lines[number + 1 :])
    return _bare(above[0], above[1:])


def _bare(line: str, behind: Sequence[str]) -> Headline:
    """A line without its place and the tool; with the next one where it only announces that."""
    for rule in (_PLACE, _TOOL):
        if found := rule.match(line):
            line = line[found.end() :]
    if line.endswith(":") and behind:
        line = f"{line} {behind[0].strip()}"
    return typed(line)
