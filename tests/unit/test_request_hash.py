"""Hashes of requests: which requests count as the same, also for a later version."""

from __future__ import annotations

import cProfile
from collections.abc import Callable, Mapping
from dataclasses import field, fields, is_dataclass, make_dataclass, replace
from typing import Any

import pytest

from lot_grpc.domain.action_values import LearningState
from lot_grpc.domain.decision import DecisionContent
from lot_grpc.domain.episode import EpisodeEnd, EpisodeError, EpisodeEvent, EpisodeStart
from lot_grpc.domain.episode import EpisodeStatus as Status
from lot_grpc.domain.error_solution import ErrorSolutionContent
from lot_grpc.domain.learning_event import FeedbackTarget, LearningEventContent, TargetKind
from lot_grpc.domain.memory import MemoryContent, MemoryKind, Project
from lot_grpc.domain.outcomes import Outcome
from lot_grpc.domain.pattern import Action, PatternContent
from lot_grpc.domain.session import SessionMessage
from lot_grpc.services.episodes.drafts import EpisodeDraft
from lot_grpc.services.errors.drafts import ErrorSolutionDraft
from lot_grpc.services.learning.decisions import DecisionDraft, DecisionOutcomeDraft
from lot_grpc.services.learning.feedback_handler import FeedbackTextDraft
from lot_grpc.services.learning.learning_events import LearningEventDraft
from lot_grpc.services.learning.selections import SelectionDraft
from lot_grpc.services.learning.step_recorder import StepDraft, StepsDraft
from lot_grpc.services.memories.drafts import MemoryDraft
from lot_grpc.services.outcomes.outcome_log import CorrectionDraft
from lot_grpc.services.outcomes.outcomes import OutcomeDraft
from lot_grpc.services.patterns.drafts import PatternDraft
from lot_grpc.services.patterns.feedback import FeedbackDraft
from lot_grpc.services.preferences.preferences import PreferenceDraft
from lot_grpc.services.sessions.rows import Terms
from lot_grpc.services.sessions.session_messages import MessageDraft

STATE = LearningState("code", None, {"files": 3})
DRAFTS: list[Any] = [
    PatternDraft(PatternContent("t", actions=(Action("x", {"n": 1}),), metadata={"n": 1}), "p"),
    ErrorSolutionDraft(ErrorSolutionContent(error_message="m", steps=("a",)), request_id="r"),
    MemoryDraft(MemoryContent("c", MemoryKind.PROJECT, details=Project(path="/x")), unique=True),
    DecisionDraft(DecisionContent("c", "o"), "d"),
    DecisionOutcomeDraft("d", Outcome.SUCCESS, 0.5),
    LearningEventDraft(LearningEventContent("e", target=FeedbackTarget(TargetKind.PATTERN, "p"))),
    FeedbackDraft("p", helpful=False),
    FeedbackTextDraft("good", target=FeedbackTarget(TargetKind.PATTERN, "p")),
    OutcomeDraft(("p", "q"), Outcome.PARTIAL, reward=0.0),
    CorrectionDraft("o", Outcome.FAILURE),
    OutcomeDraft((), Outcome.SUCCESS, note="n", error_solution_ids=("s",)),
    SelectionDraft(STATE, {"a": {"n": 1}, "b": {}}, seed=2**62 + 1),
    StepsDraft((StepDraft(1.0, STATE, "a", STATE), StepDraft(0.0, selection_id="s")), "e"),
    PreferenceDraft("k", [1, {"n": 2}]),
    MessageDraft("s", SessionMessage("user", "hi", metadata=b"\x0a\x01"), Terms(5)),
    EpisodeDraft(
        EpisodeStart("t", metadata={"n": 1}),
        "e",
        end=EpisodeEnd(Status.FAILED, error=EpisodeError("E", "m"), metrics={"n": 1.0}),
        events=(EpisodeEvent(1, "x", data=b""),),
        extract=True,
    ),
]
each = pytest.mark.parametrize("draft", DRAFTS, ids=lambda draft: type(draft).__name__)


