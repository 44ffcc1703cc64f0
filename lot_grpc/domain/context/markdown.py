"""Embeds stored text in Markdown safely.

Text that a caller stored is later read by another agent as part of a prompt. So a stored text must
not begin a heading, end a code fence or look like a section, and it must read as it was stored. A
single line follows a label and ends its line: then no block can begin in it and nothing that it
leaves open reaches further; what Markdown would take for HTML or an image is put in a code span.
Texts of several lines and code go below the label, in a fence that is longer than any in them and
whose lines are all indented. Long meaningless runs, such as base64, are shortened, with a note.
"""

from __future__ import annotations

import re
import unicodedata
from datetime import UTC, datetime
from typing import Final

SHORTENED: Final = "[…]"
"""Marks where the rest of a text was omitted."""

_HIDDEN: Final = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u202a-\u202e\u2066-\u2069\ufeff\U000e0000-\U000e007f]"
)
"""Invisible characters: controls (except line breaks), overrides of the writing direction, which
would reverse the following text, and tags, which spell letters invisibly."""

_TAG: Final = re.compile(r"<(?=[A-Za-z/!?])")
_IMAGE: Final = re.compile(r"!(?=\[)")
_NOISE: Final = re.compile(
    r"""
    (?<![A-Za-z0-9+/_-]) (?=[A-Za-z0-9+/_-]{60}) (?=[A-Za-z0-9+/_-]*[A-Za-z0-9+]{40})   # no path
        [A-Za-z0-9+/_-]{60,}={0,2}(?:\s+[A-Za-z0-9+/_-]{60,}={0,2})*
        (?:\s+[A-Za-z0-9+/_-]+={1,2})?                     # base64, base64url, hex
    | (?<![0-9A-Fa-f]) (?:(?:[0-9A-Fa-f]{2}){1,2}[\s:,]+){48,}  # a dump in hex
    | (?:(?:\\x|%|0x)[0-9A-Fa-f]{2}[,\s]*|\\u[0-9A-Fa-f]{4}){24,}   # escapes
    | (?<![\d.]) (?:[-+]?\d+(?:\.\d+)?(?:[Ee][-+]?\d+)?[,;\s]+){48,}  # a vector
    | (?=\S{160}) (\S{1,4}?)\1{63,}  # a bar
    | \s{160,}
    """,
    re.VERBOSE,
)
_MAYBE_NOISE: Final = re.compile(r"\S{60}|[0-9A-Fa-fux\\%.,;:\s+-]{96}")
"""A quick test that all noise passes, and hardly any other text: a tenth of the work."""

_NOISE_LEAST: Final = 160
_NOISE_KEPT: Final = 40
"""Minimum length of noise to shorten, and the characters kept, which still show what it is."""

