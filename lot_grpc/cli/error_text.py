"""The error that is asked about: as it was given, or as a tool wrote it to standard input."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import BinaryIO

MAX_BYTES = 65_536
"""Most of a message that the contract takes."""

_CHUNK = 65_536
_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours and movements
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?"  # titles, links
    r"|\x1b[ -/]*[0-~]"
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_MARGIN = 4
"""Escapes may be so many times as long as the text that they colour; more is not kept."""


@dataclass(frozen=True)
class ErrorText:
    """The part to ask with, and of how many bytes it was taken."""

    text: str
    given_bytes: int

    @property
    def cut(self) -> bool:
        """Whether there was more than can be asked with."""
        return self.given_bytes > MAX_BYTES


def fitting(text: str, *, head: bool) -> ErrorText:
    """The last whole lines that fit, or with ``head`` the first ones, without escapes."""
    raw = without_escapes(text).encode("utf-8", "replace")
    if len(raw) <= MAX_BYTES:
        return ErrorText(raw.decode(), len(raw))
    part = raw[:MAX_BYTES] if head else raw[-MAX_BYTES:]
    kept = part.decode("utf-8", "ignore")
    lines = kept.rpartition("\n")[0] if head else kept.partition("\n")[2]
    return ErrorText(lines if lines.strip() else kept, len(raw))


def from_stream(stream: BinaryIO, *, head: bool) -> ErrorText:
    """What a tool wrote, without what colours a terminal.

    All of it is read, so that the tool is never held up or broken; what is not needed is let go.
    A byte that is no UTF-8 becomes U+FFFD.
    """
    kept, total = bytearray(), 0
    most = _MARGIN * MAX_BYTES
    while chunk := stream.read(_CHUNK):
        total += len(chunk)
        if not head:
            kept += chunk
            del kept[:-most]
        elif len(kept) < most:
            kept += chunk
    found = fitting(kept.decode("utf-8", "replace").lstrip("\ufffd"), head=head)
    dropped = total > len(kept)
    return ErrorText(found.text, total if dropped else found.given_bytes)


def without_escapes(text: str) -> str:
    """The letters alone: no colours, titles, links or control characters but tabs and lines."""
    plain = _ESCAPES.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROLS.sub("", plain)
