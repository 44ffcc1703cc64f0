from __future__ import annotations

import gzip
from typing import Any

import pytest

from lot_grpc.evaluation.errors import EvalDataError
from lot_grpc.evaluation.loading import load_dataset
from tests.evaluation.made import DOCUMENTS, QRELS, QUERIES, lines, rows, write_set


def refused(folder, *arguments) -> str:
    with pytest.raises(EvalDataError) as caught:
        load_dataset(folder, *arguments)
    return caught.value.message


def test_a_set_is_read_with_all_that_it_holds(tmp_path):
    dataset = load_dataset(write_set(tmp_path / "things"))
    assert dataset.name == "things"
    assert [document.id for document in dataset.documents] == [d["id"] for d in DOCUMENTS]
    assert dataset.documents[2].fields == {"language": "python"}
    first = dataset.queries[0]
    assert (first.text, first.judged) == ("how do I make a loaf of bread", {"how/to bake": 2.0})
    assert first.groups == ("said", "said/kitchen")
    assert dataset.queries[2].groups == ("asked",)


def test_gzipped_files_are_the_same_set(tmp_path):
    plain = load_dataset(write_set(tmp_path / "plain"))
    zipped = load_dataset(write_set(tmp_path / "zipped", zipped=True))
    assert zipped.fingerprints() == plain.fingerprints()


def test_beirs_own_names_are_understood(tmp_path):
    (tmp_path / "qrels").mkdir()
    (tmp_path / "corpus.jsonl").write_text(
        lines([{"_id": "1", "title": "T", "text": "x", "metadata": {}}])
    )
    (tmp_path / "queries.jsonl").write_text(lines([{"_id": "q", "text": "y", "metadata": {}}]))
    (tmp_path / "qrels" / "test.tsv").write_text(rows([("q", "1", 1)]))
    dataset = load_dataset(tmp_path)
    assert (dataset.documents[0].id, dataset.documents[0].title) == ("1", "T")
    assert dataset.queries[0].judged == {"1": 1.0}


def test_the_header_may_be_missing_and_lines_may_end_as_on_windows(tmp_path):
    folder = write_set(tmp_path)
    text = rows(QRELS, header="").replace("\n", "\r\n")
    (folder / "qrels.tsv").write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert load_dataset(folder).queries[0].judged == {"how/to bake": 2.0}


def test_exclusions_come_from_the_query_and_from_a_file(tmp_path):
    queries: list[dict[str, Any]] = [QUERIES[0] | {"exclude": ["bicycle"]}, *QUERIES[1:]]
    folder = write_set(tmp_path, queries=queries)
    (folder / "exclusions.tsv").write_text("query-id\tcorpus-id\nq1\ttax\nq2\t3\n")
    dataset = load_dataset(folder)
    assert [query.exclude for query in dataset.queries] == [{"bicycle", "tax"}, {"3"}, set()]


def test_queries_without_a_relevant_document_are_kept_apart(tmp_path):
    folder = write_set(tmp_path, qrels=[*QRELS[:2], ("q3", "tax", 0)])
    dataset = load_dataset(folder)
    assert [query.id for query in dataset.answerable] == ["q1", "q2"]
    assert len(dataset.queries) == 3


def test_a_sample_is_the_same_each_time_and_answerable(tmp_path):
    queries = [{"id": str(n), "text": "x"} for n in range(50)]
    qrels = [(str(n), "tax", n % 2) for n in range(50)]
    dataset = load_dataset(write_set(tmp_path, queries=queries, qrels=qrels))
    sample = dataset.sampled(10)
    assert sample == dataset.sampled(10)
    assert len(sample.queries) == len(sample.answerable) == 10
    assert [int(query.id) for query in sample.queries] != list(range(1, 21, 2))
    assert len(dataset.sampled(1000).queries) == 25
    assert dataset.sampled(0) is dataset


def test_fingerprints_tell_which_part_changed(tmp_path):
    before = load_dataset(write_set(tmp_path / "a")).fingerprints()
    other_text = [DOCUMENTS[0] | {"text": "else"}, *DOCUMENTS[1:]]
    document = load_dataset(write_set(tmp_path / "b", documents=other_text)).fingerprints()
    score = load_dataset(
        write_set(tmp_path / "c", qrels=[("q1", "how/to bake", 1), *QRELS[1:]])
    ).fingerprints()
    assert document["queries"] == before["queries"]
    assert document["documents"] != before["documents"]
    assert score["queries"] != before["queries"]
    assert score["documents"] == before["documents"]


# --- what is wrong ----------------------------------------------------------------------------


def test_a_folder_that_is_not_there_is_named(tmp_path):
    assert str(tmp_path / "nope") in refused(tmp_path / "nope")


@pytest.mark.parametrize("name", ["corpus.jsonl", "queries.jsonl", "qrels.tsv"])
def test_a_missing_file_is_named(tmp_path, name):
    (write_set(tmp_path) / name).unlink()
    told = refused(tmp_path)
    assert name in told
    assert "--help" in told


