from __future__ import annotations

import pytest

from lot_grpc.evaluation.errors import EvalDataError
from tests.evaluation.made import write_set
from tests.learn.carried import FORMS
from tests.learn.tasks import carried_set, read_set


def test_the_carried_set_has_every_form_in_other_words_and_with_other_things():
    tasks = carried_set()
    assert (len(FORMS), len(tasks.stored), len(tasks.queries)) == (20, 60, 180)
    assert len({one.task for one in tasks.stored} | set(tasks.queries)) == 240
    for form in FORMS:
        assert not set(form.known) & set(form.others)
        assert all(text.count("{}") == 1 for text in (form.stored, *form.wordings))


def test_what_is_right_in_the_carried_set_is_of_the_same_form():
    tasks = carried_set()
    for number, query in enumerate(tasks.queries):
        [form] = [
            form
            for form in FORMS
            if any(query == words.format(one) for words in form.wordings for one in form.others)
        ]
        stored = {tasks.stored[one].task for one in tasks.right[number]}
        assert stored == {form.stored.format(one) for one in form.known}


def test_a_set_is_read_with_the_documents_that_are_judged_relevant(tmp_path):
    tasks = read_set(write_set(tmp_path / "kitchen"))
    assert tasks.name == "kitchen"
    assert len(tasks.stored) == 4
    found = [[tasks.stored[one].task.split()[0] for one in right] for right in tasks.right]
    assert found == [["Bake"], ["Repair"], ["File"]]


def test_a_set_with_one_query_cannot_be_halved(tmp_path):
    folder = write_set(tmp_path / "kitchen", qrels=[("q1", "tax", 1)])
    with pytest.raises(EvalDataError, match="two queries"):
        read_set(folder)


def test_of_a_large_set_the_documents_that_answer_are_taken_first(tmp_path):
    tasks = read_set(write_set(tmp_path / "kitchen"), most=3)
    assert [len(right) for right in tasks.right] == [1, 1, 1]
    assert {one.task.split()[0] for one in tasks.stored} == {"Bake", "Repair", "File"}