def newer(value: Any, **given: Any) -> Any:
    """The same as a later version has it, with one more field, ``given`` or by default."""
    if is_dataclass(value) and not isinstance(value, type):
        values = {one.name: newer(getattr(value, one.name)) for one in fields(value)}
        more = [
            ("text_of_later", str, field(default="")),
            ("list_of_later", tuple, field(default=())),
            ("map_of_later", Mapping, field(default_factory=dict)),
            ("number_of_later", float, field(default=0.5)),
        ]
        kind = type(value)
        return make_dataclass(kind.__name__, more, bases=(kind,), frozen=True)(**values, **given)
    if isinstance(value, tuple):
        return tuple(newer(one) for one in value)
    return value


@each
def test_a_later_version_with_more_fields_knows_the_request_again(draft):
    assert newer(draft).hash() == draft.hash()


@each
@pytest.mark.parametrize("name", ["text_of_later", "number_of_later"])
def test_what_a_new_field_says_counts(draft, name):
    given = {"text_of_later": "x", "number_of_later": 0.0}[name]
    assert newer(draft, **{name: given}).hash() != draft.hash()


@each
def test_a_request_id_is_not_part_of_what_is_requested(draft):
    assert replace(draft, request_id="other").hash() == draft.hash()


@each
def test_each_field_counts_even_if_empty(draft):
    """A value that is empty but not the default is said, and differs from saying nothing."""
    seen = {draft.hash()}
    for one in fields(draft):
        value = getattr(draft, one.name)
        if one.name == "request_id" or type(value) not in (str, bool, tuple) or not value:
            continue
        hashed = replace(draft, **{one.name: type(value)()}).hash()
        assert hashed not in seen, one.name
        seen.add(hashed)


def test_no_two_requests_have_one_hash():
    alike: list[Any] = [
        PatternDraft(PatternContent("t", category="x")),
        PatternDraft(PatternContent("t", task_type="x")),
        PatternDraft(PatternContent("t", metadata={"category": "x"})),
        PatternDraft(PatternContent("t", confidence=0.0)),
        PatternDraft(PatternContent("t")),
        PatternDraft(PatternContent("t"), initial_success_rate=0.0),
        PatternDraft(PatternContent("t", actions=(Action("x"),))),
        PatternDraft(PatternContent("t", actions=(Action("x", {"note": "y"}),))),
        PatternDraft(PatternContent("t", actions=(Action("x", note="y"),))),
        PatternDraft(PatternContent("t"), ttl=0),
        SelectionDraft(STATE, {}, seed=2**62),
        SelectionDraft(STATE, {}, seed=2**62 + 1),
        SelectionDraft(STATE, {}),
        PreferenceDraft("k", None),
        PreferenceDraft("k", 0),
        PreferenceDraft("k", ""),
        PreferenceDraft("k", []),
        PreferenceDraft("k", {}),
        PreferenceDraft("k", False),
    ]
    assert len({one.hash() for one in alike}) == len(alike)


def test_a_whole_number_of_json_is_the_double_that_was_sent():
    one, other = ({"n": number, "deep": [{"n": number}]} for number in (8080, 8080.0))
    makers: list[Callable[[Any], Any]] = [
        lambda given: PatternDraft(PatternContent("t", metadata=given)),
        lambda given: PatternDraft(PatternContent("t", actions=(Action("x", given),))),
        lambda given: SelectionDraft(LearningState("t", None, given), {"a": given}),
        lambda given: StepsDraft((StepDraft(1.0, LearningState("t", None, given), "a"),)),
        lambda given: PreferenceDraft("k", [given]),
        lambda given: EpisodeDraft(EpisodeStart("t", metadata=given)),
    ]
    for make in makers:
        assert make(one).hash() == make(other).hash()


def test_the_work_of_a_hash_grows_with_the_length_and_no_faster():
    assert _calls(1_000) < 11 * _calls(100)


def _calls(steps: int) -> int:
    """Function calls made to hash so many steps."""
    draft = StepsDraft(tuple(StepDraft(1.0, STATE, f"a{n}", STATE) for n in range(steps)))
    draft.hash()
    profile = cProfile.Profile()
    profile.runcall(draft.hash)
    return sum(entry.callcount for entry in profile.getstats())