@pytest.mark.parametrize(
    ("name", "text", "line", "words"),
    [
        ("corpus.jsonl", '{"id": "1", "text": "x"}\n{"id": \n', 2, "is not JSON"),
        ("corpus.jsonl", "\n[1]\n", 2, "is not a JSON object"),
        ("corpus.jsonl", '{"text": "x"}\n', 1, "has no `id`"),
        ("corpus.jsonl", '{"id": "1"}\n', 1, "`text` must be a string"),
        ("corpus.jsonl", '{"id": "1", "text": "x", "title": 4}\n', 1, "`title` must be"),
        ("corpus.jsonl", '{"id": "1", "text": "a\\u0000"}\n', 1, "NUL"),
        ("corpus.jsonl", '{"id": "1", "text": "\\ud800"}\n', 1, "surrogate"),
        ("corpus.jsonl", lines([DOCUMENTS[0], DOCUMENTS[0]]), 2, "occurs twice"),
        ("queries.jsonl", lines([QUERIES[0], QUERIES[0]]), 2, "occurs twice"),
        ("queries.jsonl", '{"id": "q1", "text": " "}\n', 1, "`text` is empty"),
        ("queries.jsonl", lines([{"id": "q", "text": "é" * 40_000}]), 1, "65,536 bytes"),
        ("queries.jsonl", lines([QUERIES[0] | {"exclude": "tax"}]), 1, "must be a list"),
        ("queries.jsonl", lines([QUERIES[0] | {"exclude": ["nope"]}]), 1, "'nope'"),
        ("qrels.tsv", rows([*QRELS, ("q9", "tax", 1)]), 5, "the query 'q9'"),
        ("qrels.tsv", rows([*QRELS, ("q1", "nope", 1)]), 5, "the document 'nope'"),
        ("qrels.tsv", rows([("q1", "tax", "good")]), 2, "and a number"),
        ("qrels.tsv", rows([("q1", "tax", "nan")]), 2, "and a number"),
        ("qrels.tsv", rows([("q1", "tax")]), 2, "separated by tabs"),
        ("qrels.tsv", "q1\ttax\tgood\n", 1, "and a number"),
        ("qrels.tsv", rows([("q1", "tax", 1), ("q1", "tax", 2)]), 3, "again with another score"),
        ("exclusions.tsv", "q1\n", 1, "separated by a tab"),
        ("exclusions.tsv", "q1\tnope\n", 1, "'nope'"),
        ("exclusions.tsv", "a\tb\nq1\ttax\nq7\ttax\n", 3, "'q7'"),
    ],
)
def test_a_bad_line_is_named_with_what_is_wrong(tmp_path, name, text, line, words):
    folder = write_set(tmp_path)
    (folder / name).write_text(text)
    told = refused(folder)
    assert f"{folder / name}, line {line}: " in told
    assert words in told


def test_text_that_is_no_utf8_is_named_by_its_line(tmp_path):
    folder = write_set(tmp_path)
    (folder / "corpus.jsonl").write_bytes(lines(DOCUMENTS[:1]).encode() + b'{"id": "\xff"}\n')
    told = refused(folder)
    assert "line 2: is not UTF-8" in told


def test_a_gzip_file_that_is_cut_off_is_said_to_be_unreadable(tmp_path):
    folder = write_set(tmp_path, zipped=True)
    whole = gzip.compress(lines(DOCUMENTS).encode())
    (folder / "corpus.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    assert "cannot be read" in refused(folder)


@pytest.mark.parametrize("name", ["corpus.jsonl", "queries.jsonl"])
def test_an_empty_file_is_refused(tmp_path, name):
    folder = write_set(tmp_path)
    (folder / name).write_text("\n")
    assert "has no" in refused(folder)


def test_a_set_without_any_relevant_document_is_refused(tmp_path):
    folder = write_set(tmp_path, qrels=[("q1", "tax", 0)])
    assert "nothing can be measured" in refused(folder)


def test_a_relevant_document_that_is_excluded_is_refused(tmp_path):
    folder = write_set(tmp_path, queries=[QUERIES[0] | {"exclude": ["how/to bake"]}, *QUERIES[1:]])
    assert "'how/to bake' is relevant for 'q1' and excluded" in refused(folder)


# --- filters ----------------------------------------------------------------------------------


def test_a_filter_field_must_be_in_every_document_and_every_query(tmp_path):
    folder = write_set(tmp_path)
    assert "corpus.jsonl, line 1: has no field `language`" in refused(folder, "language")
    documents = [document | {"shelf": "a"} for document in DOCUMENTS]
    write_set(folder, documents=documents)
    assert "queries.jsonl, line 1: has no field `shelf`" in refused(folder, "shelf")
    write_set(folder, documents=documents, queries=[q | {"shelf": 7} for q in QUERIES])
    assert [query.filter_value for query in load_dataset(folder, "shelf").queries] == ["7"] * 3
    write_set(folder, documents=documents, queries=[q | {"shelf": [7]} for q in QUERIES])
    assert "`shelf` must be a string or a whole number" in refused(folder, "shelf")
