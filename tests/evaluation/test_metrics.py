from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lot_grpc.evaluation.metrics import METRICS, hit, ndcg, recall, reciprocal_rank, scores

IDS = [f"d{n}" for n in range(15)]
JUDGED = st.dictionaries(st.sampled_from(IDS), st.integers(0, 3), min_size=1).filter(
    lambda judged: any(judged.values())
)
RANKINGS = st.lists(st.sampled_from([*IDS, "other", "another"]), unique=True, max_size=15)


def test_ndcg_is_the_value_computed_by_hand():
    judged = {"a": 2, "b": 1, "c": 1}
    # DCG = 1/log2(2) + 2/log2(4) = 2; ideal = 2 + 1/log2(3) + 1/2 = 3.13093
    assert ndcg(["b", "x", "a"], judged) == pytest.approx(2 / 3.1309297535714573)


def test_the_gain_is_the_score_and_not_a_power_of_two():
    # With 2**score - 1 it would be (1 + 7/log2(3)) / (7 + 1/log2(3)).
    expected = (1 + 3 / math.log2(3)) / (3 + 1 / math.log2(3))
    assert ndcg(["one", "three"], {"one": 1, "three": 3}) == pytest.approx(expected)


def test_the_ideal_takes_in_relevant_documents_that_were_not_found():
    assert ndcg(["a"], {"a": 1, "b": 1}) == pytest.approx(1 / (1 + 1 / math.log2(3)))


def test_the_eleventh_rank_counts_neither_for_ndcg_nor_for_mrr():
    ranking = [f"x{n}" for n in range(10)] + ["a"]
    assert ndcg(ranking, {"a": 1}) == 0
    assert reciprocal_rank(ranking, {"a": 1}) == 0
    assert reciprocal_rank(ranking[1:], {"a": 1}) == pytest.approx(0.1)


def test_more_than_ten_relevant_documents_can_still_reach_ndcg_one():
    judged = dict.fromkeys(IDS, 1.0)
    assert ndcg(IDS[:10], judged) == pytest.approx(1)


def test_recall_counts_relevant_documents_among_five_over_all_relevant_ones():
    judged = {"a": 1, "b": 2, "c": 1, "no": 0}
    assert recall(["x", "a", "no", "y", "b", "c"], judged) == pytest.approx(2 / 3)


def test_hit_looks_at_the_first_document_only_and_at_nothing_of_an_empty_answer():
    assert hit(["a", "b"], {"a": 1}) == 1
    assert hit(["b", "a"], {"a": 1}) == 0
    assert hit(["no"], {"no": 0, "a": 1}) == 0
    assert set(scores([], {"a": 1}).values()) == {0.0}


def test_a_negative_score_is_no_gain_and_no_relevance():
    assert ndcg(["bad", "a"], {"bad": -5, "a": 1}) == pytest.approx(1 / math.log2(3))
    assert hit(["bad"], {"bad": -5, "a": 1}) == 0


@given(RANKINGS, JUDGED)
def test_ndcg_agrees_with_a_second_formula(ranking, judged):
    """Rank by rank, with natural logarithms, the ideal from an explicit ranking of all judged."""

    def gained(order):
        total = 0.0
        for index in range(min(10, len(order))):
            total += judged.get(order[index], 0) * math.log(2) / math.log(index + 2)
        return total

    ideal = sorted(judged, key=lambda document: -judged[document])
    assert ndcg(ranking, judged) == pytest.approx(gained(ranking) / gained(ideal))


@given(RANKINGS, JUDGED)
def test_mrr_and_recall_and_hit_agree_with_second_formulas(ranking, judged):
    relevant = [bool(judged.get(document)) for document in ranking]
    first = (relevant[:10].index(True) + 1) if True in relevant[:10] else math.inf
    assert reciprocal_rank(ranking, judged) == pytest.approx(1 / first)
    assert recall(ranking, judged) == pytest.approx(
        sum(relevant[:5]) / sum(gain > 0 for gain in judged.values())
    )
    assert hit(ranking, judged) == float(first == 1)


@given(RANKINGS, JUDGED)
def test_every_metric_is_a_share_and_the_ideal_ranking_is_perfect(ranking, judged):
    assert all(0 <= value <= 1 + 1e-12 for value in scores(ranking, judged).values())
    best = sorted(judged, key=lambda document: -judged[document])
    perfect = scores(best, judged)
    assert perfect.keys() == set(METRICS)
    assert perfect["ndcg@10"] == pytest.approx(1)
    assert perfect["mrr@10"] == perfect["hit@1"] == 1
