"""Meaning and words in one order."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lot_grpc.domain.fusion import (
    LEAST_SPAN,
    NO_OVERLAP,
    FusionWeights,
    Overlap,
    Relevance,
    fuse,
)

WEIGHTS = FusionWeights()
shares = st.floats(0, 1)
names = st.integers(0, 40).map(lambda number: f"{number:02}")
cosines = st.dictionaries(names, shares | st.sampled_from([0.5, 0.75]), max_size=20)
scores = st.dictionaries(names, st.floats(0.01, 40) | st.just(3.0), max_size=20)


@st.composite
def legs(draw: st.DrawFn) -> tuple[dict[str, float], dict[str, float], dict[str, float]]:
    """Hits of the dense leg, other cosines, BM25 scores of some of both."""
    similar, others = draw(cosines), draw(cosines)
    others = {name: cosine for name, cosine in others.items() if name not in similar}
    known = similar.keys() | others.keys()
    return similar, others, {n: score for n, score in draw(scores).items() if n in known}


def ids(found: list[Relevance]) -> list[str]:
    return [one.id for one in found]


# --- how much meaning weighs ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("likeness", "expected"), [(0.0, 0.45), (0.39, 0.45), (0.4, 0.05), (1.0, 0.05)]
)
def test_words_decide_where_the_best_hit_is_nearly_the_same_text(likeness, expected):
    assert WEIGHTS.meaning(Overlap(likeness, 4)) == expected
    assert WEIGHTS.words_decide(Overlap(likeness, 4)) is (expected < 0.1)


@pytest.mark.parametrize(
    ("shared", "expected"),
    [
        (NO_OVERLAP, 1.0),
        (Overlap(0.8, 0), 1.0),  # "what is the" in common says nothing
        (Overlap(0.8, 1), 1.0),
        (Overlap(0.2, 2), 0.45),
        (Overlap(0.2, 9), 0.45),
        (Overlap(0.2, 1, complete=True), 0.45),  # one word in the query, and found
        (Overlap(0.8, 1, complete=True), 0.05),
    ],
)
def test_one_telling_word_is_coincidence_unless_the_query_has_no_more(shared, expected):
    assert WEIGHTS.meaning(shared) == expected


@pytest.mark.parametrize(
    ("shared", "expected"),
    [
        (Overlap(0.0, 1), 0.95),
        (Overlap(0.9, 4), 0.95),
        (Overlap(0.1, 4, complete=True), 0.45),
        (Overlap(0.5, 4, complete=True), 0.05),
    ],
)
def test_in_bare_code_meaning_leads_unless_it_has_all_the_telling_words(shared, expected):
    assert WEIGHTS.meaning(shared, code=True) == expected


@given(shares, shares, st.integers(0, 9), st.booleans(), st.booleans())
def test_the_more_is_in_common_the_less_meaning_weighs(one, other, telling, complete, code):
    less, more = sorted([one, other])
    weight = WEIGHTS.meaning(Overlap(less, telling, complete), code=code)
    assert 1.0 >= weight >= WEIGHTS.meaning(Overlap(more, telling, complete), code=code) > 0.0
    assert weight >= WEIGHTS.meaning(Overlap(less, telling + 1, complete), code=code)
    assert weight >= WEIGHTS.meaning(Overlap(less, telling, True), code=code)


# --- fusing -----------------------------------------------------------------------------------


def test_the_best_lexical_hit_stands_with_the_best_cosine_and_others_in_proportion():
    found = fuse({"a": 0.9, "b": 0.7, "c": 0.5}, {}, {"b": 8.0, "c": 4.0}, 0.5)
    assert {one.id: one.words for one in found} == pytest.approx({"a": 0.5, "b": 0.9, "c": 0.7})
    assert {one.id: one.value for one in found} == pytest.approx({"a": 0.7, "b": 0.8, "c": 0.6})
    assert ids(found) == ["b", "a", "c"]


def test_a_hit_of_the_words_alone_is_measured_on_the_scale_of_the_dense_leg():
    found = fuse({"a": 0.9, "b": 0.8}, {"far": 0.2}, {"far": 5.0}, 0.25)
    [far] = [one for one in found if one.id == "far"]
    assert far.similarity == 0.2
    assert far.words == pytest.approx(0.9)
    assert far.value == pytest.approx(0.25 * 0.2 + 0.75 * 0.9)


def test_without_a_dense_leg_the_others_give_the_scale():
    found = fuse({}, {"a": 0.6, "b": 0.2}, {"a": 1.0, "b": 2.0}, 0.0)
    assert {one.id: one.value for one in found} == pytest.approx({"a": 0.4, "b": 0.6})


def test_where_cosines_hardly_differ_words_still_tell_hits_apart():
    found = fuse({"a": 0.7, "b": 0.7}, {}, {"b": 3.0}, 0.5)
    assert ids(found) == ["b", "a"]
    assert [one.words for one in found] == pytest.approx([0.7, 0.7 - LEAST_SPAN])


def test_nothing_found_is_nothing():
    assert fuse({}, {}, {}, 0.5) == []
    assert fuse({}, {}, {"gone": 1.0}, 0.5) == []


@given(legs(), shares)
def test_each_hit_comes_once_best_first_and_equal_ones_by_id(legs, weight):
    similar, others, lexical = legs
    found = fuse(similar, others, lexical, weight)
    assert sorted(ids(found)) == sorted([*similar, *others])
    keys = [(-one.value, one.id) for one in found]
    assert keys == sorted(keys)
    assert all(one.similarity == (similar | others)[one.id] for one in found)


@given(legs(), shares)
def test_a_relevance_is_on_the_scale_of_the_cosine(legs, weight):
    similar, others, lexical = legs
    scale = (similar or others).values()
    for one in fuse(similar, others, lexical, weight):
        lowest = max(0.0, min([*scale, max(scale) - LEAST_SPAN]))
        assert lowest - 1e-9 <= one.words <= max(*scale, LEAST_SPAN) + 1e-9
        low, high = sorted([one.similarity, one.words])
        assert low - 1e-9 <= one.value <= high + 1e-9


@given(legs(), shares)
def test_parts_add_up_to_the_value(legs, weight):
    similar, others, lexical = legs
    for one in fuse(similar, others, lexical, weight):
        total = math.fsum(part.value * part.weight for part in one.parts)
        assert total == pytest.approx(one.value, abs=1e-12)
        assert math.fsum(part.weight for part in one.parts) == pytest.approx(1.0)
        assert all(part.weight > 0 for part in one.parts)


@given(cosines, cosines, shares)
def test_without_lexical_hits_the_cosine_alone_orders(similar, others, weight):
    others = {name: cosine for name, cosine in others.items() if name not in similar}
    found = fuse(similar, others, {}, weight)
    both = similar | others
    assert ids(found) == sorted(both, key=lambda name: (-both[name], name))
    assert all(one.value == one.similarity for one in found)
    assert all([part.name for part in one.parts] == ["similarity"] for one in found)


@given(legs(), shares)
def test_who_is_better_in_both_legs_is_never_behind(legs, weight):
    similar, others, lexical = legs
    found = fuse(similar, others, lexical, weight)
    for place, one in enumerate(found):
        for behind in found[place + 1 :]:
            better = behind.similarity > one.similarity and behind.words > one.words
            assert not better, (one, behind)


@given(legs())
def test_the_ends_of_the_weight_are_one_leg_alone(legs):
    similar, others, lexical = legs
    both = similar | others
    dense = fuse(similar, others, lexical, 1.0)
    assert ids(dense) == sorted(both, key=lambda name: (-both[name], name))
    if lexical:
        words = fuse(similar, others, lexical, 0.0)
        values = [lexical.get(one.id, 0.0) for one in words]
        assert values == pytest.approx(sorted(values, reverse=True))
