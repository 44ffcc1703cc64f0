"""No part knows too many others: constructors, imports and lines have bounds."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "lot_grpc"

MOST_COLLABORATORS = 6
MOST_IMPORTS = 25
MOST_LINES = 400

VALUES = {"str", "int", "float", "bool", "bytes", "Path", "None"}
"""Types of parameters that are no collaborators but settings."""


def modules() -> Iterator[tuple[str, str]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if not name.startswith("pb/"):
            yield name, path.read_text()


def own_imports(tree: ast.Module) -> set[str]:
    """The modules of ours that one imports."""
    return {
        node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("lot_grpc")
    }


def collaborators(function: ast.FunctionDef) -> list[str]:
    """The parameters of a constructor that are objects, and not settings."""
    given = [*function.args.args[1:], *function.args.kwonlyargs]
    types = {one.arg: ast.unparse(one.annotation) for one in given if one.annotation}
    return [name for name, type_ in types.items() if not {*type_.split(" | ")} <= VALUES]


def over_a_bound(name: str, text: str) -> Iterator[str]:
    tree = ast.parse(text)
    if (count := len(text.splitlines())) > MOST_LINES:
        yield f"{name} has {count} lines, {MOST_LINES} is the most"
    if (count := len(own_imports(tree))) > MOST_IMPORTS:
        yield f"{name} imports {count} modules of ours, {MOST_IMPORTS} is the most"
    for made in ast.walk(tree):
        if isinstance(made, ast.FunctionDef) and made.name == "__init__":
            count = len(collaborators(made))
            if count > MOST_COLLABORATORS:
                where = f"{name}, line {made.lineno}"
                yield f"{where}: {count} collaborators, {MOST_COLLABORATORS} is the most"


def test_no_module_is_over_a_bound() -> None:
    assert not [found for name, text in modules() for found in over_a_bound(name, text)]
