"""An entry of the prompt: what it is on its first line, its parts below."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from lot_grpc.domain.context.markdown import SHORTENED, fenced, of_several_lines, stored


@dataclass(frozen=True, slots=True)
class Bounds:
    """The limits of an entry's fields.

    ``line``: characters of a text, ``code``: of a piece of code, ``listed``: parts of a list.
    """

    line: int
    code: int
    listed: int


FULL: Final = Bounds(2_000, 4_000, 20)
BRIEF: Final = Bounds(240, 600, 4)
"""The limits if the full entry does not fit."""


@dataclass(slots=True)
class Entry:
    """Lines of Markdown. ``cut``: something was omitted from them."""

    bounds: Bounds
    lines: list[str]
    cut: bool = False

    @classmethod
    def headed(cls, bounds: Bounds, caption: str, text: str) -> Entry:
        """An entry: our caption, followed by a stored text."""
        entry = cls(bounds, [])
        entry._stored(f"- {caption}", text)
        entry.lines = entry.lines or [f"- {caption}"]
        return entry

    @property
    def text(self) -> str:
        """All lines."""
        return "\n".join(self.lines)

    def part(self, label: str, text: str) -> None:
        """A stored text below; nothing if it is empty."""
        self._stored(f"  - {label}", text)

    def listing(self, label: str, names: Sequence[str]) -> None:
        """Names on one line, or one after the other where any has several lines."""
        shown = names[: self.bounds.listed]
        self.cut = self.cut or len(shown) < len(names)
        more = [SHORTENED] if len(shown) < len(names) else []
        texts = [*shown, *more]
        for text in texts if any(map(of_several_lines, shown)) else ["; ".join(texts)]:
            self.part(label, text)

    def steps(self, texts: Iterable[str]) -> None:
        """Add numbered steps, one per line."""
        for number, text in enumerate(texts, 1):
            if number > self.bounds.listed:
                self.cut = True
                self.lines.append("  - […]")
                break
            self.part(f"Step {number}", text)

    def code(self, code: str, language: str) -> None:
        """A block of code; nothing if it is empty."""
        if not code.strip():
            return
        lines, cut = fenced(code, language, self.bounds.code, " " * 4)
        self.lines += ["  - Code:", *lines]
        self.cut = self.cut or cut

    def _stored(self, before: str, text: str) -> None:
        lines, cut = stored(before, text, self.bounds.line)
        self.lines += lines
        self.cut = self.cut or cut
