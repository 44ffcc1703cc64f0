"""The form in which texts are compared."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Callable
from typing import Any

import pytest

from lot_grpc.domain.text_form import folded, normal_form, without_breaks, word_form
from lot_grpc.regexes import Regex


@pytest.mark.parametrize(
    "text", ["plain", "Za\u017c\u00f3\u0142\u0107 ", "\u304c\u304e", "\uac01", "\u1e69"]
)
@pytest.mark.parametrize("times", [1, 999, 2500])
def test_long_texts_are_cut_where_nothing_is_joined(text, times):
    for shift in range(3):
        whole = "x" * shift + text * times
        decomposed = unicodedata.normalize("NFD", whole)
        assert normal_form(decomposed) == normal_form(whole) == unicodedata.normalize("NFC", whole)


def test_a_run_of_marks_takes_no_square_of_its_length():
    marks = "\u0301\u0323" * 100_000  # a minute if it were put in order as a whole
    assert len(normal_form("a" + marks)) >= len(marks) - 2


@pytest.mark.parametrize("form", [normal_form, word_form, without_breaks])
def test_other_threads_run_while_a_long_text_is_read(form: Callable[[str], str]):
    """No call translates or normalizes much at once: none but its thread runs until it returns."""
    lengths = []

    def seen(_frame: Any, event: str, called: Any) -> None:
        if event == "c_call" and called.__name__ == "translate":
            lengths.append(len(called.__self__))

    sys.setprofile(seen)
    try:
        assert len(form("\ufdfa\u200b" * 50_000)) >= 50_000
    finally:
        sys.setprofile(None)
    assert max(lengths, default=0) < 50_000
    assert lengths or form is normal_form


def test_folded_texts_are_the_same_in_any_form_and_letter_case():
    assert folded("  CAFE\u0301  x ") == folded("caf\u00e9 X")


def test_a_regular_expression_and_a_text_meet_in_one_form():
    for regex in ("^caf\u00e9+$", "^cafe\u0301+$"):
        for text in ("CAF\u00c9\u00c9", "cafe\u0301e\u0301"):
            assert Regex(regex).matches(text)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("\uff24\uff25\uff30\uff2c\uff2f\uff39", "DEPLOY"),
        ("\ufb01le", "file"),
        ("dis\u00adable", "disable"),
        ("dis\u200bable", "disable"),
        ("dis\u200d\u2060able\ufeff", "disable"),
        ("\u202eread\u2011only", "read-only"),
        ("caf\u0065\u0301", "caf\u00e9"),
    ],
)
def test_words_are_compared_without_what_only_their_setting_is(text, word):
    assert word_form(text) == word_form(word) == word


def test_what_is_shown_keeps_its_letters():
    assert without_breaks("\uff24is\u00adable x\u00b2") == "\uff24isable x\u00b2"
