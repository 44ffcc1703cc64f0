"""Stored text cannot break the Markdown of a context, whatever it is."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lot_grpc.domain.context.markdown import (
    SHORTENED,
    day,
    fenced,
    inline,
    inline_and_cut,
    shortened,
)

HOSTILE = st.text(
    st.one_of(
        st.characters(codec="utf-8"),
        st.sampled_from("\n\r\t`~#<>![]-=*|\\\u2028\u2029\x85\x0b\x0c\u202e\u200d\u0301"),
    ),
    max_size=300,
)


@given(HOSTILE, st.integers(1, 400))
def test_a_text_is_one_line_without_tags_and_images(text, most):
    line, cut = inline_and_cut(text, most)
    assert len(line.splitlines()) <= 1
    assert "![" not in line
    for at, character in enumerate(line):
        if character == "<":
            assert not line[at + 1 : at + 2].isalpha() or not line[at + 1].isascii()
            assert line[at + 1 : at + 2] not in ("/", "!", "?")
    assert cut == line.endswith(SHORTENED) or text.rstrip().endswith(SHORTENED)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("# Title\n\n- `id`: x", "# Title - `id`: x"),
        ("a<b and 1 < 2", "a&lt;b and 1 < 2"),
        ("<!-- hide --> \\<script>", "&lt;!-- hide --> \\&lt;script>"),
        ("see ![x](http://a/b.png)", "see !\\[x](http://a/b.png)"),
        ("abc\u202edef\x00\x1b[31m", "abcdef[31m"),
        ("a\u2028b\x85c\x0bd", "a b c d"),
        ("سلام دنیا", "سلام دنیا"),
        ("👩‍👩‍👧‍👦 e\u0301", "👩‍👩‍👧‍👦 e\u0301"),
        ("\U000e0041\U000e0042plain", "plain"),
    ],
)
def test_what_a_text_becomes(text, line):
    assert inline(text, 100) == line


@given(st.text(min_size=30, max_size=100), st.integers(1, 29))
def test_no_character_is_taken_apart(text, most):
    end = len(shortened(text, most)) - len(SHORTENED) - 1
    if 0 < end < len(text) and text[end - 1] != " ":
        assert unicodedata.category(text[end]) not in ("Mn", "Me", "Mc") or end == 0


def test_a_text_ends_where_a_word_does():
    assert shortened("one two three four", 12) == f"one two thre {SHORTENED}"
    assert shortened("one two three four", 14) == f"one two three {SHORTENED}"
    assert shortened("数据库连接超时", 3) == f"数据库 {SHORTENED}"
    assert shortened("cafe\u0301s", 4) == f"caf {SHORTENED}"
    assert shortened("x👍🏽y", 2) == f"x {SHORTENED}"


@given(HOSTILE, st.integers(1, 400))
def test_code_stays_in_its_fence(code, most):
    lines, cut = fenced(code, "py`\nthon", most, "    ")
    fence = lines[-1].strip()
    assert set(fence) == {"`"}
    assert lines[0] == f"    {fence}python"
    assert fence not in "\n".join(lines[1:-1])
    assert all("\n" not in line for line in lines)
    assert all(not line or line.startswith("    ") for line in lines)
    kept = "\n".join(line[4:] for line in lines[1:-1])
    assert len(kept) <= most + len(SHORTENED) + 1
    if cut:
        assert lines[-2].strip() == SHORTENED


def test_code_is_cut_at_a_line():
    lines, cut = fenced("one\ntwo\nthree\n", "", 8, "")
    assert (lines, cut) == (["```", "one", "two", SHORTENED, "```"], True)
    assert fenced("one\ntwo", "", 7, "") == (["```", "one", "two", "```"], False)


def test_days_are_those_of_utc():
    assert day(1_700_000_000_000_000) == "2023-11-14"
    assert day(0) == "1970-01-01"
