"""The estimate of tokens."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lot_grpc.domain.context.tokens import token_count


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("word", 2),
        ("the cat", 2),
        ("abc", 1),
        ("a1b2", 3),
        ("a, b.", 4),
        ("a\n\nb", 4),
        ("a    b", 3),
        ("数据库", 6),
        ("한국", 6),
        ("é", 2),
        ("🚀", 3),
    ],
)
def test_what_counts(text, tokens):
    assert token_count(text) == tokens


@given(st.text(max_size=200), st.text(max_size=200))
def test_lines_add_up(one, other):
    assert token_count(f"{one}\n{other}") == token_count(one) + token_count(other) + 1


@given(st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=200))
def test_it_is_no_more_than_the_bytes_but_no_less_than_a_sixth_of_them(text):
    visible = len("".join(text.split()).encode())
    assert visible / 6 <= token_count(text) <= len(text.encode())
