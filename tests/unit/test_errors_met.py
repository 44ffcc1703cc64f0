"""What is learned of the errors that an episode met."""

from __future__ import annotations

import pytest
from google.protobuf.struct_pb2 import Struct
from hypothesis import given
from hypothesis import strategies as st

from lot_grpc.domain.extraction.digest import ErrorSeen, Step, step_of
from lot_grpc.domain.extraction.errors_met import MOST_ERRORS, ErrorMet, errors_met

LOST = ErrorSeen("ModuleNotFoundError", "No module named 'x'")
SLOW = ErrorSeen("TimeoutError", "too slow")


def call(tool: str, error: ErrorSeen | None = None) -> Step:
    return Step("tool_call", tool, error=error)


def test_an_error_is_overcome_by_the_steps_until_the_same_goes_well():
    failed, fix, think = call("pytest", LOST), call("pip"), Step("thought")
    steps = [call("editor"), failed, think, fix, call("pytest"), call("git")]
    for succeeded in (True, False):  # the proof is in the steps
        assert errors_met(steps, succeeded=succeeded) == [
            ErrorMet(LOST, failed, (think, fix), worked=True)
        ]


def test_doing_it_again_at_once_is_what_overcame_it():
    failed, again = call("curl", SLOW), call("curl")
    assert errors_met([failed, again], succeeded=True) == [
        ErrorMet(SLOW, failed, (again,), worked=True)
    ]


def test_what_was_done_before_the_error_came_back_did_not_work():
    failed = call("pytest", LOST)
    steps = [failed, call("guess"), failed, call("pip"), call("pytest")]
    assert errors_met(steps, succeeded=True) == [
        ErrorMet(LOST, failed, (call("guess"),), worked=False),
        ErrorMet(LOST, failed, (call("pip"),), worked=True),
    ]


def test_an_error_that_is_not_tried_again_is_overcome_if_the_episode_succeeded():
    failed = call("curl", SLOW)
    steps = [failed, call("cache"), call("pytest", LOST), call("pip")]
    met = errors_met(steps, succeeded=True)
    assert met[0] == ErrorMet(SLOW, failed, (call("cache"),), worked=True)
    assert [one.worked for one in errors_met(steps, succeeded=False)] == [False, False]


def test_the_error_that_ended_an_episode_is_not_overcome():
    assert errors_met([call("a")], succeeded=False, ended_by=SLOW) == [
        ErrorMet(SLOW, None, (), worked=False)
    ]
    failed = call("curl", SLOW)
    met = errors_met([failed, call("cache")], succeeded=False, ended_by=SLOW)
    assert met == [ErrorMet(SLOW, failed, (call("cache"),), worked=False)]


@pytest.mark.parametrize("ended_by", [SLOW, ErrorSeen("Error", "3"), ErrorSeen("Error", "29")])
def test_of_many_errors_that_of_the_end_is_told(ended_by):
    steps = [call("a", ErrorSeen("Error", str(number))) for number in range(30)]
    met = errors_met(steps, succeeded=False, ended_by=ended_by)
    assert len(met) == MOST_ERRORS
    assert [one.error for one in met].count(ended_by) == 1


def test_nothing_is_said_across_a_part_that_was_not_read():
    assert errors_met([call("pytest", LOST), None, call("pytest")], succeeded=True) == []


def test_an_error_at_the_very_end_has_nothing_that_overcame_it():
    failed = call("pytest", LOST)
    assert errors_met([failed], succeeded=True) == [ErrorMet(LOST, failed, (), worked=False)]


STEPS = st.lists(
    st.one_of(
        st.none(),
        st.builds(
            Step,
            st.sampled_from(["tool_call", "thought"]),
            st.sampled_from(["", "a", "b"]),
            error=st.sampled_from([None, None, LOST, SLOW]),
        ),
    ),
    max_size=30,
)


@given(STEPS, st.booleans(), st.sampled_from([None, LOST]))
def test_each_is_told_once_and_what_worked_has_steps(steps, succeeded, ended_by):
    met = errors_met(steps, succeeded=succeeded, ended_by=ended_by)
    assert len(met) <= MOST_ERRORS
    assert len(set(met)) == len(met)
    seen = {step.error for step in steps if step is not None} | {ended_by}
    for one in met:
        assert one.error in seen
        assert one.steps or not one.worked
        assert all(step.error != one.error for step in one.steps)
    if ended_by is not None:
        assert any(one.error == ended_by and not one.worked for one in met)


@pytest.mark.parametrize(
    ("error", "seen"),
    [
        (" ", None),
        ({"message": "\u200b"}, None),
        ("", None),
        ("oops", ErrorSeen("", "oops")),
        ({"type": "E", "message": " "}, ErrorSeen("E", " ")),
    ],
)
def test_an_error_of_which_nothing_is_seen_is_none(error, seen):
    data = Struct()
    data.update({"error": error})
    assert step_of("tool_error", data.SerializeToString()).error == seen
