"""The probability that what was found is for the same task."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lot_grpc.domain.match_probability import WEIGHTS, Likeness, match_probability

shares = st.floats(0, 1)


@given(shares, shares, shares, st.booleans(), st.booleans())
def test_what_speaks_for_the_same_task_never_makes_it_less_likely(
    similarity, words, more, differ, bare
):
    likely = match_probability(Likeness(similarity, words, differ, bare=bare))
    assert 0.0 <= likely <= 1.0
    closer = Likeness(max(similarity, more), words, bare=bare)
    assert match_probability(closer) >= likely
    worded_alike = Likeness(similarity, max(words, more), bare=bare)
    assert match_probability(worded_alike) >= likely
    opposed = Likeness(similarity, words, differ, opposed=True, bare=bare)
    assert match_probability(opposed) <= likely


def test_the_same_words_are_the_same_task_and_their_opposite_is_not():
    assert match_probability(Likeness(0.95, 1.0)) > 0.9
    assert match_probability(Likeness(0.87, 0.9, differ=True, opposed=True)) < 0.1
    assert match_probability(Likeness(0.45, 0.0, differ=True)) < 0.01


def test_a_similarity_that_shared_words_explain_tells_less():
    paraphrase = match_probability(Likeness(0.9, 0.2, differ=True))
    neighbour = match_probability(Likeness(0.9, 0.8, differ=True))
    instance = match_probability(Likeness(0.9, 1.0))
    assert neighbour < paraphrase < instance


def test_there_is_a_weight_for_each_feature():
    assert len(WEIGHTS) == len(Likeness(0.0, 0.0).features)
