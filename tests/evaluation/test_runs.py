from __future__ import annotations

import json

import pytest

from lot_grpc.evaluation.bootstrap import Verdict
from lot_grpc.evaluation.errors import EvalDataError
from lot_grpc.evaluation.results import result_of
from lot_grpc.evaluation.runs import check_writable, compare, read_run, save_run
from tests.evaluation.made import measured

OLD = [0.1 * (n % 5) for n in range(30)]


def result(values, name="made"):
    return result_of(measured(values, name), {"model": "m"})


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "run.json"
    save_run(path, [result({"dense": OLD, "bm25": OLD})])
    return path


@pytest.mark.parametrize(
    ("added", "verdict"), [(0.05, Verdict.BETTER), (-0.05, Verdict.WORSE), (0.0, Verdict.UNSHOWN)]
)
def test_a_run_is_compared_with_a_saved_one_query_by_query(saved, added, verdict):
    new = result({"dense": [value + added for value in OLD]})
    one = compare(new, read_run(saved)).legs["dense"]["ndcg@10"]
    assert one.mean == pytest.approx(added)
    assert one.verdict is verdict


def test_the_comparison_does_not_depend_on_the_order_in_the_file(saved):
    told = json.loads(saved.read_text())
    queries = told["sets"][0]["per_query"]["dense"]
    told["sets"][0]["per_query"]["dense"] = dict(reversed(queries.items()))
    saved.write_text(json.dumps(told))
    one = compare(result({"dense": OLD}), read_run(saved)).legs["dense"]["hit@1"]
    assert (one.low, one.high) == (0, 0)


def test_legs_of_one_run_only_are_named_and_left_out(saved):
    compared = compare(result({"dense": OLD, "hybrid": OLD}), read_run(saved))
    assert set(compared.legs) == {"dense"}
    assert compared.notes == (
        "bm25 is in only one of the runs",
        "hybrid is in only one of the runs",
    )


def test_other_queries_are_refused(saved):
    with pytest.raises(EvalDataError, match="different queries of made"):
        compare(result({"dense": OLD[:20]}), read_run(saved))


def test_another_set_is_refused(saved):
    with pytest.raises(EvalDataError, match="has no set other; its sets are: made"):
        compare(result({"dense": OLD}, "other"), read_run(saved))


def test_other_documents_are_refused(saved):
    told = json.loads(saved.read_text())
    told["sets"][0]["fingerprints"]["documents"] = "0" * 16
    saved.write_text(json.dumps(told))
    with pytest.raises(EvalDataError, match="different documents of made"):
        compare(result({"dense": OLD}), read_run(saved))


def test_a_run_that_lacks_queries_is_damaged(saved):
    told = json.loads(saved.read_text())
    del told["sets"][0]["per_query"]["dense"]["q3"]
    saved.write_text(json.dumps(told))
    with pytest.raises(EvalDataError, match="damaged"):
        compare(result({"dense": OLD}), read_run(saved))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is not JSON"),
        ("[]", "was not saved by this version"),
        ('{"lot_grpc_eval": 99, "sets": []}', "was not saved by this version"),
        ('{"lot_grpc_eval": 1}', "is damaged"),
        ('{"lot_grpc_eval": 1, "sets": [{"data": "x"}]}', "is damaged"),
    ],
)
def test_a_file_that_is_no_saved_run_is_refused(tmp_path, text, words):
    path = tmp_path / "run.json"
    path.write_text(text)
    with pytest.raises(EvalDataError, match=words):
        read_run(path)


def test_files_that_cannot_be_read_or_written_are_named(tmp_path):
    with pytest.raises(EvalDataError, match=r"nope\.json: cannot be read"):
        read_run(tmp_path / "nope.json")
    with pytest.raises(EvalDataError, match="is a folder"):
        check_writable(tmp_path)
    with pytest.raises(EvalDataError, match="its folder does not exist"):
        check_writable(tmp_path / "nope" / "file")
    with pytest.raises(EvalDataError, match="cannot be written"):
        save_run(tmp_path, [])
