"""An error that an episode met, as an error solution."""

from __future__ import annotations

import protovalidate
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lot_grpc.domain.episode import Episode, EpisodeEnd, EpisodeError, EpisodeStart, EpisodeStatus
from lot_grpc.domain.extraction.digest import ErrorSeen, Step
from lot_grpc.domain.extraction.error_solutions import (
    LONGEST_ARGS,
    LONGEST_MESSAGE,
    LONGEST_NOTE,
    LONGEST_TASK,
    ended_by,
    error_solution_of,
)
from lot_grpc.domain.extraction.errors_met import MOST_STEPS, ErrorMet
from lot_grpc.domain.text_form import visible
from lot_grpc.pb.lot.v1 import error_solution_pb2 as pb

OOPS = ErrorSeen("KeyError", "'a'")


def episode(task: str = "t", error: EpisodeError | None = None, **named: object) -> Episode:
    status = EpisodeStatus.FAILED
    start = EpisodeStart(task, **named)  # type: ignore[arg-type]
    return Episode("n", "e", start, status, EpisodeEnd(status, error=error), 0, 1, 0, 0, 0, 1, 0, 0)


def sentence(step: Step) -> str:
    [told] = error_solution_of(episode(), ErrorMet(OOPS, None, (step,), worked=True)).steps
    return told


@pytest.mark.parametrize(
    ("step", "told"),
    [
        (Step("thought"), "thought"),
        (Step("tool_call", "pip"), "tool_call(pip)"),
        (Step("thought", note="try\n it"), "thought: try it"),
        (Step("tool_call", "pip", args={"n": 2.0}), 'tool_call(pip): {"n": 2}'),
        (
            Step("tool_call", "pip", "do", {"a": [1.5, None, True, "é"], "b": {}}),
            'tool_call(pip): do {"a": [1.5, null, true, "é"], "b": {}}',
        ),
        (Step("run", error=OOPS), "run (failed with KeyError: 'a')"),
        (Step("run", "x", "y", error=ErrorSeen("", "a\nb")), "run(x): y (failed with a b)"),
        (Step("run", args={"n": 2.0**60}), 'run: {"n": 1152921504606846976}'),
    ],
)
def test_a_step_is_told_in_a_line(step, told):
    assert sentence(step) == told


def test_a_long_text_is_cut_and_says_so():
    told = sentence(Step("run", note="x" * 5_000, args={"a": "y" * 100_000}))
    note, args = told.removeprefix("run: ").split(" ", 1)
    assert len(note.encode()) == LONGEST_NOTE
    assert len(args.encode()) == LONGEST_ARGS
    assert (note[-1], args[-1]) == ("…", "…")
    assert sentence(Step("run", note="a" + " " * 5_000 + "b")) == "run: a…"


def test_of_a_long_message_the_beginning_and_the_end_are_kept():
    text = "Traceback\n" + "é" * 20_000 + "\nKeyError: 'a'"
    message = error_solution_of(
        episode(), ErrorMet(ErrorSeen("", text), None, (), worked=False)
    ).error_message
    assert message.startswith("Traceback\n")
    assert message.endswith("é\nKeyError: 'a'")
    assert LONGEST_MESSAGE - 4 <= len(message.encode()) <= LONGEST_MESSAGE
    just = "é" * (LONGEST_MESSAGE // 2)
    kept = error_solution_of(episode(), ErrorMet(ErrorSeen("", just), None, (), worked=False))
    assert kept.error_message == just


def test_the_context_tells_the_task_and_the_step_that_met_the_error():
    met = ErrorMet(OOPS, Step("tool_call", "x", "y", error=OOPS), (), worked=False)
    assert error_solution_of(episode("Go"), met).context == "Task: Go\nFailed at: tool_call(x): y"
    long = error_solution_of(episode("t" * 9_999), ErrorMet(OOPS, None, (), worked=False)).context
    assert len(long.encode()) == len("Task: ") + LONGEST_TASK


def test_the_error_of_the_end_is_one_that_says_something():
    assert ended_by(episode(error=EpisodeError("A", "b"))) == ErrorSeen("A", "b")
    assert ended_by(episode(error=EpisodeError())) is None
    assert ended_by(episode()) is None


def test_a_language_that_is_too_long_for_the_contract_is_none():
    met = ErrorMet(OOPS, None, (), worked=False)
    assert error_solution_of(episode(labels={"language": "é" * 33}), met).language == ""
    assert error_solution_of(episode(labels={"language": "é" * 32}), met).language == "é" * 32


TEXTS = st.builds(
    lambda text, times: text * times,
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12),
    st.sampled_from([1, 1, 2, 300, 9_000]),
)


def short(size: int) -> st.SearchStrategy[str]:
    """What the contract takes for a name: at least a character, at most ``size`` bytes."""
    return TEXTS.map(lambda text: text.encode()[:size].decode(errors="ignore") or "x")


JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
ERRORS = st.builds(ErrorSeen, TEXTS, TEXTS).filter(
    lambda error: visible(error.type + error.message)
)
STEPS = st.builds(
    Step,
    short(256),
    st.just("") | short(256),
    TEXTS.map(lambda text: text[:1_024]),
    st.dictionaries(TEXTS, JSON, max_size=3),
    st.none() | ERRORS,
)


@given(
    st.builds(
        episode,
        short(65_536),
        category=st.just("") | short(256),
        labels=st.dictionaries(st.just("language"), short(256)),
        metadata=st.dictionaries(st.just("language"), JSON),
    ),
    ERRORS,
    st.none() | STEPS,
    st.lists(STEPS, max_size=3),
    st.sampled_from([1, MOST_STEPS]),
    st.booleans(),
)
def test_what_is_made_is_always_within_the_contract(about, error, failed, steps, times, worked):
    taken = tuple((steps * times)[:MOST_STEPS])
    content = error_solution_of(about, ErrorMet(error, failed, taken, worked and bool(taken)))
    content.check()
    message = pb.ErrorSolution(
        error_type=content.error_type,
        error_message=content.error_message,
        context=content.context,
        language=content.language,
        steps=content.steps,
        categories=content.categories,
        worked=content.worked,
        tags=content.tags,
        source_episode_ids=content.source_episode_ids,
    )
    protovalidate.validate(message)
    assert b"\0" not in "".join(content.steps).encode()
    assert message.ByteSize() <= 128 * 1024  # so that twenty fit into an answer
