"""What pieces of code are called, and what they are found by."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lot_grpc.domain.code_patterns import (
    first_sentence,
    piece_content,
    piece_pattern_id,
    piece_task,
    piece_title,
)
from lot_grpc.domain.code_shapes import CodeForm, CodePiece
from lot_grpc.domain.complexity import Complexity
from lot_grpc.domain.pattern import CodeKind, PatternKind

FUNCTION = CodePiece(
    CodeForm.FUNCTION,
    CodeKind.ASYNC,
    "function",
    "fetchUserById",
    "async def …",
    3,
    9,
    signature="async def fetchUserById(id)",
    doc="Fetch a user. From the cache.",
    parameters=("id",),
    cyclomatic_complexity=7,
    caught=("KeyError",),
    tags=("async", "error_handling", "function"),
)
HANDLER = replace(
    FUNCTION, form=CodeForm.HANDLER, kind=CodeKind.ERROR_HANDLER, signature="", doc=""
)
CLASS = CodePiece(
    CodeForm.CLASS,
    CodeKind.CLASS,
    "struct",
    "store::HTTPServer",
    "struct …",
    1,
    2,
    methods=("run",),
    method_count=1,
)


@pytest.mark.parametrize(
    ("piece", "language", "task"),
    [
        (
            FUNCTION,
            "python",
            "Fetch a user. Fetch user by id: Python async function `async def fetchUserById(id)` "
            "(error handling)",
        ),
        (replace(FUNCTION, doc="", tags=(), kind=CodeKind.FUNCTION, name="A.__init__"), "go",
         "Init (A): Go function `async def fetchUserById(id)`"),
        (HANDLER, "python", "Handle KeyError in fetch user by id: Python error handling"),
        (replace(HANDLER, caught=(), name=""), "javascript",
         "Handle errors in a program: JavaScript error handling"),
        (CLASS, "rust", "HTTP server (store): Rust struct with 1 method"),
        (replace(HANDLER, form=CodeForm.LOOP, name="", signature="for x in y",
                 tags=("iteration", "nested_loops")), "python",
         "Loop: Python loop `for x in y` (nested loops)"),
        (replace(HANDLER, form=CodeForm.STATEMENT, name="", tags=("async", "promise")),
         "javascript", "Asynchronous statement: JavaScript code with promises (promises)"),
    ],
)  # fmt: skip
def test_a_task_is_a_sentence_that_people_ask_in(piece, language, task):
    assert piece_task(piece, language) == task


@pytest.mark.parametrize(
    ("doc", "sentence"),
    [
        ("", ""),
        ("One. Two.", "One."),
        ("One e.g. two. Three", "One e.g. two."),
        ("No end\n\nMore", "No end"),
        ("Two\n    lines. More", "Two lines."),
        ("/** One. */", "One."),
        ("/**\n * Loads it\n * @param x the x\n */", "Loads it"),
        ("/// Reads it. Well.\n/// More.", "Reads it."),
        ("// Load reads\n// an order. It", "Load reads an order."),
        ("# Fetch,\n# with retries.", "Fetch, with retries."),
        ("Sum.\n:param x: the x", "Sum."),
        ("x" * 500, "x" * 399 + "…"),
    ],
)
def test_the_first_sentence_of_a_comment(doc, sentence):
    assert first_sentence(doc) == sentence


def test_a_title_is_the_name_or_the_place():
    assert piece_title(FUNCTION) == "fetchUserById"
    assert piece_title(HANDLER) == "error handling in fetchUserById"
    assert piece_title(replace(HANDLER, name="")) == "error handling in the top level"
    long = piece_title(replace(FUNCTION, name="é" * 2000))
    assert len(long.encode()) <= 1024
    assert long.startswith("…é")


def test_a_piece_becomes_a_pattern_with_all_that_was_found():
    content = piece_content(FUNCTION, "python", "in a service", {"success_rate": 0.5})
    assert (content.kind, content.code_kind) == (PatternKind.CODE, CodeKind.ASYNC)
    assert content.complexity is Complexity.MEDIUM
    assert (content.code, content.context) == ("async def …", "in a service")
    assert content.tags == FUNCTION.tags
    assert content.metadata == {
        "first_line": 3,
        "last_line": 9,
        "cyclomatic_complexity": 7,
        "parameters": ["id"],
        "signature": "async def fetchUserById(id)",
        "caught_errors": ["KeyError"],
        "success_metrics": {"success_rate": 0.5},
    }
    metadata = piece_content(CLASS, "rust", "", {}).metadata
    assert (metadata["method_count"], metadata["methods"]) == (1, ["run"])
    assert "success_metrics" not in metadata


def test_an_id_follows_from_code_name_language_and_context_alone():
    def of(piece=FUNCTION, language="python", context="", **metrics):
        return piece_pattern_id(piece_content(piece, language, context, metrics))

    assert of() == of(replace(FUNCTION, first_line=1, last_line=7)) == of(rate=1)
    others = {
        of(),
        of(language="go"),
        of(context="x"),
        of(replace(FUNCTION, code="other")),
        of(replace(FUNCTION, name="other")),
    }
    assert len(others) == 5
