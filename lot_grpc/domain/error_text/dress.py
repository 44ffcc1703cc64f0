"""Removes what a log, a terminal or a chat adds around an error, and leaves the lines themselves.

Whole texts first: colours, HTML entities, quotes with escapes, JSON and XML (``reports``). Then the
prefixes of lines: times, names of containers and units, numbers, quote marks, margins. A prefix
that could be part of an error is removed only if most lines have it. Prefixes are stacked (a build
server's time before a container's name), so this is repeated until nothing changes.

Every expression reads a line from its beginning and lines are limited, so the time is linear.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

from lot_grpc.domain.error_text.reports import report_text

_LONGEST_LINE: Final = 1024
"""Characters of a line that are read; the rest is not part of a signature."""

_LINES: Final = 1000
"""Number of lines read from the beginning, and from the end."""

_ROUNDS: Final = 6
_MOST: Final = 0.6
"""Minimum share of the lines with a prefix for it to count as one."""

ESCAPES: Final = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]{0,2000}(?:\x07|\x1b\\)|\x1b[()][A-Z0-9]"
)
"""Colours, and the links that compilers print on terminals."""

_ENTITY: Final = re.compile(r"&(?:lt|gt|quot|amp|apos|nbsp|#\d{1,5}|#x[0-9a-fA-F]{1,4});")
_TAG: Final = re.compile(r"</?(?:pre|code|br|p|div|span|samp|tt|b|i)(?: [^<>\n]{0,200})?/?>")
_WRAPPED: Final = re.compile(
    r"(?:[\w.]{1,60}\()?[bur]{0,2}(['\"])((?:(?!\1)[^\\]|\\.)*)\1,?\)?", re.DOTALL
)
"""In quotes as a whole."""

_ESCAPED: Final = re.compile(r"\\(?:u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|[nrtbf\"'\\/])")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_DRIVE: Final = re.compile(r"(?<!\w)[A-Za-z]:\\(?!\\)")
_SINGLE: Final = {"n": "\n", "r": "\r", "t": "\t", "b": "", "f": ""}

_CLOCK = r"\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?: ?(?:Z|UTC|GMT|[AP]M|[+-]\d\d:?\d\d))?"
_DATE = r"(?:\d{4}[-/.]\d\d[-/.]\d\d|\d\d[-/.]\d\d[-/.]\d{4}|\d\d/[A-Z][a-z]{2}/\d{4})"
_TIME = rf"(?:{_DATE}[T :,]{{1,2}}{_CLOCK}|{_CLOCK})"
_ALWAYS: Final = re.compile(
    "|".join(
        (
            r"<\d{1,3}>1 \S+ \S+ \S+ \S+ \S+ (?:-|\[[^\]]*\]) ?",
            r"(?:[A-Z][a-z]{2} )?[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?: \d{4})?"
            r"(?: (?!\[)[\w.-]+ \(?[\w./@-]+\)?(?:\[\d+\])?:)? ?",
            rf"{_TIME} (?:stdout|stderr) [FP] ?",
            r"\[?[IWEF]\d{0,4} \d\d:\d\d:\d\d\.\d+ +(?:\d+ )?[\w./-]+:\d+\] ?",
            rf"[\[(]?{_TIME}[\])]?(?: ?[-|,:] )?[ \t]?",
            r"\[\d{1,3}\.\d{1,9}s?\] ",
            r"\[(?:pod/)?[a-z0-9-]+/[\w./-]+\] ?",
            r"\[(?:default)?\d?\]?:?\[?rank\d+\]:? ?",
            r"##\[(?:error|group|endgroup|section|command|debug)\]",
            r"::error(?: [^:\n]{0,200})?::|::(?:group|endgroup)::",
            r"(?:section_(?:start|end):\d+:\S+ ?|\d\d[OE] ?(?=\S))",
            r"#\d{1,4} (?:\d+\.\d+ )?",
            r"[a-z][\w.-]*[-_]\d{1,3} {1,40}\| ?",
        )
    )
)
"""Never part of an error, wherever it stands at the beginning of a line."""

_MOSTLY: Final = tuple(
    re.compile(rule)
    for rule in (
        r"[ \t]*(?:>[ \t]?)+",
        r"[ \t]*\d{1,7}(?: ?[|:.)]| {2}|\t)[ \t]?",
        r"[\w./-]{1,60} *\| ?",
        r"[a-z][\w.-]{0,40}[-_]\d{1,3}: ",
        r"\+ (?=\S)",
        r"(?://|#|\*|--)[ \t]",
    )
)
"""A prefix where most lines have it: quote marks, numbers, names of services, comment marks."""

_GENERIC: Final = re.compile(r"[^\n]{1,60}?(?:\||\]:?|>|\u2502|::|: )[ \t]?")
_DIGITS: Final = re.compile(r"\d+")
_ERROR_WORD: Final = re.compile(
    r"err|fail|fatal|warn|exception|panic|info|note|undefined|cannot|/|\\|\.\w", re.IGNORECASE
)
_LEVEL: Final = re.compile(r"##\[warning\]|::warning(?: [^:\n]{0,200})?::")
_FENCE: Final = re.compile(r"[ \t]*(?:```|~~~)[\w+-]*[ \t]*$")
_CUT: Final = re.compile(
    r"[^\w\n]*(?:\d[\d,.]* )?"
    r"(?:(?:more|lines?|characters|chars|bytes|output|log|message|text|of)[ ,]{0,2}){0,5}"
    r"(?:was |were |is |are )?(?:truncated|omitted|snipp?(?:ed)?|elided|skipped|cut)\b[^\n]{0,60}$",
    re.IGNORECASE,
)
"""Marks of what was left out."""


def undressed(message: str) -> list[str]:
    """The lines of a message, trimmed on the right, none empty."""
    lines = _lines(report_text(_unquoted(_plain(message))))
    for _ in range(_ROUNDS):
        bare = _without_margin(_without_repeated(_without_prefixes(lines)))
        if bare == lines:
            break
        lines = bare
        if len(lines) == 1 or _is_json(lines):
            lines = _lines(report_text(_unquoted("\n".join(lines))))
    return lines


def _plain(text: str) -> str:
    """Without colours and HTML."""
    text = ESCAPES.sub("", text)
    if _ENTITY.search(text) or text.lstrip().startswith(("<pre", "<code", "<p>", "<div")):
        text = html.unescape(_TAG.sub("\n", text))
    return text


def _unquoted(text: str) -> str:
    """The contents of a text quoted and escaped as a whole, as in JSON, a ``repr`` or code."""
    bare = text.strip()
    if "\n" in bare or not bare or bare[0] in "{[":
        return text
    found = _WRAPPED.fullmatch(bare)
    if found and (" " not in found[2] or not ("\\" in found[2] or bare[0] in "'\"b")):
        found = None  # a name, or a call
    inner = found[2] if found else bare
    if inner.count("\\n") < (1 if found else 2) or (not found and _DRIVE.search(inner)):
        return inner
    return _ESCAPED.sub(_character, inner)


def _character(found: re.Match[str]) -> str:
    one = found[0][1:]
    return chr(int(one[1:], 16)) if one[0] in "ux" else _SINGLE.get(one, one)


def _lines(text: str) -> list[str]:
    if _SURROGATE.search(text):  # an escape may name half a character
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    given = text.splitlines()
    if len(given) > 2 * _LINES:
        given = given[:_LINES] + given[-_LINES:]
    lines = (line[:_LONGEST_LINE].rstrip() for line in given)
    return [line for line in lines if line and not _FENCE.match(line) and not _CUT.match(line)]


def _is_json(lines: Sequence[str]) -> bool:
    return bool(lines) and sum(line[0] in "{[" for line in lines) * 2 > len(lines)


def _without_prefixes(lines: Sequence[str]) -> list[str]:
    """The lines without prefixes that are never part of an error."""
    levelled = (_LEVEL.sub("warning: ", line, count=1) for line in lines)
    bare = (line[found.end() :] if (found := _ALWAYS.match(line)) else line for line in levelled)
    return [line for line in bare if line.strip()]


def _without_repeated(lines: Sequence[str]) -> list[str]:
    """The lines without a prefix that most of them have."""
    if len(lines) < 2:
        return list(lines)
    for rule in _MOSTLY:
        if sum(rule.match(line) is not None for line in lines) >= max(2, _MOST * len(lines)):
            bare = [rule.sub("", line, count=1) for line in lines]
            return [line for line in bare if line.strip()]
    if len(lines) < 4:
        return list(lines)
    shapes = Counter(shape for line in lines if (shape := _shape(line)))
    shape, count = shapes.most_common(1)[0] if shapes else ("", 0)
    if count < 0.8 * len(lines):
        return list(lines)
    bare = [_GENERIC.sub("", line, count=1) if _shape(line) == shape else line for line in lines]
    return [line for line in bare if line.strip()]


def _shape(line: str) -> str:
    """The text before the first mark, without numbers; "" if it may be an error."""
    found = _GENERIC.match(line)
    if found is None or _ERROR_WORD.search(found[0]) or found[0][0] in " \t":
        return ""
    return _DIGITS.sub("0", found[0])


def _without_margin(lines: Sequence[str]) -> list[str]:
    """The lines without their common indentation."""
    margin = min((len(line) - len(line.lstrip()) for line in lines), default=0)
    return [line[margin:] for line in lines] if margin else list(lines)
