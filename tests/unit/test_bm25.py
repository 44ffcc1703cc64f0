"""What terms weigh, in texts and in queries."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lot_grpc.domain.fusion import NO_OVERLAP, Overlap
from lot_grpc.lexical import bm25
from lot_grpc.lexical.bm25 import (
    LENGTH_POWER,
    MOST_QUERY_TERMS,
    SHORTEST,
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
    text = "cache " * 3 + "filler " * 27  # 30 words: 3 ** 0.35 = 1.4689007
    assert weight(text, "cach") == pytest.approx(3 * 2.5 / (3 + 1.5) / 1.4689007)
    assert weight(text, "filler") == pytest.approx(27 * 2.5 / (27 + 1.5) / 1.4689007)


def test_a_very_short_text_weighs_no_more_than_a_sentence():
    sentence = "cache the user name of whoever signs in before noon"  # ten words
    for shorter in ("cache", "cache the user name"):
        assert weight(shorter, "cach") == weight(sentence, "cach") == pytest.approx(1.0)
    assert weight(f"{sentence} today", "cach") < 1.0


@given(texts)
def test_every_weight_is_the_formula(text):
    found = terms_of(text)
    divisor = max(1.0, found.length / SHORTEST) ** LENGTH_POWER
    expected = {
        term_number(term): count * (bm25.K1 + 1) / (count + bm25.K1) / divisor
        for term, count in found.counts.items()
    }
    assert weights(document_vector(text)) == pytest.approx(expected)


@given(texts, st.integers(1, 5))
def test_a_word_weighs_more_the_more_often_and_less_the_longer_the_text(text, times):
    once, again = weight(f"{text} zebra", "zebra"), weight(f"{text} zebra zebra", "zebra")
    assert once < again < bm25.K1 + 1
    filled = weight(f"{text} zebra" + " filler" * times, "zebra")
    assert filled <= once
    assert (filled < once) is (terms_of(text).length + 1 + times > SHORTEST)


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
    assert weights(vector) == pytest.approx({7: 2.0})
    assert weights(lexical_query("cache token").vector) == {7: 2.0}


# --- queries ----------------------------------------------------------------------------------


def test_function_words_count_in_the_form_of_a_query_alone():
    query = lexical_query("What did Melanie paint at the lake?")
    named = {term_number(term): 1.0 for term in ("melani", "paint", "lake")}
    shaping = [term_number(term) for term in ("what", "did", "at", "the")]
    assert weights(query.vector) == named
    assert query.form is not None
    assert weights(query.form) == named | dict.fromkeys(shaping, 1.0)


@pytest.mark.parametrize("text", ["parse json", "what is the", "?"])
def test_a_query_whose_terms_are_all_of_one_kind_is_looked_for_once(text):
    assert lexical_query(text).form is None


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


@pytest.mark.parametrize(
    ("query", "text", "shared"),
    [
        ("parse json fast", "parse json slowly now please", Overlap(4 / 8, 2)),
        ("parse json fast", "parse json fast", Overlap(1.0, 3, complete=True)),
        ("parse the json", "the json parsing needs", Overlap(6 / 7, 2, complete=True)),
        ("parse the json", "the xml", Overlap(2 / 5, 0)),
        ("what is the", "is the", Overlap(4 / 5, 2)),
        ("what is the", "what is the cache", Overlap(6 / 7, 3, complete=True)),
        ("parse json fast", "bake a cake", NO_OVERLAP),
        ("parse json fast", "", NO_OVERLAP),
        ("?", "parse", NO_OVERLAP),
    ],
)
def test_what_a_query_and_a_text_have_in_common(query, text, shared):
    assert lexical_query(query).overlap(text) == shared


@given(texts, texts)
def test_what_is_in_common_is_no_more_than_there_is(one, other):
    query = lexical_query(one)
    found = query.overlap(other)
    assert 0 <= found.likeness <= 1
    assert found.likeness == pytest.approx(lexical_query(other).overlap(one).likeness)
    assert found.telling <= len(query.telling)
    if query.terms:
        assert query.overlap(one).complete
