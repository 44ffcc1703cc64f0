"""Long texts in passages: nothing is lost, nothing is cut where it reads badly."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lot_grpc.domain import passages
from lot_grpc.domain.passages import MOST_PASSAGES, SHORT, is_short, passages_of

PIECES = st.sampled_from(
    [
        "word ",
        "a",
        ". ",
        "! ",
        "\n",
        "\n\n",
        "  ",
        "漢字",
        "。",
        "、",
        "한국어 ",
        "ไทย",
        "عربي ",
        "؟ ",
        "é",
        "👩‍🚀",
        "👍🏽",
        "🙂",
        "def f(x):\n    return x\n",
        "https://example.com/a?b=c ",
        "\u200b",
        "—",
    ]
)
LONG_TEXTS = st.lists(PIECES, max_size=400).map("".join)


def texts_of(text: str) -> list[str]:
    return [text[start:end] for start, end in passages_of(text).spans]


def sentences(count: int, words: int = 12) -> str:
    return " ".join(f"{'word ' * (words - 1)}number{n}." for n in range(count))


@given(LONG_TEXTS, st.integers(2, 30))
def test_the_passages_are_the_text_in_order_but_for_white_space(text: str, longest: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passages, "SHORT", longest)
        patch.setattr(passages, "_FINE", longest)
        found = passages_of(text)
    assert not found.cut
    place = 0
    for start, end in found.spans:
        assert text[place:start].strip() == ""
        assert place <= start < end <= len(text)
        assert text[start:end].strip() == text[start:end]
        place = end
    units = passages._UNIT.findall(text)
    if units:
        assert text[place:].strip() == ""
    assert bool(found.spans) == bool(units)


@given(LONG_TEXTS, st.integers(2, 30))
def test_no_passage_begins_with_a_mark_of_the_character_before_it(text: str, longest: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passages, "SHORT", longest)
        patch.setattr(passages, "_FINE", longest)
        spans = passages_of(text).spans
    for start, _ in spans[1:]:
        behind_white_space = text[start - 1].isspace()
        assert behind_white_space or not unicodedata.category(text[start]).startswith("M")
        assert behind_white_space or "\u200d" not in text[start - 1 : start + 1]


@given(LONG_TEXTS)
def test_what_is_short_by_its_length_is_one_passage(text: str) -> None:
    assert not is_short(text) or len(passages_of(text).spans) <= 1


@given(st.integers(1, 2 * SHORT))
def test_a_text_of_so_many_words_is_one_passage(count: int) -> None:
    assert (len(passages_of("word " * count).spans) == 1) == (count <= SHORT)


def test_a_passage_ends_behind_a_paragraph_before_a_sentence_and_a_sentence_before_a_word() -> None:
    paragraph = sentences(4)
    [first, *_] = texts_of(f"{paragraph}\n\n{sentences(40)}")
    assert first == paragraph
    assert all(one.endswith(".") for one in texts_of(sentences(100)))
    assert all(one.endswith("。") for one in texts_of("今天天气很好。" * 200))
    assert all(one.endswith("word") for one in texts_of("word " * 1000))
    lines = "".join(f"value_{n} = compute(value_{n - 1}, 3)\n" for n in range(200))
    assert all(one.endswith(")") for one in texts_of(lines))


def test_a_text_without_any_place_to_end_is_cut_between_characters() -> None:
    assert "".join(texts_of("x" * 10_000)) == "x" * 10_000
    family = "👩\u200d👩\u200d👧"
    assert "".join(texts_of(family * 2000)) == family * 2000
    for one in texts_of(family * 2000):
        assert one.replace(family, "") == ""


@pytest.mark.parametrize("units", [10_000, 40_000, 80_000])
def test_longer_texts_have_longer_passages_so_that_all_is_read(units: int) -> None:
    for piece in ("word ", "Word by word it says so. \n\n", "word. "):
        text = piece * (units // len(passages._UNIT.findall(piece)))
        found = passages_of(text)
        assert not found.cut
        assert len(found.spans) <= MOST_PASSAGES


def test_what_lies_behind_the_last_passage_is_told() -> None:
    text = "word " * (passages._COARSE * MOST_PASSAGES + 1)
    cut = passages_of(text)
    assert (len(cut.spans), cut.cut) == (MOST_PASSAGES, True)
    assert cut.spans[-1].end < len(text.rstrip())


@pytest.mark.parametrize("text", ["", " \n\t ", "\u200d"])
def test_a_text_that_says_nothing_has_no_passages(text: str) -> None:
    assert len(passages_of(text).spans) <= 1
    assert not passages_of(text).cut
