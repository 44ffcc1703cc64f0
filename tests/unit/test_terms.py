"""Texts and the terms they are compared by."""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lot_grpc.lexical import terms as terms_module
from lot_grpc.lexical.terms import FUNCTION_TERMS, FUNCTION_WORDS, terms_of

parts = st.lists(st.from_regex(r"[a-z]{2,8}", fullmatch=True), min_size=2, max_size=4)


def terms(text: str) -> set[str]:
    return set(terms_of(text).counts)


# --- identifiers ------------------------------------------------------------------------------


@given(parts)
def test_an_identifier_has_the_same_terms_in_every_way_of_writing(parts):
    together = "".join(parts)
    written = {
        "_".join(parts),
        "-".join(parts),
        "_".join(parts).upper(),
        "-".join(parts).upper(),
        "".join(part.title() for part in parts),
        parts[0] + "".join(part.title() for part in parts[1:]),
        f"__{'_'.join(parts)}__",
    }
    counts = [terms_of(one).counts for one in written]
    assert all(one == counts[0] for one in counts)
    assert terms(" ".join(parts)) <= counts[0].keys()
    assert terms(together) <= counts[0].keys()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("HTTPServer", "http_server"),
        ("getURL", "get_url"),
        ("parseJSON2", "parse_json2"),
        ("UTF8", "utf-8"),
        ("utf8", "UTF_8"),
        ("café_menu", "cafeMenu"),
        ("file-names", "fileName"),
        ("read\u2011only", "read-only"),
    ],
)
def test_acronyms_and_digits_in_identifiers_are_parts_too(one, other):
    assert terms(one) == terms(other)


@pytest.mark.parametrize(
    "name",
    [
        "E0308",
        "TS2322",
        "0x80070005",
        "v1.2.3",
        "1.2.3",
        "127.0.0.1:8080",
        "src/server/main.rs",
        "std::vec::Vec",
        "user@example.com",
        "@types/node",
        "c#7",
    ],
)
def test_a_name_of_several_parts_is_a_term_itself_and_so_is_each_part(name):
    found = terms(name)
    assert name.lower().lstrip("@") in found
    alone = {part.lower() for part in re.findall(r"[A-Za-z]+|[0-9]+", name)}
    assert len(alone) > 1
    assert set().union(*map(terms, alone)) <= found


def test_a_path_of_windows_is_found_by_its_parts_and_as_a_whole():
    found = terms(r"C:\Users\x\app.log")
    assert {"c", "user", "x", "app", "log", r"users\x\app.log"} == found
    assert terms(r"c:\users\X\APP.LOG") == found


def test_a_flag_is_found_with_and_without_its_dashes():
    assert terms("--dry-run") == terms("dry-run") == terms("dryRun")
    assert terms("-O2") == terms("o2")


def test_languages_named_with_signs_are_words():
    assert terms("C++") == terms("c++") == {"c++"}
    assert terms("C# and F#") == {"c#", "f#", "and"}
    assert "c" not in terms("C++")


# --- words ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("users", "user"),
        ("user's", "user"),
        ("user\u2019s", "user"),
        ("users'", "user"),
        ("don't", "dont"),
        ("don\u2019t", "don't"),
        ("Café", "cafe"),
        ("naïve", "naive"),
        ("İstanbul", "istanbul"),
        ("\uff46\uff55\uff4c\uff4c", "full"),
        ("ﬁle", "file"),
        ("data\u00adbase", "database"),
        ("data\u200bbase", "database"),
        ("data\u202cbase", "database"),
        ("connecting", "connections"),
        # Russian by case, number, and with e for yo
        ("базой", "базы"),
        ("данных", "данные"),
        ("серверами", "сервер"),
        ("счёт", "счет"),
        ("ПОДКЛЮЧЕНИЕ", "подключения"),
        # Arabic with the article, in the plural, with vowel signs, stretched
        ("الملف", "ملف"),
        ("الملفات", "ملف"),
        ("مَكْتَبَة", "مكتبة"),
        ("مـــلف", "ملف"),
        ("עִבְרִית", "עברית"),
    ],
)
def test_forms_of_a_word_find_each_other(one, other):
    assert terms(one) == terms(other)
    assert len(terms(one)) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [("read", "reed"), ("C", "C++"), ("C#", "C"), ("é", "a"), ("1.2.3", "3.2.1"), ("中", "国")],
)
def test_what_is_not_the_same_is_told_apart(one, other):
    assert terms(one) != terms(other)


def test_words_of_india_are_not_cut_at_their_vowel_signs():
    assert terms("नमस्ते दुनिया") == {"नमस्ते", "दुनिया"}
    assert len(terms("தமிழ்")) == 1


