from __future__ import annotations

import re
from pathlib import Path

import pytest

from lot_grpc.domain.label_keys import MAX_BYTES as MAX_KEY_BYTES
from lot_grpc.domain.pattern import PatternKind
from lot_grpc.domain.query import PatternFilter
from lot_grpc.evaluation.as_pattern import (
    MAX_BYTES,
    are_code,
    as_filter,
    as_pattern,
    check_fits,
    looks_like_code,
)
from lot_grpc.evaluation.dataset import Dataset, Document, EvalQuery
from lot_grpc.evaluation.errors import EvalDataError
from lot_grpc.evaluation.loading import MAX_QUERY_BYTES

PROTO = Path(__file__).parents[2] / "proto" / "lot" / "v1"
CODE = "\n\ndef add(a, b):\n    total = a + b\n    return total\n"


def test_prose_becomes_a_task_with_its_title():
    content = as_pattern(Document("1", "Bake some bread.", "Bread", {"language": "english"}))
    assert content.kind is PatternKind.TASK
    assert (content.task, content.title) == ("Bake some bread.", "Bread")
    assert (content.code, content.language, content.labels) == ("", "", {})


def test_a_title_that_the_text_begins_with_is_not_taken_twice():
    content = as_pattern(Document("1", "Bread\nBake some bread.", "Bread"))
    assert (content.task, content.title) == ("Bread\nBake some bread.", "")


def test_code_becomes_code_and_its_task_is_the_first_line_that_is_not_blank():
    content = as_pattern(Document("1", CODE, fields={"language": "Py"}), code=True)
    assert content.kind is PatternKind.CODE
    assert content.code == CODE
    assert (content.task, content.language) == ("def add(a, b):", "python")


def test_the_title_of_code_is_its_task():
    assert as_pattern(Document("1", CODE, "Add two numbers"), code=True).task == "Add two numbers"


def test_a_document_of_a_title_alone_is_found_by_it():
    content = as_pattern(Document("1", " \n", "Only a title"))
    assert (content.task, content.title) == ("Only a title", "")
    content.check()


def test_language_is_filtered_as_language_and_anything_else_as_a_label():
    prose = Document("1", "Bake some bread.", fields={"language": "TS", "shelf": 7})
    query = EvalQuery("q", "?", filter_value="7")
    assert as_pattern(prose, "language").language == "typescript"
    assert as_pattern(prose, "shelf").labels == {"shelf": "7"}
    assert as_filter(query, "shelf") == PatternFilter(labels={"shelf": "7"})
    assert as_filter(query, "language") == PatternFilter(languages=("7",))
    assert as_filter(query, "") == PatternFilter()


@pytest.mark.parametrize(
    ("document", "field", "words"),
    [
        (Document("1", "x y " * 20_000), "", "a task of 80,000 bytes"),
        (Document("1", CODE * 6_000), "", "a code of"),
        (Document("1", "x", "é" * 600), "", "a title of 1,200 bytes"),
        (Document("1", "x", fields={"shelf": "s" * 257}), "shelf", "a label of 257 bytes"),
        (Document("1", "x", fields={"language": "s" * 65}), "language", "a language of 65"),
        (Document("1", "x", fields={"a=shelf": "s"}), "a=shelf", "a label's key"),
    ],
)
def test_what_the_contract_has_no_room_for_is_refused_and_never_cut(document, field, words):
    dataset = Dataset("made", Path("made"), (document,), (), field)
    with pytest.raises(EvalDataError, match=re.escape(words)):
        check_fits(dataset)


def test_a_filter_that_the_contract_refuses_is_named_before_anything_is_saved():
    query = EvalQuery("q1", "?", filter_value="x" * 257)
    with pytest.raises(EvalDataError, match="'q1'"):
        check_fits(Dataset("made", Path("made"), (), (query,), "shelf"))


def test_a_text_as_long_as_the_contract_allows_is_kept_whole():
    text = "x" * MAX_BYTES["task"]
    assert as_pattern(Document("1", text)).task == text


@pytest.mark.parametrize("name", ["title", "task", "code", "language"])
def test_the_limits_are_those_of_the_contract(name):
    proto = (PROTO / "pattern.proto").read_text()
    found = re.search(
        rf"string {name} = \d+ \[\(buf.validate.field\).string.max_bytes = (\d+)", proto
    )
    assert found is not None
    assert int(found[1]) == MAX_BYTES[name]


def test_the_limits_of_labels_and_queries_are_those_of_the_contract():
    labels = (PROTO / "pattern.proto").read_text().partition("> labels =")[2].partition("}];")[0]
    assert f"max_bytes: {MAX_BYTES['label']}" in labels.partition("values")[2]
    assert f"max_bytes: {MAX_KEY_BYTES}" in labels
    requested = (
        (PROTO / "pattern_service.proto").read_text().partition("message RecallPatternsRequest")
    )
    assert f"max_bytes: {MAX_QUERY_BYTES}" in requested[2].partition("filter")[0]


@pytest.mark.parametrize(
    "text",
    [
        CODE,
        "func add(a int, b int) int {\n\treturn a + b\n}",
        "const add = (a, b) => {\n  return a + b;\n};",
        "#include <vector>\nint add(int a, int b) {\n  return a + b;\n}",
    ],
)
def test_source_is_taken_for_code(text):
    assert looks_like_code(text)


@pytest.mark.parametrize(
    "text",
    [
        "Return <ORDER> via paypal: Dumbbell Set; Yoga Mat;",
        "Find the cheapest kayak. It should be between $3000 to $6000.",
        "mismatched types\nlet x: i32 = y;\nThe compiler wants one type and was given another,\n"
        "so convert the value,\nor change the declaration\nso that both agree.",
        "Frozen multi-array analysis (fRMA)\nBackground: a method of preprocessing (fRMA)",
        "",
    ],
)
def test_prose_is_not_taken_for_code(text):
    assert not looks_like_code(text)


def test_a_set_is_one_of_code_when_most_of_it_is():
    code, prose = Document("1", CODE), Document("2", "Bake some bread.")
    assert are_code([code, code, prose])
    assert not are_code([code, prose])
    assert not are_code([])
