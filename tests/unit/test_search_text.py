"""What things are found by: prose and code."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lot_grpc.domain.search_text import SearchText, joined


def test_the_whole_is_prose_first_and_code_last():
    assert SearchText("Parse a date", "def f(): ...").whole == "Parse a date\ndef f(): ..."
    assert SearchText("Parse a date").whole == "Parse a date"


def test_only_what_is_there_is_joined():
    assert joined("a", "", "b") == "a\nb"
    assert joined("", "") == ""


@pytest.mark.parametrize(
    ("code", "spoken"),
    [
        ("", ""),
        ("x = 1", "x = 1"),
        ("def parse_iso_date(text):", "def parse iso date(text):"),
        ("parseIsoDate(text)", "parse Iso Date(text)"),
        ("new HTTPServer2Config()", "new HTTP Server2 Config()"),
        ("MAX_RETRY_COUNT = 5", "MAX RETRY COUNT = 5"),
        ("a__b", "a b"),
        ("sha256Sum", "sha256 Sum"),
        ("if a == b:\n\treturn c", "if a == b:\n\treturn c"),
        ("строка_запроса", "строка запроса"),
    ],
)
def test_identifiers_in_code_are_spoken_as_words(code, spoken):
    assert SearchText("t", code).spoken_code == spoken


@given(st.text(max_size=80))
def test_speaking_changes_nothing_but_where_words_part(code):
    spoken = SearchText("t", code).spoken_code
    assert spoken.replace(" ", "").replace("_", "") == code.replace(" ", "").replace("_", "")


@pytest.mark.parametrize(
    ("text", "code", "bare"),
    [
        ("def parse_date(text):", "\ndef parse_date(text):\n    ...\n", True),
        ("x = 1", "x = 1", True),
        ("Parse a date", "def parse_date(text):\n    ...", False),
        ("Parse a date", "", False),
        ("", "", False),
        ("...", "def parse_date(text):\n    ...", False),
        ("Parse a date\nx = 1", "x = 1", False),
    ],
)
def test_bare_code_is_described_by_nothing_but_itself_and_means_what_it_does(text, code, bare):
    it = SearchText(text, code)
    assert it.bare is bare
    assert it.meaning == (it.spoken_code if bare else text)


@pytest.mark.timeout(10)
def test_speaking_code_takes_no_square_of_its_length():
    for code in ("_" * 100_000, "aB" * 50_000, "A" * 100_000, "a_" * 50_000):
        assert SearchText("t", code).spoken_code
