"""The judge of words: what it must tell, its laws, and its figures on the labelled sentences."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lot_grpc.domain.judging import UNSURE, judge
from lot_grpc.domain.judging_words import GRADES, NEGATIONS
from tests.feedback.held_out import HELD_OUT
from tests.feedback.measure import accuracy_and_false_sure, sign
from tests.feedback.sentences import DEVELOPMENT


def test_most_held_out_sentences_are_told_right_and_few_falsely():
    """As measured when the words were frozen; a change that loses some has to say so here."""
    accuracy, false_sure = accuracy_and_false_sure(HELD_OUT, [sign(text) for _, text in HELD_OUT])
    assert accuracy >= 0.83
    assert false_sure <= 0.08


def test_the_sentences_that_the_words_were_chosen_by_are_told_right():
    told = [sign(text) for _, text in DEVELOPMENT]
    accuracy, false_sure = accuracy_and_false_sure(DEVELOPMENT, told)
    assert accuracy >= 0.97
    assert false_sure <= 0.01


def test_no_sentence_is_in_both_lists():
    texts = [text for _, text in (*DEVELOPMENT, *HELD_OUT)]
    assert len(set(texts)) == len(texts)


@given(st.text())
def test_any_text_has_a_reward_in_range_and_the_same_each_time(text):
    told = judge(text)
    assert -1 <= told.reward <= 1
    assert told.conclusive == (told.reward != 0)
    assert judge(text) == told


words = st.sampled_from(sorted(word for (word, *rest), grade in GRADES.items() if not rest))


@given(st.lists(words, max_size=12))
def test_graded_words_alone_are_judged_within_range(given_words):
    assert -1 <= judge(" ".join(given_words)).reward <= 1


@pytest.mark.parametrize("text", ["", " ", "...", "?", "ok", "The port is 8080.", "'", "🦔"])
def test_what_judges_nothing_is_unsure(text):
    assert judge(text) == UNSURE


@pytest.mark.parametrize(
    ("weaker", "stronger"),
    [
        ("It is good.", "It is very good."),
        ("It is slightly good.", "It is good."),
        ("It is good.", "It is excellent."),
        ("It is bad, but good.", "It is good."),
        ("It is not bad.", "It is good and helpful."),
        ("It is very bad.", "It is bad."),
        ("It is excellent, but terrible.", "It is terrible, but excellent."),
    ],
)
def test_one_says_more_than_the_other(weaker, stronger):
    assert judge(weaker).reward < judge(stronger).reward


@pytest.mark.parametrize(
    "text",
    [
        "It is not good.",
        "Das ist nicht gut.",
        "Ich finde das gut nicht.",
        "No es bueno.",
        "It isn’t good.",  # noqa: RUF001 - as telephones write it
        "It isn't very good.",
        "I do not think that's good.",
    ],
)
def test_a_negation_turns_praise_round(text):
    assert judge(text).reward < 0 or judge(text) == UNSURE
    assert judge(text.replace("not ", "").replace("nicht", "")).reward >= judge(text).reward


@pytest.mark.parametrize("mark", ["\u00ad", "\u200b", "\ufeff"])
def test_marks_that_do_not_show_do_not_count(mark):
    text = "This did not work, a terrible answer"
    assert (
        judge(text.replace("rr", f"r{mark}r").replace("ot", f"o{mark}t")) == judge(text) != UNSURE
    )


def test_two_negations_make_none():
    assert judge("It is not without good parts").reward > 0


@pytest.mark.parametrize(
    "text", ["Is it good?", "It would be great if it worked", "Please make it better", "¿Es bueno?"]
)
def test_questions_and_wishes_do_not_judge(text):
    assert judge(text) == UNSURE


def test_praise_and_complaint_of_like_weight_are_unsure():
    assert judge("One half is good. The other half is bad.") == UNSURE


def test_only_the_beginning_of_a_long_text_is_read():
    assert judge("word " * 999 + "excellent").reward > 0
    assert judge("word " * 1000 + "excellent") == UNSURE


def test_the_lists_of_words_do_not_contradict_each_other():
    assert not {(word,) for word in NEGATIONS} & set(GRADES)
    assert all(-1 <= grade <= 1 for grade in GRADES.values())
    assert all(word == word.casefold() for words in GRADES for word in words)
    assert judge("Großartig").reward > 0
