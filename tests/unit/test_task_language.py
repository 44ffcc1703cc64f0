"""The language that a task is in."""

from __future__ import annotations

import pytest

from lot_grpc.domain.context.task_language import languages_of
from lot_grpc.domain.languages import language_name
from lot_grpc.knowledge import built_in_packs
from tests.errors.cases import read_cases

OF_TOOLS = {
    "cargo": "rust",
    "django": "python",
    "gcc": "c",
    "go": "go",
    "jest": "javascript",
    "node": "javascript",
    "npm": "javascript",
    "pytest": "python",
    "python": "python",
    "tsc": "typescript",
    "vite": "javascript",
}


@pytest.mark.parametrize(
    ("error", "language"),
    [
        ("ModuleNotFoundError: No module named 'jwt'", "python"),
        ("TypeError: 'NoneType' object is not iterable", "python"),
        ("TypeError: Cannot read properties of undefined (reading 'id')", "javascript"),
        ("src/app.ts(3,7): error TS2322: Type 'string' is not assignable", "typescript"),
        ("error[E0382]: borrow of moved value: `settings`", "rust"),
        ("panic: runtime error: index out of range [3] with length 3", "go"),
        ('Exception in thread "main" java.lang.NullPointerException', "java"),
        ("main.c:4:5: error: expected ';' before 'return'", "c"),
        ("app/models/user.rb:12:in `name': undefined method", "ruby"),
        ("Program.cs(3,9): error CS1002: ; expected", "csharp"),
        ("PHP Fatal error:  Uncaught Error: Call to undefined function", "php"),
    ],
)
def test_what_only_one_language_prints_tells_it(error, language):
    assert language in languages_of(error)
    assert language_name(language) == language


@pytest.mark.parametrize(
    ("task", "language"),
    [
        ("Add type hints to the billing module in Python", "python"),
        ("Run the requests concurrently in Rust with Tokio", "rust"),
        ("Wrap errors in the Go storage package", None),
        ("Wrap errors in Go", "go"),
        ("Give the TypeScript client precise types", "typescript"),
        ("Port the Python script to Rust", None),
        ("Use Node.js: ModuleNotFoundError: No module named 'jwt'", "python"),
        ("Trust the rust on the gate", None),
    ],
)
def test_a_language_is_known_by_its_name_where_it_is_the_only_one(task, language):
    assert (language in languages_of(task)) if language else languages_of(task) == ()


@pytest.mark.parametrize(
    "error",
    [
        "",
        "bash: jq: command not found",
        "Error: Process completed with exit code 1.",
        "connection refused",
        "TypeError: wrong type",
        "Building wheel for lxml: src/lxml/etree.c:96:10: fatal error: Python.h: No such file",
        "the panic: of the year",
    ],
)
def test_what_several_print_tells_none(error):
    assert languages_of(error) == ()


def test_errors_of_tools_are_never_taken_for_another_language():
    for case in read_cases("tools", "dev"):
        for text in (case.saved, *case.again.values()):
            found = languages_of(str(text))
            assert case.tool not in OF_TOOLS or not found or OF_TOOLS[case.tool] in found, case.id


def test_the_seeded_errors_are_of_their_language_or_of_none():
    for pack in built_in_packs():
        for entry, solution in pack.error_solutions.items():
            error = f"{solution.error_type}: {solution.error_message}"
            found = languages_of(error)
            assert not found or solution.language in found, entry
