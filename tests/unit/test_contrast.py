"""How two texts differ in what they say is to be done."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lot_grpc.lexical.contrast import contrast

WORDS = [
    "enable",
    "disable",
    "not",
    "never",
    "without",
    "turn",
    "on",
    "off",
    "the",
    "backup",
    "login",
    "from",
    "to",
    "Paris",
    "Rome",
    '"x"',
    "12",
    ",",
    ".",
    "{name}",
    "add",
    "remove",
    "don't",
    "un-do",
    "log",
    "in",
    "out",
    "retry",
    "requests",
]
texts = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join) | st.text(max_size=60)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Enable two-factor authentication", "Disable two-factor authentication"),
        ("Turn on debug logging", "Turn debug logging off"),
        ("Log in to the portal", "Log out of the portal"),
        ("Scale the web deployment up", "Scale down the web deployment"),
        ("Mount the volume", "Unmount the volume"),
        ("Retry requests that time out", "Do not retry requests that time out"),
        ("Show reviewed pull requests", "Show pull requests I haven't reviewed"),
        ("Deploy with downtime", "Deploy without downtime"),
        ("Copy the files from laptop to server", "Copy the files from server to laptop"),
        ("Replace tabs by spaces", "Replace spaces by tabs"),
    ],
)
def test_opposites_contradict_each_other(one, other):
    assert contrast(one, other).opposed
    assert contrast(other, one).opposed


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Hide the sidebar", "Don't show the sidebar"),
        ("Turn off 2FA", "Disable 2FA"),
        ("Stop a job that does not start", "Stop a job that cannot start"),
        ("Book a room in Paris", "Book a room in Rome"),
        ("Add, remove and list users", "Remove a user"),
        ("Debug the payment environment", "Test the payment environment"),
        ("Speed up the slow query", "Make the query faster"),
    ],
)
def test_two_ways_to_say_it_do_not(one, other):
    assert not contrast(one, other).opposed


@pytest.mark.parametrize(
    ("one", "other", "likeness"),
    [
        ("Book a room in Paris", "Book a room in Rome", 1.0),
        ("Cancel order 4711", "Cancel the orders 17 and 18", 1.0),
        ('Post "hello" to the forum', "Post {text} to the forum", 1.0),
        ("Cancel an order", "Return an order", 0.5),
        ("", "", 0.0),
        ("Отменить заказ", "Отменить заказы", 1.0),
    ],
)
def test_values_do_not_count_as_words(one, other, likeness):
    assert contrast(one, other).likeness == likeness


@given(texts, texts)
def test_it_is_the_same_both_ways_round(one, other):
    assert contrast(one, other) == contrast(other, one)
    assert not contrast(one, one).opposed
    assert 0.0 <= contrast(one, other).likeness <= 1.0


def test_long_texts_are_compared_where_they_differ():
    before = "As agreed in the meeting " + "of the whole team " * 200
    enable, disable = (f"{before}{verb} the cache" for verb in ("enable", "disable"))
    assert contrast(enable, disable).opposed
    assert not contrast(enable, enable).opposed
    assert not contrast(enable, before + "enable the proxy").opposed


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Run `systemctl enable nginx` on web1", "Run `systemctl disable nginx` on web1"),
        ('Press the "Accept" button', 'Press the "Reject" button'),
        ("Set the flag to 'true'", "Set the flag to 'false'"),
    ],
)
def test_opposites_in_quotes_are_opposites(one, other):
    assert contrast(one, other).opposed
    assert not contrast(one, one).opposed
