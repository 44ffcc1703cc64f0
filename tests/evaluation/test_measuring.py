from __future__ import annotations

import pytest

from lot_grpc.evaluation.dataset import EvalQuery
from lot_grpc.evaluation.measuring import measure
from lot_grpc.evaluation.results import result_json, result_of
from lot_grpc.evaluation.searcher import LEGS
from tests.evaluation.made import TableSearcher, a_dataset, measured

QUERIES = [
    EvalQuery("q1", "one", {"a": 1.0}, groups=("said", "said/kitchen")),
    EvalQuery("q2", "two", {"b": 1.0}, exclude=frozenset({"x", "y"}), groups=("said",)),
    EvalQuery("q3", "none", {"c": 0.0}),
]
ANSWERS = {
    "q1": {"dense": ["a"], "bm25": ["z", "a"], "hybrid": ["a", "z"], "rerank": ["z"]},
    "q2": {"dense": ["x", "y", "b"], "bm25": ["b"], "hybrid": ["x", "b"], "rerank": ["b"]},
}


async def measured_by_table():
    searcher, told = TableSearcher(ANSWERS), []
    found = await measure(
        a_dataset(QUERIES), searcher, (*LEGS, "rerank"), lambda *what: told.append(what)
    )
    return searcher, told, found


async def test_each_leg_is_asked_each_answerable_query_deep_enough_for_what_is_excluded():
    searcher, _, found = await measured_by_table()
    assert searcher.indexed == ["a", "b", "c"]
    assert searcher.requested == [
        ("q1", "dense", 10, False),
        ("q2", "dense", 12, False),
        ("q1", "bm25", 10, False),
        ("q2", "bm25", 12, False),
        ("q1", "hybrid", 10, False),
        ("q2", "hybrid", 12, False),
        ("q1", "hybrid", 10, True),
        ("q2", "hybrid", 12, True),
    ]
    assert found.legs == ("dense", "bm25", "hybrid", "rerank")
    assert {leg: len(times) for leg, times in found.times.items()} == dict.fromkeys(found.legs, 2)


async def test_excluded_documents_are_taken_out_before_ranks_are_counted():
    _, _, found = await measured_by_table()
    assert found.per_query["dense"]["q2"]["hit@1"] == 1
    assert found.per_query["bm25"]["q1"]["mrr@10"] == 0.5


async def test_progress_tells_of_every_leg_and_ends_each():
    _, told, _ = await measured_by_table()
    ended = [task for task, done, total in told if done == total > 0]
    assert ended == [f"made: {leg}" for leg in (*LEGS, "rerank")]


async def test_the_json_has_the_legs_as_keys_and_counts_what_is_left_out():
    _, _, found = await measured_by_table()
    told = result_json(result_of(found, {"model": "m"}))
    assert told["data"] == "made"
    assert (told["documents"], told["queries"], told["queries_without_relevant"]) == (3, 2, 1)
    assert (told["documents_read_in_part"], told["queries_read_in_part"]) == (1, 2)
    assert told["filter"] is None
    for leg in ("dense", "bm25", "hybrid", "rerank"):
        assert set(told[leg]) == {
            "ndcg@10",
            "mrr@10",
            "recall@5",
            "hit@1",
            "intervals",
            "p50_ms",
        }
    assert told["dense"]["hit@1"] == 1.0
    assert told["bm25"]["mrr@10"] == 0.75
    assert told["rerank"]["hit@1"] == 0.5


async def test_groups_have_means_over_their_own_queries():
    _, _, found = await measured_by_table()
    groups = result_json(result_of(found, {}))["groups"]
    assert {name: group["queries"] for name, group in groups.items()} == {
        "said": 2,
        "said/kitchen": 1,
    }
    assert groups["said"]["bm25"]["hit@1"] == 0.5
    assert groups["said/kitchen"]["bm25"]["hit@1"] == 0.0


def test_hybrid_is_compared_with_the_better_of_its_legs_query_by_query():
    values = {
        "dense": [0.1 * (n % 5) for n in range(40)],
        "bm25": [0.1 * (n % 5) + 0.1 for n in range(40)],
        "hybrid": [0.1 * (n % 5) + 0.15 for n in range(40)],
    }
    gain = result_json(result_of(measured(values), {}))["hybrid_minus_better_leg"]["ndcg@10"]
    assert gain == {
        "better_leg": "bm25",
        "difference": 0.05,
        "interval": [0.05, 0.05],
        "shows": "better",
    }


@pytest.mark.parametrize("legs", [("dense",), ("dense", "hybrid")])
def test_without_all_three_legs_nothing_is_said_of_the_gain(legs):
    told = result_json(result_of(measured({leg: [0.5, 1.0] for leg in legs}), {}))
    assert "hybrid_minus_better_leg" not in told
    assert "groups" not in told


def test_the_time_told_is_the_median():
    assert result_of(measured({"dense": [1.0]}), {}).p50_ms == {"dense": 2.0}