_BACKTICKS: Final = re.compile("`+")
_LINE_ENDS: Final = re.compile("\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_JOINERS: Final = "\u200d\ufe0e\ufe0f"


def inline(text: str, most: int) -> str:
    """A text on one line, at most ``most`` of its characters: as it is, or as a code span."""
    return inline_and_cut(text, most)[0]


def inline_and_cut(text: str, most: int) -> tuple[str, bool]:
    """The same, and whether it was shortened."""
    line, cut, unread = _without_noise(text, 4 * most + 1024)
    if not line.isprintable():
        line = _HIDDEN.sub("", line)
    parts = [part.strip() for part in _LINE_ENDS.split(line)]
    line, mark = " ".join(filter(None, parts)), ""
    if unread or len(line) > most:
        line, mark = beginning(line, most), f" {SHORTENED}"
    if _TAG.search(line) or _IMAGE.search(line):
        line = span(line)
    return line + mark, cut or bool(mark)


def of_several_lines(text: str) -> bool:
    """Whether it has a line break other than at its ends."""
    return _LINE_ENDS.search(text.strip()) is not None


def stored(before: str, text: str, most: int) -> tuple[list[str], bool]:
    """The lines of a stored text after a label, and whether it was shortened; none if it is empty.

    It is on the label's line, or below it in a fence if it has several.
    """
    line, cut = inline_and_cut(text, most)
    if not line:
        return [], False
    if not of_several_lines(text):
        return [f"{before}: {line}"], cut
    lines, cut = fenced(text, "", most, " " * 4)
    return [f"{before}:", *lines], cut


def _without_noise(text: str, most: int) -> tuple[str, bool, bool]:
    """The beginning of a text, its noise shortened, and whether any was; then, if more follows."""
    read, at, cut = "", 0, False
    while at < len(text) and len(read) < most:
        end = min(len(text), at + most + _NOISE_LEAST)
        maybe = _MAYBE_NOISE.search(text, at, end)
        noise = _NOISE.search(text, at, end) if maybe else None
        if noise is not None and end - noise.end() < _NOISE_LEAST:
            noise = _NOISE.match(text, noise.start()) or noise
        start, end = noise.span() if noise is not None else (end, end)
        read, at = read + text[at:start], end
        if end - start < _NOISE_LEAST:
            read += text[start:end]
        else:
            cut, left_out = True, end - start - _NOISE_KEPT
            read += f"{text[start : start + _NOISE_KEPT]}[… {left_out:,} characters omitted]"
            read += " " * text[end - 1].isspace()
    return read, cut, at < len(text)


def beginning(text: str, most: int) -> str:
    """At most ``most`` characters of a text, up to the end of a word if one ends shortly before."""
    end = _character_end(text, most)
    space = text.rfind(" ", 0, end + 1)
    if space > 0.8 * end:
        end = space
    return text[:end].rstrip()


def _character_end(text: str, end: int) -> int:
    """The last position up to ``end`` that is not inside a visible character."""
    end = min(end, len(text))
    while 0 < end < len(text) and (_attached(text[end]) or text[end - 1] == "\u200d"):
        end -= 1
    return end


def _attached(character: str) -> bool:
    """Whether it belongs to the character before it."""
    return (
        character in _JOINERS
        or unicodedata.category(character) in ("Mn", "Me", "Mc")
        or ("\U0001f3fb" <= character <= "\U0001f3ff")
    )


def fenced(code: str, language: str, most: int, indent: str) -> tuple[list[str], bool]:
    """The lines of a code block, and whether it was shortened.

    It is cut to whole lines, except within a line that is most of it. ``most``: characters of code.
    """
    code, noisy, unread = _without_noise(code, most + 1)
    lines = [_HIDDEN.sub("", line) for line in _LINE_ENDS.split(code[: most + 1].strip("\r\n"))]
    kept: list[str] = []
    left = most
    for line in lines:
        if len(line) > left:
            if left > 0 and (not kept or len(line) > most // 2):
                kept.append(beginning(line, left))
            break
        kept.append(line)
        left -= len(line) + 1
    cut = unread or len(kept) < len(lines) or len(code) > most
    longest = max((len(run) for run in _BACKTICKS.findall(code)), default=0)
    fence = "`" * max(3, longest + 1)
    info = re.sub(r"[^A-Za-z0-9+#.-]", "", language)[:32]
    return [
        f"{indent}{fence}{info}",
        *(f"{indent}{line}" if line else "" for line in kept),
        *([f"{indent}{SHORTENED}"] if cut else []),
        f"{indent}{fence}",
    ], cut or noisy


def span(text: str) -> str:
    """An id or a single line of text as a code span, in which it reads unchanged."""
    ticks = "`" * (1 + max((len(run) for run in _BACKTICKS.findall(text)), default=0))
    pad = " " * (text.startswith("`") or text.endswith("`"))
    return f"{ticks}{pad}{text}{pad}{ticks}"


def day(micros: int) -> str:
    """The day of an instant (microseconds since 1970), in UTC."""
    return datetime.fromtimestamp(micros / 1_000_000, UTC).date().isoformat()
