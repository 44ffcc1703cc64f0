from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from lot_grpc.evaluation.as_error_solution import (
    MAX_BYTES,
    are_errors,
    as_error_solution,
    check_fits,
)
from lot_grpc.evaluation.dataset import Dataset, Document, EvalQuery
from lot_grpc.evaluation.errors import EvalDataError
from lot_grpc.evaluation.loading import load_dataset
from lot_grpc.evaluation.measuring import measure
from lot_grpc.evaluation.searcher import BM25, DENSE, HYBRID, LEGS
from lot_grpc.evaluation.through_service import ErrorSearcher
from lot_grpc.testing.hashing import HashingEmbedder
from tests.evaluation.made import write_set
from tests.evaluation.test_through_service import searcher_over, silent

PROTO = Path(__file__).parents[2] / "proto" / "lot" / "v1"


def error(own: str, message: str, solution: str = "mend it", **more: Any) -> dict[str, Any]:
    text = f"{message}\n{solution}"
    return {"id": own, "text": text, "message": message, "solution": solution, **more}


def document(**fields: Any) -> Document:
    return Document("1", "text", fields=fields)


def test_a_set_is_one_of_errors_if_all_of_it_has_a_message_and_a_solution():
    whole, other = document(message="m", solution="s"), document(message="m", solution="")
    assert are_errors([whole, whole])
    assert not are_errors([whole, other])
    assert not are_errors([document(text="m"), whole])
    assert not are_errors([document(message=3, solution="s")])
    assert not are_errors([])


def test_a_document_is_its_message_with_the_line_it_points_at_and_its_solution():
    made = as_error_solution(document(message="m", where="x = 1", solution="s", language="Py"))
    assert (made.error_message, made.resolution) == ("m\nx = 1", "s")
    assert (made.language, made.error_type) == ("python", "")
    assert as_error_solution(document(message="m", where="", solution="s")).error_message == "m"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"message": "é" * 32_769, "solution": "s"}, "a message of 65,538 bytes"),
        ({"message": "m", "solution": "x" * 65_537}, "a solution of 65,537 bytes"),
        ({"message": "m", "solution": "s", "language": "x" * 65}, "a language of 65 bytes"),
    ],
)
def test_what_the_contract_has_no_room_for_is_refused(fields, words):
    with pytest.raises(EvalDataError, match=re.escape(words)):
        check_fits(Dataset("made", Path("made"), (document(**fields),), ()))


def test_a_filter_that_errors_are_not_found_by_is_refused():
    documents = (document(message="m", solution="s"),)
    with pytest.raises(EvalDataError, match="omit the filter"):
        check_fits(Dataset("made", Path("made"), documents, (), "shelf"))
    query = EvalQuery("q1", "?", filter_value="x" * 65)
    with pytest.raises(EvalDataError, match="'q1'"):
        check_fits(Dataset("made", Path("made"), documents, (query,), "language"))


def test_the_limits_are_those_of_the_contract():
    proto = (PROTO / "error_solution.proto").read_text()
    assert f"bytes(this).size() <= {MAX_BYTES['message']}" in proto
    for field, name in (("resolution = 7", "solution"), ("language = 6", "language")):
        rule = f"string {field} [(buf.validate.field).string.max_bytes = {MAX_BYTES[name]}]"
        assert rule in proto


async def test_errors_are_found_by_their_signature_in_the_whole_call_only(tmp_path):
    documents = [
        error("far/py", "No module named 'left' in the shop", language="python"),
        error("far/go", "No module named 'left' in the shop", language="go"),
        *(error(f"noise {n}", f"step {n} of the shop left no module") for n in range(60)),
    ]
    queries = [{"id": "q", "text": "No module named 'right' in the shop", "language": "go"}]
    folder = write_set(tmp_path, documents=documents, queries=queries, qrels=[("q", "far/go", 1)])
    dataset = load_dataset(folder)
    services, _ = await searcher_over(HashingEmbedder())
    searcher = ErrorSearcher(services)
    measured = await measure(dataset, searcher, LEGS, silent)
    assert measured.per_query[HYBRID]["q"]["recall@5"] == 1
    found = await searcher.search(dataset.queries[0], HYBRID, 5, rerank=False)
    assert set(found.ids[:2]) == {"far/py", "far/go"}
    for leg in (DENSE, BM25):
        alone = await searcher.search(dataset.queries[0], leg, 5, rerank=False)
        assert len(alone.ids) == 5
    narrowed = ErrorSearcher(services, "language")
    narrowed._ids = searcher._ids
    requested = EvalQuery("q", queries[0]["text"], filter_value="go")
    assert (await narrowed.search(requested, HYBRID, 5, rerank=False)).ids == ["far/go"]
