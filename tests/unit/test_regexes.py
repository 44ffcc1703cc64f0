"""RE2, with its limits."""

from __future__ import annotations

import pytest

from lot_grpc.domain.errors import RequestInvalidError
from lot_grpc.regexes import MOST_CHARACTERS, check_regex, compiled


@pytest.mark.parametrize(
    ("regex", "text"),
    [("log.?in", "Add a LOG-IN page"), ("straße", "An der STRASSE, STRAẞE"), ("^a.*z$", "AbcZ")],
)
def test_it_matches_anywhere_and_in_any_case(regex, text):
    assert compiled(regex).matches(text)


def test_it_looks_at_the_beginning_of_a_text():
    assert compiled("x").matches("a" * (MOST_CHARACTERS - 1) + "x")
    assert not compiled("x").matches("a" * MOST_CHARACTERS + "x")


@pytest.mark.parametrize(
    ("regex", "why"),
    [
        ("(a", "missing )"),
        ("(?<=a)b", "invalid perl operator"),
        (r"(a)\1", "invalid escape sequence"),
        ("a{2000}", "invalid repetition size"),
        (r"[\p{L}]{200}", "pattern too large"),
    ],
)
def test_what_re2_refuses_is_refused_with_its_reason(regex, why):
    with pytest.raises(RequestInvalidError) as raised:
        check_regex(regex, "here")
    [violation] = raised.value.violations
    assert (violation.field, violation.rule) == ("here", "regex.re2")
    assert why in violation.description


def test_no_regex_is_none():
    check_regex("", "here")


def test_what_takes_exponential_time_elsewhere_is_nothing_here():
    assert not compiled("(a*)*b").matches("a" * MOST_CHARACTERS)
