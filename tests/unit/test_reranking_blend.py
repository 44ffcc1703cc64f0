"""The cross-encoder's scores, blended into what both legs found."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lot_grpc.domain.fusion import LEAST_SPAN, Relevance
from lot_grpc.domain.reranking import RERANK_WEIGHT, blend


def relevance(name: str, value: float, weight: float = 0.5) -> Relevance:
    """One whose words and cosine are as much."""
    return Relevance(name, value, value, value, weight)


THREE = [relevance("a", 0.9), relevance("b", 0.8), relevance("c", 0.7)]


@st.composite
def scored(draw: st.DrawFn) -> tuple[list[Relevance], list[float | None]]:
    """Candidates, best first, and scores of the first of them."""
    parts = st.integers(0, 64).map(lambda part: part / 64)  # exact, so that equal ones stay so
    values = draw(st.lists(parts, max_size=12))
    weights = draw(st.lists(parts, min_size=12, max_size=12))
    found = [
        relevance(f"{n:02}", value, weights[n])
        for n, value in enumerate(sorted(values, reverse=True))
    ]
    reached = draw(st.integers(0, len(found)))
    given_ = st.none() | st.floats(0, 1) | st.sampled_from([0.0, 0.5, 1.0])
    return found, draw(st.lists(given_, min_size=reached, max_size=reached))


def ids(found: list[Relevance]) -> list[str]:
    return [one.id for one in found]


def test_scores_are_spread_as_logits_over_the_range_of_the_reranked():
    found = {one.id: one for one in blend(THREE, [0.1, 0.5, 0.9])}
    assert {name: one.reranked for name, one in found.items()} == pytest.approx(
        {"a": 0.7, "b": 0.8, "c": 0.9}
    )
    assert found["a"].value == pytest.approx((1 - RERANK_WEIGHT) * 0.9 + RERANK_WEIGHT * 0.7)
    assert {one.rerank_weight for one in found.values()} == {RERANK_WEIGHT}


def test_logits_and_not_shares_order_what_is_far_from_one_half():
    middle = {one.id: one for one in blend(THREE, [0.000_1, 0.01, 0.99])}["b"]
    low, mid, high = (math.log(p / (1 - p)) for p in (0.000_1, 0.01, 0.99))
    assert middle.reranked == pytest.approx(0.7 + 0.2 * (mid - low) / (high - low))


def test_the_order_changes_as_far_as_the_weight_lets_it():
    near = [relevance("a", 0.80), relevance("b", 0.79), relevance("c", 0.5)]
    assert ids(blend(near, [0.2, 0.9, 0.1])) == ["b", "a", "c"]
    assert ids(blend(near, [0.2, 0.1, 0.9]))[-1] == "c"
    assert ids(blend(near, [0.2, 0.1, 0.9], weight=1.0)) == ["c", "a", "b"]


def test_who_was_not_reached_keeps_the_relevance():
    found = {one.id: one for one in blend([*THREE, relevance("d", 0.6)], [0.1, None, 0.9])}
    assert found["b"] == THREE[1]
    assert found["d"] == relevance("d", 0.6)
    assert found["a"].rerank_weight == found["c"].rerank_weight == RERANK_WEIGHT


@pytest.mark.parametrize("scores", [[], [None, None, None], [0.9], [None, 0.9, None]])
def test_one_score_alone_or_none_changes_nothing(scores):
    assert blend(THREE, scores) == THREE


def test_equal_scores_keep_the_order():
    assert ids(blend(THREE, [0.4, 0.4, 0.4])) == ["a", "b", "c"]


def test_certain_scores_are_finite():
    found = blend(THREE, [0.0, 0.5, 1.0])
    assert all(math.isfinite(one.value) for one in found)
    assert {one.id: one.reranked for one in found} == pytest.approx({"a": 0.7, "b": 0.8, "c": 0.9})


def test_equal_relevance_is_ordered_by_id():
    same = [relevance("b", 0.5), relevance("a", 0.5), relevance("c", 0.5)]
    assert ids(blend(same, [0.3, 0.3, 0.2]))[:2] == ["a", "b"]


@given(scored())
def test_each_candidate_stays_best_first_and_within_the_range_of_the_reranked(given_):
    found, scores = given_
    after = blend(found, scores)
    assert sorted(ids(after)) == sorted(ids(found))
    keys = [(-one.value, one.id) for one in after]
    assert keys == sorted(keys)
    values = [one.value for one in found]
    for one in after:
        assert min(values) - 1e-9 <= one.value <= max(values) + LEAST_SPAN + 1e-9


def test_what_was_read_never_falls_behind_what_was_not():
    alike = [relevance(name, 0.8) for name in "abcd"]
    assert ids(blend(alike, [0.1, 0.9])) == ["b", "a", "c", "d"]
    assert ids(blend(alike, [0.4, 0.4])) == ["a", "b", "c", "d"]


@given(scored(), st.floats(0, 1))
def test_parts_add_up_to_the_value(given_, weight):
    found, scores = given_
    for one in blend(found, scores, weight=weight):
        total = math.fsum(part.value * part.weight for part in one.parts)
        assert total == pytest.approx(one.value, abs=1e-12)
        assert math.fsum(part.weight for part in one.parts) == pytest.approx(1.0)
        names = [part.name for part in one.parts]
        assert ("rerank" in names) == (one.rerank_weight > 0)


@given(scored())
def test_without_weight_nothing_changes(given_):
    found, scores = given_
    assert [(one.id, one.value) for one in blend(found, scores, weight=0.0)] == [
        (one.id, one.value) for one in found
    ]


@given(scored())
def test_who_is_better_before_and_by_its_score_is_never_behind(given_):
    found, scores = given_
    after = ids(blend(found, scores))
    reached = [(one, score) for one, score in zip(found, scores, strict=False) if score is not None]
    for one, high in reached:
        for other, low in reached:
            if one.value > other.value and high > low:
                assert after.index(one.id) < after.index(other.id)
