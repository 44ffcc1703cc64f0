"""The time to read an error is linear: no expression looks at a line from each of its characters.

What is searched for, begins with a repetition without bound, and needs more behind it, is tried
from each character on, as far as the repetition goes: that takes the square of a line's length.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from re import _constants, _parser  # type: ignore[attr-defined]
from typing import Any

import pytest

from lot_grpc.domain import error_text
from lot_grpc.domain.error_text.candidates import candidate
from lot_grpc.domain.error_text.dress import undressed

FOLDER = Path(error_text.__file__).parent
MODULES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "__init__")
SEARCHES = frozenset({"search", "sub", "finditer", "findall", "split"})
BOUNDED = 128


def searched(module: str) -> Iterator[tuple[str, re.Pattern[str]]]:
    """The expressions that a module searches for, by name."""
    names = vars(importlib.import_module(f"{error_text.__name__}.{module}"))
    for node in ast.walk(ast.parse((FOLDER / f"{module}.py").read_text("utf-8"))):
        if isinstance(node, ast.Attribute) and node.attr in SEARCHES:
            name = node.value.id if isinstance(node.value, ast.Name) else ""
            pattern = names.get(name)
            if isinstance(pattern, re.Pattern):
                yield f"{module}.{name}", pattern


def begins_without_bound(items: Any, *, more: bool = False) -> bool:
    """Whether an expression begins with a repetition without bound, and needs more behind it."""
    for at, (kind, value) in enumerate(items):
        needs = more or items[at + 1 :].getwidth()[0] > 0
        if kind in (_constants.AT, _constants.ASSERT, _constants.ASSERT_NOT):
            return False
        if kind is _constants.SUBPATTERN:
            return begins_without_bound(value[-1], more=needs)
        if kind is _constants.BRANCH:
            return any(begins_without_bound(one, more=needs) for one in value[1])
        if kind not in (_constants.MAX_REPEAT, _constants.MIN_REPEAT):
            return False
        least, most, repeated = value
        wide = repeated.getwidth() == (1, 1)
        if wide and most > BOUNDED and needs:
            return True
        if least or begins_without_bound(repeated, more=needs):
            return begins_without_bound(repeated, more=needs)
    return False


@pytest.mark.parametrize("module", MODULES)
def test_no_expression_searches_from_each_character(module: str):
    slow = [
        name
        for name, pattern in searched(module)
        if begins_without_bound(_parser.parse(pattern.pattern, pattern.flags))
    ]
    assert slow == []


def test_the_check_sees_what_it_is_for():
    for slow in (r"[^\n]*a", r"(?:x|\w*)b", r"(\w+) b", r"a?\w+b", r"x|(?:\w+ )+b"):
        assert begins_without_bound(_parser.parse(slow))
    for fast in (r"\w+", r"a\w*", r"(?<!\w)\w+b", r"\w{1,60} b", r"^.*a", r"\s+|x"):
        assert not begins_without_bound(_parser.parse(fast))


def test_a_prefix_is_removed_at_the_beginning_only():
    assert undressed("10:11:12 started at 09:00:00 and failed") == [
        "started at 09:00:00 and failed"
    ]


def test_a_line_between_rules_is_a_heading():
    heading = (
        "\u2550\u2550\u2561 EXCEPTION CAUGHT BY THE LIBRARY \u255e\u2550\u2550\u2550\u2550\u2550"
    )
    assert candidate(heading, []) is None
    assert candidate("--no-cache is not a known option", []) is not None