def test_function_words_are_told_by_their_terms():
    assert {"the", "how", "veri"} <= FUNCTION_TERMS
    for word in FUNCTION_WORDS:
        assert terms(word.title()) <= FUNCTION_TERMS, word


# --- scripts without spaces -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("clause", "word"),
    [
        ("请先备份数据库再迁移", "数据库"),
        ("接続前にデータベースを開く", "データベース"),
        ("データベースに接続できない", "接続"),
        ("먼저 데이터베이스를 백업하세요", "데이터베이스"),
        ("สำรองฐานข้อมูลก่อน", "ฐานข้อมูล"),
        ("ｶﾀｶﾅで書く", "カタカナ"),
    ],
)
def test_a_word_is_found_inside_a_clause(clause, word):
    assert terms(word) <= terms(clause)
    assert {first + second for first, second in pairwise(word)} <= terms(word)


def test_a_script_ends_where_another_begins():
    assert {"api", "接口", "v2"} <= terms("调用API接口v2")


@given(st.text("数据库迁移备份", min_size=1, max_size=12))
def test_of_such_a_script_each_character_and_each_pair_counts(run):
    found = terms_of(run)
    assert found.length == len(run)
    assert sum(found.counts.values()) == 2 * len(run) - 1


# --- symbols, marks, what says nothing --------------------------------------------------------


@pytest.mark.parametrize("symbol", ["🙂", "→", "✓", "⭐", "⏰", "⌘", "☃"])
def test_an_emoji_or_an_arrow_is_a_term(symbol):
    assert terms(symbol) == {symbol}
    assert terms(f"{symbol}\ufe0f") == {symbol}


def test_a_joined_emoji_is_its_parts():
    assert terms("👩\u200d💻") == {"👩", "💻"}


@pytest.mark.parametrize(
    "text",
    ["", " ", "\n\t\u3000", "...", "?!", "->", "_", "()[]{}", "\0\x01\x7f", "\u0301", "\u202e"],
)
def test_what_says_nothing_has_no_terms(text):
    found = terms_of(text)
    assert (found.counts, found.length) == ({}, 0)


def test_control_characters_part_words():
    assert terms("a\0b\x01c") == {"a", "b", "c"}


def test_lengths_count_words_and_not_compounds():
    assert terms_of("The quick brown fox").length == 4
    assert terms_of("get_user_name").length == 3
    assert terms_of("src/server/main.rs").length == 4
    assert terms_of("fox fox fox").counts == {"fox": 3}
    assert terms_of("fox fox fox").length == 3


def test_of_a_blob_the_beginning_counts():
    assert terms("a" * 1000) == {"a" * 128}
    assert terms("a" * 128 + "b") == terms("a" * 128 + "c")


@pytest.mark.parametrize(
    "text",
    [
        "x" * 65_536,
        "aB" * 32_768,
        "_a" * 32_768,
        "中" * 65_536,
        "a" + "\u0301\u0323" * 32_768,
        "a." * 32_768,
        "a" + "." * 65_536,
        "a'" * 32_768,
    ],
    ids=repr,
)
@pytest.mark.timeout(10)
def test_no_text_takes_the_square_of_its_length(text):
    assert terms(text)  # minutes, if it did


@given(st.text(max_size=80) | st.text(st.characters(), max_size=40))
def test_any_text_has_terms_that_are_the_same_each_time(text):
    found = terms_of(text)
    assert found == terms_of(text)
    assert all(count > 0 for count in found.counts.values())
    assert all(term and not term.isspace() for term in found.counts)
    assert 0 <= found.length <= sum(found.counts.values())
    for term in found.counts:
        term.encode()  # as `term_number` does


@given(st.text(st.characters(codec="utf-8"), max_size=40))
def test_composed_or_not_a_text_has_the_same_terms(text):
    composed, apart = (terms(unicodedata.normalize(form, text)) for form in ("NFC", "NFD"))
    assert composed == apart


@given(st.text(max_size=30), st.text(max_size=30))
def test_two_lines_have_the_terms_of_both(one, other):
    both = terms_of(f"{one}\n\n{other}")
    assert both.counts.keys() == terms(one) | terms(other)
    assert both.length == terms_of(one).length + terms_of(other).length


@given(
    st.text(
        st.sampled_from("aB1 \n\u3000-'./#é\u0301漢ก\u0e35क\u093f+C") | st.characters(codec="utf-8")
    )
)
def test_a_long_text_read_in_pieces_has_the_same_terms(text):
    whole = terms_of(text)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(terms_module, "_PIECE", 1)
        pauses: list[None] = []
        assert terms_of(text, lambda: pauses.append(None)) == whole
    assert pauses


def test_a_long_text_is_left_off_between_pieces():
    pauses: list[None] = []
    terms_of("some words of a text " * 5_000, lambda: pauses.append(None))
    assert len(pauses) > 20
