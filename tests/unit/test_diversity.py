"""Maximal marginal relevance."""

import math

from hypothesis import given
from hypothesis import strategies as st

from lot_grpc.domain.diversity import diverse


def at(degrees):
    return (math.cos(math.radians(degrees)), math.sin(math.radians(degrees)))


def test_a_near_duplicate_of_what_is_shown_gives_its_place_to_something_else():
    vectors = [at(0), at(1), at(60)]
    assert diverse([0.90, 0.89, 0.70], vectors, 2) == [0, 2]
    assert diverse([0.90, 0.89, 0.70], vectors, 3) == [0, 2, 1]


def test_what_is_no_duplicate_keeps_the_order_of_relevance():
    assert diverse([0.5, 0.9, 0.7], [at(0), at(90), at(180)], 3) == [1, 2, 0]


def test_an_irrelevant_thing_is_not_shown_for_being_different():
    assert diverse([0.9, 0.85, 0.05], [at(0), at(20), at(90)], 2) == [0, 1]


def test_places_and_candidates_may_be_none():
    assert diverse([], [], 5) == []
    assert diverse([0.9], [at(0)], 0) == []


CANDIDATES = st.lists(
    st.tuples(st.floats(0, 1), st.floats(0, 360)), min_size=1, max_size=12
).flatmap(lambda rows: st.tuples(st.just(rows), st.integers(1, 15), st.floats(0, 1)))


@given(CANDIDATES)
def test_each_place_goes_to_the_best_by_the_formula(given_rows):
    rows, limit, weight = given_rows
    relevances = [relevance for relevance, _ in rows]
    vectors = [at(angle) for _, angle in rows]
    chosen = diverse(relevances, vectors, limit, weight)
    assert len(chosen) == len(set(chosen)) == min(limit, len(rows))

    def marginal(one, shown):
        likeness = max(
            (math.cos(math.radians(rows[one][1] - rows[other][1])) for other in shown),
            default=0.0,
        )
        return weight * relevances[one] - (1 - weight) * max(0.0, likeness)

    for place, one in enumerate(chosen):
        shown = chosen[:place]
        best = max(marginal(other, shown) for other in range(len(rows)) if other not in shown)
        assert marginal(one, shown) >= best - 1e-9


@given(st.lists(st.floats(0, 1), min_size=1, max_size=9))
def test_relevance_alone_is_its_order(relevances):
    vectors = [at(0)] * len(relevances)
    shown = [relevances[one] for one in diverse(relevances, vectors, len(relevances), 1.0)]
    assert shown == sorted(relevances, reverse=True)
