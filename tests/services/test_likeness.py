"""How words move the likeness of tasks: against the rules of the domain, pair by pair."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lot_grpc.lexical.contrast import opposed, read
from lot_grpc.services.distillation.likeness import (
    OTHER_ACTION,
    SAME_TEMPLATE,
    Tasks,
    likeness_by_words,
)

WORDS = st.sampled_from(
    [
        "add",
        "remove",
        "enable",
        "disable",
        "user",
        "list",
        "the",
        "a",
        "in",
        "out",
        "on",
        "to",
        "off",
        "before",
        "after",
        "read-only",
        "not",
        "don\u2019t",
        "paris",
        "rome",
        "report",
        ",",
        ".",
        "7",
    ]
)
TASKS = st.lists(WORDS, min_size=1, max_size=7).map(" ".join)


def added(*tasks: str) -> np.ndarray:
    return likeness_by_words([Tasks([(task, 1)], fixed=False) for task in tasks])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Book a hotel room in Paris", "book a hotel room in New York."),
        ("Configure retries of the HTTP client", "Configure the backoff of the HTTP client"),
        ("Send 20 euros to Anna for lunch", "Send 7 euros to Bob for lunch"),
        ("How do I parse JSON in Rust 2021?", "How do I parse YAML in Rust 2021?"),
        ("In api, fix the flaky login test", "In api, fix the flaky upload test"),
        ("Bo\u00adok a room in Paris", "\uff22ook a room in\u200b Rome"),
        ("Check port 80 on web-01 for me", "Check port 443 on db-02 for me"),
    ],
)
def test_tasks_of_one_template_are_more_alike(one, other):
    assert added(one, other)[0, 1] == np.float32(SAME_TEMPLATE)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Write a poem about the sea", "Write a letter to the landlord"),
        ("Make a cake for the party", "Make a mock for the database"),
        ("Fix the login page", "Fix the flaky test"),
        ("Find the red one in the box of Anna", "Find a blue one on a shelf at work"),
    ],
)
def test_a_few_function_words_make_no_template(one, other):
    assert added(one, other)[0, 1] == 0


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Create a branch in git", "Rename a branch in git"),
        ("Please create a branch in git", "Please rename a branch in git"),
        ("How do I create a branch in git?", "How do I list a branch in git?"),
        ("In git, create a new branch", "In git, rename a new branch"),
        ("Open the report. Print it.", "Open the report. Translate it."),
    ],
)
def test_another_action_is_another_task(one, other):
    assert added(one, other)[0, 1] == np.float32(-OTHER_ACTION)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "Copy the users table from staging to production",
            "Copy the orders table from the production to the staging",
        ),
        ("Move the data from A1 to B2", "Move the data from B2 into A1"),
        ("Convert Celsius to Fahrenheit", "Convert Fahrenheit to Celsius"),
    ],
)
def test_the_way_back_is_the_opposite(one, other):
    assert added(one, other)[0, 1] == -np.inf
    assert added(one, one)[0, 1] > 0


@given(st.lists(TASKS, min_size=1, max_size=8))
def test_opposites_are_those_of_each_pair(tasks):
    found = added(*tasks)
    texts = [read(task) for task in tasks]
    for n, one in enumerate(texts):
        for at, other in enumerate(texts):
            kept_apart = opposed(one, other) or bool(one.denied) != bool(other.denied)
            assert np.isneginf(found[n, at]) == kept_apart


@given(st.lists(TASKS, min_size=2, max_size=8), st.lists(TASKS, min_size=1, max_size=4))
def test_a_group_counts_by_the_mean_of_its_tasks(inside, others):
    single = added(*inside, *others)
    units = [Tasks([(task, 1) for task in inside], fixed=True)]
    units += [Tasks([(task, 1)], fixed=False) for task in others]
    grouped = likeness_by_words(units)
    mean = single[: len(inside), len(inside) :].mean(axis=0)
    np.testing.assert_allclose(grouped[0, 1:], mean, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(grouped[1:, 0], mean, rtol=1e-5)
    np.testing.assert_array_equal(grouped[1:, 1:], single[len(inside) :, len(inside) :])


def test_what_stands_for_more_counts_more():
    units = [
        Tasks([("Book a room in Rome", 3), ("Cook soup", 1)], fixed=True),
        Tasks([("Book a room in Oslo", 5)], fixed=False),
    ]
    expected = (3 * SAME_TEMPLATE - OTHER_ACTION) / 4
    assert likeness_by_words(units)[0, 1] == np.float32(expected)


def test_of_nothing_there_is_nothing():
    assert likeness_by_words([]).shape == (0, 0)
    assert added("?", "").shape == (2, 2)


def test_a_task_of_any_length_is_read():
    assert added("book " * 30_000, "x" * 60_000, "1 " * 19).shape == (3, 3)
