"""docs/operations.md lists each log line that needs somebody."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.docs.pages import DOCS, ROOT

PAGE = (DOCS / "operations.md").read_text()
LISTED = {
    event: set(levels.split(", "))
    for event, levels in re.findall(r"^\| `([^`]+)` \| ([a-z, ]+) \|", PAGE, re.MULTILINE)
}
LEVELS = {"warning", "error", "exception", "critical"}
GIVEN = {"log_lines.py": {"call", "the same again", "housekeeping failed, it will be tried again"}}
"""Events whose text is not where they are logged, by module."""


def logged() -> Iterator[tuple[Path, str, str]]:
    """Module, level and event of each log line that needs somebody; "" for another event."""
    for path in sorted((ROOT / "lot_grpc").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in LEVELS
                and "log" in ast.unparse(node.func.value).lower()
            ):
                event = node.args[0]
                text = event.value if isinstance(event, ast.Constant) else ""
                yield path, node.func.attr, str(text)


def test_each_log_line_that_needs_somebody_is_listed():
    found = list(logged())
    assert len(found) > 10
    missing = {(event, level) for _, level, event in found if event and event not in LISTED}
    assert not missing
    assert [
        (event, level) for _, level, event in found if event and level not in LISTED[event]
    ] == []


def test_no_event_is_made_up_elsewhere():
    assert {path.name for path, _, event in logged() if not event} <= set(GIVEN)


def test_what_is_listed_is_logged():
    known = {event for _, _, event in logged()}.union(*GIVEN.values())
    assert set(LISTED) <= known


def test_the_lines_are_in_order():
    assert list(LISTED) == sorted(LISTED, key=lambda event: (not event[0].isupper(), event))
