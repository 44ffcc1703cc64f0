"""Stored text in Markdown that it cannot break.

What a caller stored once, another agent reads as part of a prompt. So a stored text must not begin
a heading, end a code fence or stand for a section of its own. All but code is put on one line,
behind a label, and is the last thing on its line: then no block can begin in it and nothing that it
leaves open reaches further. Code stands in a fence that is longer than any in it.
"""

from __future__ import annotations

import re
import unicodedata
from datetime import UTC, datetime
from typing import Final

SHORTENED: Final = "[…]"
"""Stands where the rest of a text was left out."""

_HIDDEN: Final = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u202a-\u202e\u2066-\u2069\ufeff\U000e0000-\U000e007f]"
)
"""What is not seen: controls (a line break is no such), overrides of the writing direction, which
would turn round what comes behind, and tags, which spell letters invisibly."""

_TAG: Final = re.compile(r"<(?=[A-Za-z/!?])")
_IMAGE: Final = re.compile(r"!(?=\[)")
_BACKTICKS: Final = re.compile("`+")
_LINE_ENDS: Final = re.compile("\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_JOINERS: Final = "\u200d\ufe0e\ufe0f"


def inline(text: str, most: int) -> str:
    """A text on one line, at most ``most`` of its characters.

    What would be HTML, a tag or a comment, is told by an entity; an image is made plain.
    """
    return inline_and_cut(text, most)[0]


def inline_and_cut(text: str, most: int) -> tuple[str, bool]:
    """The same, and whether it was shortened."""
    read = 4 * most + 1024
    line = text[:read]
    if not line.isprintable():
        line = _HIDDEN.sub("", line)
    line = " ".join(line.split())
    cut = len(text) > read or len(line) > most
    if cut:
        line = shortened(line, most)
    return _IMAGE.sub(r"!\\", _TAG.sub("&lt;", line)), cut


def shortened(text: str, most: int) -> str:
    """The beginning of a text, where a word ends if one does shortly before, and the mark."""
    end = _character_end(text, most)
    space = text.rfind(" ", 0, end + 1)
    if space > 0.8 * end:
        end = space
    return f"{text[:end].rstrip()} {SHORTENED}"


def _character_end(text: str, end: int) -> int:
    """The last place up to ``end`` that no character as it is seen spans."""
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
    """The lines of a code block, and whether it was shortened: to whole lines, but for the first.

    ``most``: characters of the code.
    """
    lines = [_HIDDEN.sub("", line) for line in _LINE_ENDS.split(code[: most + 1].strip("\r\n"))]
    kept: list[str] = []
    left = most
    for line in lines:
        left -= len(line) + 1
        if left < -1 and kept:
            break
        kept.append(line[: _character_end(line, most)])
    cut = len(kept) < len(lines) or len(code) > most
    longest = max((len(run) for run in _BACKTICKS.findall(code)), default=0)
    fence = "`" * max(3, longest + 1)
    info = re.sub(r"[^A-Za-z0-9+#.-]", "", language)[:32]
    return [
        f"{indent}{fence}{info}",
        *(f"{indent}{line}".rstrip() for line in kept),
        *([f"{indent}{SHORTENED}"] if cut else []),
        f"{indent}{fence}",
    ], cut


def span(identifier: str) -> str:
    """An id, which has no backtick, as code."""
    return f"`{identifier}`"


def day(micros: int) -> str:
    """The day of an instant (microseconds since 1970), in UTC."""
    return datetime.fromtimestamp(micros / 1_000_000, UTC).date().isoformat()
