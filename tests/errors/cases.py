"""Errors as tools print them, read from the folders beside this module.

``tools`` has a file a tool, ``reports`` a file a kind of structured report with the same errors in
plain text, ``logs`` a file a tool with whole logs of failing runs, made by running them. Each of
them has two halves, with different tools in each:

- ``dev``: what the rules may be tuned on.
- ``held``: what they are judged by. Nobody who works on the rules reads it; ``measure`` tells its
  counts.

Of each family of tools (package managers, compilers, test runners, containers, databases, services)
about half are in either; they were dealt out before anything was measured, and stay where they are.

A file is plain text. ``#### error NAME`` begins an error as it was saved, ``#### again NAME``
another occurrence of the error above it, ``#### log NAME`` a log. ``kin=WORD`` behind a name says
that errors with this word may rightly count as the same. A name that begins with ``alone-`` has
generic lines only, which are EXACT to nothing. A line that begins with ``»`` is one that an
engineer would call the error; the mark is no part of the text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

FOLDER = Path(__file__).parent
PARTS = ("dev", "held")
MARK = "»"
_HEADS = ("#### error ", "#### again ", "#### log ")


@dataclass(frozen=True)
class Text:
    """Lines of an error, and the numbers of those that tell it; none where nobody marked them."""

    lines: tuple[str, ...]
    telling: frozenset[int] = frozenset()

    @classmethod
    def of(cls, marked: str) -> Text:
        lines = marked.strip("\n").splitlines()
        telling = frozenset(n for n, line in enumerate(lines) if line.startswith(MARK))
        return cls(tuple(line.removeprefix(MARK) for line in lines), telling)

    def __str__(self) -> str:
        return "\n".join(self.lines) + "\n"


@dataclass(frozen=True)
class Case:
    """An error: as it was saved, and how else it comes."""

    part: str
    tool: str
    name: str
    saved: Text
    kin: str = ""
    again: dict[str, Text] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return f"{self.tool}/{self.name}"

    @property
    def generic(self) -> bool:
        """Whether it says nothing of which error it is."""
        return self.name.startswith("alone-")

    @property
    def report(self) -> bool:
        """Whether its other occurrences are structured reports."""
        return self.tool.startswith("report_")

    def related(self, other: Case) -> bool:
        """Whether both may count as the same error."""
        return self.id == other.id or (self.kin != "" and self.kin == other.kin)


def read_cases(kind: str, part: str = "all") -> list[Case]:
    """The errors of ``tools`` or ``reports``, or the logs: a case each, without occurrences."""
    found: list[Case] = []
    for one in PARTS if part == "all" else (part,):
        for path in sorted((FOLDER / kind / one).glob("*.txt")):
            for head, name, kin, text in _sections(path):
                if head == "again":
                    assert name not in found[-1].again, f"{path}: {name} twice"
                    found[-1].again[name] = text
                else:
                    found.append(Case(one, path.stem, name, text, kin))
    ids = [case.id for case in found]
    assert len(ids) == len(set(ids)), f"{kind}: an id twice"
    return found


def _sections(path: Path) -> Iterator[tuple[str, str, str, Text]]:
    head, lines = "", list[str]()
    for line in [*path.read_text("utf-8").splitlines(), _HEADS[0]]:
        if not line.startswith(_HEADS):
            lines.append(line)
            continue
        if head:
            words = head.split()
            kin = words[3].removeprefix("kin=") if len(words) > 3 else ""
            text = Text.of("\n".join(lines))
            assert any(text.lines), f"{path}: {head} is empty"
            yield words[1], words[2], kin, text
        else:
            assert not "".join(lines).strip(), f"{path}: text before the first section"
        head, lines = line, []
