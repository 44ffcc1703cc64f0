"""What terms weigh, in texts and in queries."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lot_grpc.lexical import bm25
from lot_grpc.lexical.bm25 import (
    AVERAGE_LENGTH,
    FORM_LENGTH,
    LENGTH_POWER,
    MOST_QUERY_TERMS,
    NO_OVERLAP,
    PROSE_LENGTH,
    B,
    Overlap,
    document_vector,
    lexical_query,
    term_number,
)
from lot_grpc.lexical.terms import terms_of
from lot_grpc.ports import SparseVector

words = st.sampled_from(
    ["parse", "json", "server", "retry", "token", "the", "of", "and", "cache", "数据", "база"]
)
texts = st.lists(words, min_size=1, max_size=60).map(" ".join)


def weights(vector: SparseVector) -> dict[int, float]:
    assert len(set(vector.indices)) == len(vector.indices) == len(vector.values)
    return dict(zip(vector.indices, vector.values, strict=True))


def weight(text: str, term: str) -> float:
    return weights(document_vector(text))[term_number(term)]


# --- documents --------------------------------------------------------------------------------


def test_a_weight_is_the_formula_worked_out_by_hand():
    text = "cache " * 3 + "filler " * 27  # 30 words, the average
    assert weight(text, "cach") == pytest.approx(3 * 2.2 / (3 + 1.2))
    assert weight(text, "filler") == pytest.approx(27 * 2.2 / (27 + 1.2))
    # Four words: 1.2 * (0.1 + 0.9 * (4 / 30) ** 0.75) = 0.3583021
    assert weight("cache the user name", "cach") == pytest.approx(2.2 / (1 + 0.3583021), rel=1e-6)


@given(texts)
def test_every_weight_is_the_formula(text):
    found = terms_of(text)
    floor = bm25.K1 * (1 - B + B * (found.length / AVERAGE_LENGTH) ** LENGTH_POWER)
    expected = {
        term_number(term): count * (bm25.K1 + 1) / (count + floor)
        for term, count in found.counts.items()
    }
    assert weights(document_vector(text)) == pytest.approx(expected)


@given(texts, st.integers(1, 5))
def test_a_word_weighs_more_the_more_often_and_less_the_longer_the_text(text, times):
    once, again = weight(f"{text} zebra", "zebra"), weight(f"{text} zebra zebra", "zebra")
    assert once < again < bm25.K1 + 1
    assert weight(f"{text} zebra" + " filler" * times, "zebra") < once


@pytest.mark.parametrize("text", ["", " ", "?!"])
def test_a_text_without_words_has_an_empty_vector(text):
    assert weights(document_vector(text)) == {}
    assert weights(lexical_query(text).vector) == {}
    assert lexical_query(text).terms == frozenset()


def test_a_terms_number_is_32_bits_and_never_changes():
    assert term_number("cach") == 0x09725C31
    assert term_number("中") == 0xFBCCC752
    numbers = {term_number(str(number)) for number in range(1000)}
    assert len(numbers) == 1000
    assert all(0 <= number < 2**32 for number in numbers)


@pytest.fixture
def colliding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every term has the same number."""
    monkeypatch.setattr(bm25, "term_number", lambda term: 7)


@pytest.mark.usefixtures("colliding")
def test_terms_that_collide_add_up():
    vector = document_vector("cache token")
    floor = bm25.K1 * (1 - B + B * (2 / AVERAGE_LENGTH) ** LENGTH_POWER)
    assert weights(vector) == pytest.approx({7: 2 * 2.2 / (1 + floor)})
    assert weights(lexical_query("cache token").vector) == {7: 2.0}


# --- queries ----------------------------------------------------------------------------------


def of_terms(count: int) -> str:
    """A query of so many terms, one of them a function word."""
    return " ".join(["the", *(chr(ord("b") + n % 20) * (3 + n // 20) for n in range(count - 1))])


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        (2, 1.0),
        (FORM_LENGTH, 1.0),
        (24, 0.5),
        (PROSE_LENGTH - 1, 1 / (PROSE_LENGTH - FORM_LENGTH)),
        (PROSE_LENGTH, 0.0),
        (80, 0.0),
    ],
)
def test_function_words_count_in_short_queries_and_fade_in_long_ones(terms, expected):
    query = lexical_query(of_terms(terms))
    assert len(query.terms) == terms
    found = weights(query.vector)
    assert found.get(term_number("the"), 0.0) == pytest.approx(expected)
    found.pop(term_number("the"), None)
    assert set(found.values()) == {1.0}


def test_a_query_of_function_words_alone_still_looks_for_them():
    query = lexical_query("what is to be done about it")
    assert set(query.vector.values) == {1.0}
    assert lexical_query("what is the").terms == {"what", "is", "the"}


def test_a_repeated_word_is_asked_for_once():
    assert lexical_query("cache cache Caches") == lexical_query("cache")


def test_of_a_long_query_the_first_terms_are_looked_up_and_it_is_told():
    text = " ".join(f"word{chr(97 + n // 26)}{chr(97 + n % 26)}q" for n in range(MOST_QUERY_TERMS))
    assert not lexical_query(text).cut
    longer = lexical_query(f"{text} 数")
    assert longer.cut
    assert longer.terms == lexical_query(text).terms
    assert len(longer.vector.indices) <= MOST_QUERY_TERMS


@given(st.text(max_size=60))
def test_any_text_can_be_asked_and_stored(text):
    assert len(weights(lexical_query(text).vector)) <= len(lexical_query(text).terms)
    values = document_vector(text).values
    assert all(math.isfinite(value) and value > 0 for value in values)


# --- overlap ----------------------------------------------------------------------------------


def test_what_a_query_and_a_text_have_in_common():
    query = lexical_query("parse json fast")
    assert query.overlap("parse json slowly now please") == Overlap(2 / 3, 4 / 8, 2)
    assert query.overlap("parse json fast") == Overlap(1.0, 1.0, 3)
    assert query.overlap("bake a cake") == NO_OVERLAP
    assert query.overlap("") == NO_OVERLAP
    assert lexical_query("?").overlap("parse") == NO_OVERLAP


@given(texts, texts)
def test_overlaps_are_shares(one, other):
    found = lexical_query(one).overlap(other)
    assert 0 <= found.likeness <= 1
    assert 0 <= found.coverage <= 1
    assert found.likeness == pytest.approx(lexical_query(other).overlap(one).likeness)
