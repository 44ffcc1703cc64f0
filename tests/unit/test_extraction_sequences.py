"""Common sequences, groups and the expressions made for them."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lot_grpc.domain.extraction.groups import Group, GroupBy, constant_part, group_of
from lot_grpc.domain.extraction.sequences import common_sequence
from lot_grpc.domain.extraction.task_regex import ENOUGH_OTHERS, task_regex
from lot_grpc.regexes import compiled
from lot_grpc.services.extraction.digest_reader import words_of


def contains(run, sequence) -> bool:
    rest = iter(run)
    return all(token in rest for token in sequence)


RUNS = st.lists(st.lists(st.sampled_from("abcde"), max_size=8), max_size=9)


@given(RUNS)
def test_a_majority_contains_the_sequence_that_is_told(runs):
    sequence, support = common_sequence(runs)
    holding = sum(contains(run, sequence) for run in runs)
    if sequence:
        assert support == holding
        assert holding > len(runs) / 2
    else:
        most = max((sum(t in run for run in runs) for t in "abcde"), default=0)
        assert most <= len(runs) / 2


@given(RUNS, st.randoms())
def test_the_order_of_the_runs_does_not_matter(runs, rng):
    mixed = list(runs)
    rng.shuffle(mixed)
    assert common_sequence(mixed) == common_sequence(runs)


def test_a_planted_sequence_is_found_under_noise():
    rng = random.Random(4)
    planted = ["checkout", "install", "build", "test", "push"]
    runs = []
    for _ in range(60):
        run = [token for token in planted if rng.random() < 0.95]
        for _ in range(rng.randrange(8)):
            run.insert(rng.randrange(len(run) + 1), rng.choice(["look", "think", "list"]))
        runs.append(run)
    sequence, support = common_sequence(runs)
    assert [token for token in sequence if token in planted] == planted
    assert support > 30


@pytest.mark.parametrize(
    ("called", "group"),
    [
        (("api", "backend", "x"), Group(GroupBy.TASK_TYPE, "api")),
        (("", "backend", "x"), Group(GroupBy.CATEGORY, "backend")),
        (("", "", "x"), Group(GroupBy.REGEX, "x")),
    ],
)
def test_a_group_is_what_its_caller_called_it(called, group):
    task_type, category, regex = called
    assert group_of(task_type, category, regex, ["w"]) == group


def test_tasks_that_differ_in_numbers_names_and_paths_are_alike():
    one = "Refund order 17 of 'Ann Lee' in /var/orders/17.json, see https://x.y/z"
    other = "Refund order A-99 of 'Bo' in C:\\orders, see http://a.b"
    assert constant_part(one).split() == constant_part(other).split()
    first, second = (group_of("", "", "", words_of(task)) for task in (one, other))
    assert first == second
    assert first != group_of("", "", "", words_of("Ship an order"))


def expression(name, tasks, others=()):
    return compiled(
        task_regex(
            name,
            [words_of(task) for task in tasks],
            [frozenset(words_of(other)) for other in others],
        )
    )


def test_a_name_stands_for_its_group_however_it_is_written():
    regex = expression("api_endpoint", ["x", "y", "z"])
    assert all(regex.matches(text) for text in ("An API endpoint", "api-endpoint", "ApiEndpoint"))
    assert not regex.matches("rapid endpoint")


def test_a_type_that_its_tasks_are_worded_like_is_told_once():
    others = [{f"other{number}"} for number in range(ENOUGH_OTHERS)]
    tasks = [words_of(f"deploy {what}") for what in ("shop", "blog", "mail", "wiki")]
    alternatives = task_regex("deploy", tasks, others).split("|")
    assert len(alternatives) == len(set(alternatives))


def test_without_others_to_tell_it_from_a_single_word_is_not_enough():
    tasks = [f"Deploy the site {number}" for number in range(5)]
    regex = expression("", tasks)
    assert regex.matches("Please deploy our site")
    assert regex.matches("The site must be deployed")
    assert not regex.matches("Log in to the site")


def test_with_enough_others_a_word_that_they_lack_is():
    tasks = [f"Deploying {what}" for what in ("shop", "blog", "mail", "wiki")]
    others = [f"Describe the {n} shop" for n in range(ENOUGH_OTHERS)]
    regex = expression("", tasks, others)
    assert regex.matches("deployed the forum")
    assert not regex.matches("describe the shop")


def test_tasks_of_one_word_are_met_by_it():
    assert expression("", ["Queries", "query"]).matches("More queries")


@given(st.lists(st.text(max_size=60), min_size=1, max_size=6), st.text(max_size=20))
def test_whatever_the_tasks_re2_takes_the_expression(tasks, name):
    assert expression(name, tasks) is not None
