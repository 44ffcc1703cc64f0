"""The tables of words are as their readers take them, so that an edit that slips is seen."""

from __future__ import annotations

from importlib.resources import files

import pytest

from lot_grpc.data import read_blocks, read_lines, read_table, read_words

FILES = sorted(file.name for file in files("lot_grpc.data").iterdir() if "." in file.name)


def test_there_are_no_files_but_those_that_can_be_read():
    assert {name.rpartition(".")[2] for name in FILES} == {"py", "toml", "txt"}


def test_comments_and_empty_lines_are_left_out():
    kinds = read_blocks("failure_kinds.txt")
    assert all(all(line and not line.startswith("#") for line in kind) for kind in kinds)
    assert [line for kind in kinds for line in kind] == read_lines("failure_kinds.txt")


@pytest.mark.parametrize("name", ["message_words.txt", "seeming_opposites.txt"])
def test_no_word_stands_twice(name: str):
    words = read_words(name)
    assert len(words) == len(set(words))


def test_opposites_have_two_sides():
    for line in read_lines("opposites.txt"):
        one, bar, other = line.partition("|")
        assert (bar, "|" in other) == ("|", False), line
        assert one.split(), line
        assert other.split(), line


def test_grades_lie_between_minus_one_and_one():
    table = read_table("judging_words.toml")
    assert all(-1 <= one["grade"] <= 1 for one in (*table["words"], *table["phrases"]))


def test_a_language_has_no_name_that_is_an_alias():
    table = read_table("languages.toml")
    aliases = [alias for given in table["aliases"].values() for alias in given]
    assert len(aliases) == len(set(aliases))
    assert not set(aliases) & {*table["aliases"], *table["code"]}
