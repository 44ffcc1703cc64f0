from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lot_grpc.domain.error_text.differences import Difference, compared
from lot_grpc.domain.error_text.parts import LeftOut
from lot_grpc.domain.error_text.signature import read_error

PARTS = st.sampled_from(["name", "path", "url", "version", "number", "address", "id", "time"])
LEFT_OUT = st.lists(
    st.builds(LeftOut, PARTS, st.text("ab/:1.", min_size=1, max_size=5)), max_size=6
)


def between(one: str, other: str) -> tuple[tuple[Difference, ...], float]:
    told = compared(read_error("", one).left_out, read_error("", other).left_out)
    return told.differences, told.agreement


@pytest.mark.parametrize(
    ("one", "other", "differences", "agreement"),
    [
        ("No module named 'yaml'", "No module named 'yaml'", [], 1.0),
        ("No module named 'yaml'", "No module named 'PIL'", [("name", "yaml", "PIL")], 0.0),
        ("'a' lacks 'b'", "'a' lacks 'c'", [("name", "b", "c")], 0.5),
        ("row 17 is locked", "row 18 is locked", [("number", "17", "18")], 0.95),
        (
            "lost 'x' in /a/b.py:3",
            "lost 'x' in /a/b.py:9",
            [("path", "/a/b.py:3", "/a/b.py:9")],
            1.0,
        ),
        (
            "cannot read /home/me/b.py",
            "cannot read C:\\you\\b.py",
            [("path", "/home/me/b.py", "C:\\you\\b.py")],
            1.0,
        ),
        ("cannot read /a/b.py", "cannot read /a/c.py", [("path", "/a/b.py", "/a/c.py")], 0.7),
        ("needs tool 1.2.3", "needs tool 1.3.0", [("version", "1.2.3", "1.3.0")], 0.7),
        ("'a' equals 'a'", "'b' equals 'b'", [("name", "a", "b")], 0.0),
    ],
)
def test_what_differs_is_told_and_weighs_by_what_it_is(one, other, differences, agreement):
    told, agreed = between(one, other)
    assert [(each.part, each.given, each.stored) for each in told] == differences
    assert agreed == pytest.approx(agreement)


@given(LEFT_OUT, LEFT_OUT)
def test_two_errors_agree_as_much_either_way_and_wholly_with_themselves(one, other):
    forth, back = compared(one, other), compared(other, one)
    assert forth.agreement == pytest.approx(back.agreement)
    assert 0.0 <= forth.agreement <= 1.0
    assert {(d.given, d.stored) for d in forth.differences} == {
        (d.stored, d.given) for d in back.differences
    }
    assert compared(one, one) == compared([], [])
    assert compared(one, one).agreement == 1.0
