"""The probability that what was found is for the same task."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lot_grpc.domain.match_probability import WEIGHTS, Likeness, match_probability

shares = st.floats(0, 1)


@given(shares, shares, shares, st.booleans())
def test_more_similarity_or_more_words_never_make_it_less_likely(similarity, words, more, bare):
    likely = match_probability(Likeness(similarity, words, bare=bare))
    assert 0.0 <= likely <= 1.0
    assert match_probability(Likeness(max(similarity, more), words, bare=bare)) >= likely
    assert match_probability(Likeness(similarity, max(words, more), bare=bare)) >= likely
    assert match_probability(Likeness(similarity, words, opposed=True, bare=bare)) <= likely


def test_the_same_words_are_the_same_task_and_their_opposite_is_not():
    assert match_probability(Likeness(0.95, 1.0)) > 0.85
    assert match_probability(Likeness(0.87, 0.9, opposed=True)) < 0.2
    assert match_probability(Likeness(0.45, 0.0)) < 0.01


def test_there_is_a_weight_for_each_feature():
    assert len(WEIGHTS) == len(Likeness(0.0, 0.0).features)
