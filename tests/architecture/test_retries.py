"""Retry loops stay in the kernel, so that each is bounded and pauses."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BESIDE = {
    "kernel": "the loop itself",
    "storage": "an adapter makes one conditional write of what its backend has; it is bounded",
    "embedding": "repeats calls over HTTP, not writes",
    "server": "writes nothing",
    "pb": "generated",
}
"""Packages in which the rule does not hold, and why."""
MODULES = [
    path
    for path in sorted((ROOT / "lot_grpc").rglob("*.py"))
    if path.relative_to(ROOT / "lot_grpc").parts[0] not in BESIDE
]

CONDITIONAL_WRITES = {"insert", "replace", "update", "update_many"}
"""Of a store: they say whether they were done, and one that loses may be tried again."""


def loops(tree: ast.AST) -> Iterator[ast.For | ast.AsyncFor | ast.While]:
    for node in ast.walk(tree):
        if isinstance(node, ast.For | ast.AsyncFor | ast.While):
            yield node


def calls(node: ast.AST) -> set[str]:
    """Names of the functions and methods that a node calls, but for those of nested functions."""
    found: set[str] = set()
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(child, ast.Call):
            function = child.func
            if isinstance(function, ast.Attribute):
                found.add(function.attr)
            elif isinstance(function, ast.Name):
                found.add(function.id)
        found |= calls(child)
    return found


def counts_attempts(loop: ast.For | ast.AsyncFor | ast.While) -> bool:
    """``for _ in range(TRIES)``, ``for attempt in range(...)``: the number is of no other use."""
    if isinstance(loop, ast.While) or not isinstance(loop.iter, ast.Call):
        return False
    function, target = loop.iter.func, loop.target
    over_range = isinstance(function, ast.Name) and function.id == "range"
    if not over_range or not isinstance(target, ast.Name):
        return False
    return target.id == "_" or "attempt" in target.id or "retr" in target.id or target.id == "tr"


def retries(loop: ast.For | ast.AsyncFor | ast.While) -> str:
    """Why a loop looks like a retry; empty if it does not."""
    called = calls(loop)
    if counts_attempts(loop) and "await" in ast.unparse(loop):
        return "it counts attempts"
    if {"pause_before_retry", "uniform"} & called:
        return "it pauses before a further attempt"
    if isinstance(loop, ast.While) and CONDITIONAL_WRITES & called:
        return "it repeats a conditional write"
    if any(
        isinstance(node, ast.ExceptHandler) and "ConflictError" in ast.unparse(node.type or node)
        for node in ast.walk(loop)
    ):
        return "it goes on after a conflict"
    return ""


def test_no_retry_loop_is_outside_the_kernel():
    found = [
        f"{path.relative_to(ROOT)}:{loop.lineno}: {why}"
        for path in MODULES
        for loop in loops(ast.parse(path.read_text()))
        if (why := retries(loop))
    ]
    assert not found, "use lot_grpc.kernel.compare_and_set"


def test_only_the_kernel_says_that_attempts_are_exhausted():
    """Who gives up by itself has a loop of its own."""
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Raise) and "ContentionError(" in ast.unparse(node)
    ]
    assert not found, "use lot_grpc.kernel.compare_and_set"


@pytest.mark.parametrize(
    "loop",
    [
        "for _ in range(_TRIES):\n    if await self._store.replace(): return",
        "for attempt in range(50):\n    await look()",
        "while True:\n    if await self._store.insert(): return",
        "while not done:\n    done = await store.update()",
        "while True:\n    try:\n        await write()\n    except ConflictError:\n        pass",
        "for one in many:\n    await pause_before_retry(1)",
    ],
)
def test_a_retry_loop_is_recognised(loop: str):
    body = "\n".join(f"    {line}" for line in loop.splitlines())
    tree = ast.parse(f"async def written():\n{body}")
    assert [retries(one) for one in loops(tree)] != [""]
