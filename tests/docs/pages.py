"""The pages of the repository, and what stands in them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
CLIENTS = ("python", "typescript", "go")

PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *DOCS.rglob("*.md"),
        ROOT / "proto" / "README.md",
        *(ROOT / "clients" / name / "README.md" for name in CLIENTS),
    ]
)

_FENCE = re.compile(r"^( *)(`{3,}|~{3,}).*?^\1\2`*$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_REFERENCE = re.compile(r"`((?:[\w.-]+/)*[\w.-]+\.(?:py|toml|proto|md|json|txt))(?:::([\w.]+))?`")


def name_of(page: Path) -> str:
    """A page's path in the repository."""
    return page.relative_to(ROOT).as_posix()


def prose_of(page: Path) -> str:
    """What a page says outside of fenced blocks."""
    return _FENCE.sub("", page.read_text())


def links_of(page: Path) -> Iterator[tuple[Path, str]]:
    """File and anchor of each link into the repository."""
    for target in _LINK.findall(prose_of(page)):
        if "://" not in target and not target.startswith("mailto:"):
            path, _, anchor = target.partition("#")
            yield (page.parent / path).resolve() if path else page, anchor


@cache
def anchors_of(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    found: set[str] = set()
    for heading in re.findall(r"^#+ +(.*)$", prose_of(page), re.MULTILINE):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower().strip()
        slug = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        number = 0
        while (one := f"{slug}-{number}" if number else slug) in found:
            number += 1
        found.add(one)
    return found


def references_of(page: Path) -> Iterator[tuple[str, str]]:
    """Path and name of each `path/to/file.py` and `path/to/file.py::Class.method`."""
    for path, name in _REFERENCE.findall(prose_of(page)):
        if "/" in path or name:
            yield path, name


def places_of(page: Path) -> Iterator[tuple[str, str]]:
    """Name and path of each "`name` of `path/to/file.py`", with `in` as well."""
    yield from re.findall(r"`([A-Za-z_]\w*)`\s+(?:of|in)\s+`([\w./-]+\.py)`", prose_of(page))


def commands_of(page: Path, program: str) -> Iterator[str]:
    """Each call of a program, in a shell block or at the start of a text in backticks."""
    blocks = re.findall(
        r"^ *```(?:sh|bash)?\n(.*?)^ *```$", page.read_text(), re.MULTILINE | re.DOTALL
    )
    for text in (*blocks, *re.findall(r"`([^`]+)`", prose_of(page))):
        yield from re.findall(rf"^(?:.*\| |.*=\S+ | *){program} .*$", text, re.MULTILINE)


@cache
def names_in(path: Path) -> set[str]:
    """Everything that a module defines: functions, classes with their members, and assignments."""
    return set(_names(ast.parse(path.read_text()).body, ""))


def _names(body: list[ast.stmt], prefix: str) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield prefix + node.name
            yield from _names(node.body, f"{prefix}{node.name}.")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield prefix + node.name
        elif isinstance(node, ast.Assign):
            yield from (prefix + one.id for one in node.targets if isinstance(one, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield prefix + node.target.id
