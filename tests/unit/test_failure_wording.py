"""Errors in plain words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lot_grpc.domain.failures.kinds import KINDS
from lot_grpc.domain.failures.wording import CODES, LONGEST, STATUSES, plain_words


@pytest.mark.parametrize(
    ("error_type", "message", "told"),
    [
        ("Error", "connect ECONNREFUSED 10.0.0.1:80", "connection refused: connect connection"),
        ("OSError", "[Errno 28] No space left on device: '/a/b'", "OS No space left on device"),
        ("ModuleNotFoundError", "No module named 'x'", "Module Not Found No module named"),
        ("", "HTTP 429: slow down", "too many requests: slow down"),
        ("Error", "Request failed with status code 401", STATUSES["401"]),
        ("", "error[E0432]: unresolved import `x`", "E0432: unresolved import"),
        ("", "took 30 seconds at /a/b.py:3", "took seconds at"),
        ("X", "(2003, \"Can't connect to server on 'h' (timed out)\")", "X: Can't connect to"),
        ("", "i/o timeout", "io timeout"),
        ("", "/only/a/path", "/only/a/path"),
        ("", "", ""),
    ],
)
def test_codes_are_told_and_names_left_out(error_type, message, told):
    assert plain_words(error_type, message).startswith(told)


@given(st.text(max_size=20), st.text())
def test_any_text_is_told_in_a_bounded_line(error_type, message):
    told = plain_words(error_type, message)
    assert "\n" not in told.strip()
    assert len(told) <= 40 * LONGEST


@pytest.mark.parametrize(
    "unit", ["a", "'", '"', "<", "1.", "E_", ": ", "a'b ", "/", "[(", "HTTP 4"]
)
def test_the_time_is_bounded(unit):
    plain_words("E", unit * 100_000)


def test_tables_are_plain_words():
    assert all(told.islower() or told.startswith("no") for told in CODES.values())
    assert all(len(status) == 3 for status in STATUSES)
    tellings = [telling for kind in KINDS for telling in kind]
    assert len(set(tellings)) == len(tellings)
