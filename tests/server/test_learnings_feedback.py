"""RecordLearningEvent, ListLearningEvents and SubmitFeedback on the wire."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import pytest

from lot_grpc.pb.lot.v1 import learning_event_pb2, outcome_pb2
from tests.server.service import Lot, output_only
from tests.server.wire import failure

P: Any = learning_event_pb2
SUCCESS = outcome_pb2.OUTCOME_SUCCESS
PARTIAL = outcome_pb2.OUTCOME_PARTIAL
GIVEN_BY_SERVER = ("learning_event_id", "create_time", "namespace")
TARGETS = [field.name for field in learning_event_pb2.FeedbackTarget.DESCRIPTOR.fields]


def whole_event() -> Any:
    """A learning event with every field that a caller can set."""
    return P.LearningEvent(
        event_type="success",
        task="Write a report",
        outcome=PARTIAL,
        text="漢字",
        reward=0.0,
        target={"memory_id": "m-1"},
        agent_role="writer",
        tags=["a", "b"],
        labels={"team.name/x": "core=1"},
        metadata={"deep": [1, None, {"a": True}]},
        event_time=datetime(2024, 1, 1, tzinfo=UTC),
    )


async def recorded(lot: Lot, learning_event_id: str = "", **fields: Any) -> Any:
    answer = await lot.learning.RecordLearningEvent(
        learning_event={"event_type": "x", **fields}, learning_event_id=learning_event_id
    )
    return answer.learning_event


async def listed(lot: Lot, **requested: Any) -> list[str]:
    answer = await lot.learning.ListLearningEvents(filter=requested, page_size=100)
    return [one.learning_event_id for one in answer.learning_events]


# --- learning events --------------------------------------------------------------------------


async def test_every_field_comes_back_as_it_was_given(lot):
    given = whole_event()
    unset = {f.name for f in given.DESCRIPTOR.fields} - {f.name for f, _ in given.ListFields()}
    assert unset == set(GIVEN_BY_SERVER)
    answer = await lot.learning.RecordLearningEvent(learning_event=given)
    assert answer.created
    [again] = (await lot.learning.ListLearningEvents()).learning_events
    for event in (answer.learning_event, again):
        assert output_only(event, *GIVEN_BY_SERVER) == given
        assert event.namespace == lot.namespace
        assert event.create_time.seconds > 0


async def test_what_is_not_said_is_absent_and_the_time_is_now(lot):
    event = await recorded(lot)
    assert not event.HasField("reward")
    assert not event.HasField("target")
    assert event.event_time == event.create_time


async def test_an_id_in_use_is_answered_for_the_same_content_and_refused_for_other(lot):
    first = await recorded(lot, "l", reward=0.1)
    again = await lot.learning.RecordLearningEvent(
        learning_event={"event_type": "x", "reward": 0.1}, learning_event_id="l"
    )
    assert (again.learning_event, again.created) == (first, False)
    failed = await failure(
        lot.learning.RecordLearningEvent(learning_event={"event_type": "x"}, learning_event_id="l")
    )
    assert (failed.code, failed.reason) == ("ALREADY_EXISTS", "LEARNING_EVENT_ID_IN_USE")
    assert await listed(lot) == ["l"]


async def test_the_same_request_makes_one_event(lot):
    requested = {"learning_event": {"event_type": "x"}, "request_id": "r"}
    first = await lot.learning.RecordLearningEvent(**requested)
    assert await lot.learning.RecordLearningEvent(**requested) == first
    failed = await failure(
        lot.learning.RecordLearningEvent(learning_event={"event_type": "y"}, request_id="r")
    )
    assert failed.reason == "REQUEST_ID_REUSED"


async def test_events_are_listed_newest_first_page_by_page(lot):
    for number in range(5):
        await recorded(lot, f"l{number}", event_type="odd" if number % 2 else "even")
    first = await lot.learning.ListLearningEvents(filter={"event_types": ["even"]}, page_size=2)
    assert [one.learning_event_id for one in first.learning_events] == ["l4", "l2"]
    second = await lot.learning.ListLearningEvents(
        filter={"event_types": ["even"]}, page_size=2, page_token=first.next_page_token
    )
    assert [one.learning_event_id for one in second.learning_events] == ["l0"]
    assert second.next_page_token == ""
    failed = await failure(lot.learning.ListLearningEvents(page_token=first.next_page_token))
    assert failed.reason == "PAGE_TOKEN_MISMATCH"
    assert await listed(lot.on(f"{lot.namespace}-other")) == []


FILTERS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"event_type": "k"}, {"event_types": ["k", "z"]}),
    ({"outcome": SUCCESS}, {"outcomes": [SUCCESS]}),
    ({"reward": 0.5}, {"min_reward": 0.5}),
    ({"reward": -0.5}, {"max_reward": -0.5}),
    ({"reward": 0.0}, {"min_reward": 0.0, "max_reward": 0.0}),
    ({"agent_role": "r"}, {"agent_roles": ["r"]}),
    ({"tags": ["a", "b"]}, {"tags_any": ["b", "z"]}),
    ({"labels": {"team": "core"}}, {"labels": {"team": "core"}}),
    *(({"target": {name: "1"}}, {"target": {name: "1"}}) for name in TARGETS),
]


@pytest.mark.parametrize(("fields", "requested"), FILTERS)
async def test_each_filter_narrows(lot, fields, requested):
    await recorded(lot, "other", target={"episode_id": "2"})
    await recorded(lot, "one", **fields)
    assert await listed(lot, **requested) == ["one"]
    assert await listed(lot, **requested, created_before=datetime(2020, 1, 1, tzinfo=UTC)) == []
    assert await listed(lot, **requested, created_after=datetime(2020, 1, 1, tzinfo=UTC)) == ["one"]


async def test_one_is_read_and_deleted_where_it_is(lot):
    event = await recorded(lot, "l", text="x")
    other = lot.on(f"{lot.namespace}-x")
    assert (await lot.learning.GetLearningEvent(learning_event_id="l")).learning_event == event
    for call in (
        other.learning.GetLearningEvent(learning_event_id="l"),
        other.learning.DeleteLearningEvent(learning_event_id="l"),
        lot.learning.GetLearningEvent(learning_event_id="m"),
        lot.learning.DeleteLearningEvent(learning_event_id="m"),
    ):
        failed = await failure(call)
        assert (failed.code, failed.reason) == ("NOT_FOUND", "LEARNING_EVENT_NOT_FOUND")
    missing = {"learning_event_id": "l", "allow_missing": True}
    assert not (await other.learning.DeleteLearningEvent(**missing)).deleted
    assert (await lot.learning.DeleteLearningEvent(**missing)).deleted
    assert not (await lot.learning.DeleteLearningEvent(**missing)).deleted
    assert await listed(lot) == []
    assert (await recorded(lot, "l", text="another")).text == "another"


async def test_a_repeat_brings_back_no_deleted_event(lot):
    calls = [
        lambda: lot.learning.RecordLearningEvent(
            learning_event={"event_type": "x"}, request_id="r"
        ),
        lambda: lot.learning.SubmitFeedback(text="Perfect summary!", task="t", request_id="r"),
    ]
    for call in calls:
        event = (await call()).learning_event
        await lot.learning.DeleteLearningEvent(learning_event_id=event.learning_event_id)
        failed = await failure(call())
        assert failed.reason == "LEARNING_EVENT_NOT_FOUND"
        assert "deleted" in failed.message
    assert await listed(lot) == []
    [extracted] = (await lot.memories.ListPreferences()).preferences  # what it taught stays
    assert extracted.revision == 1


# --- judgements -------------------------------------------------------------------------------


async def test_praise_is_judged_kept_and_preferred(lot):
    answer = await lot.learning.SubmitFeedback(text="Excellent sort order!", task="Sort the list")
    assert answer.reward_inferred
    assert answer.conclusive
    assert 0.5 < answer.reward <= 1
    event = answer.learning_event
    assert (event.event_type, event.text, event.task) == (
        "user_feedback", "Excellent sort order!", "Sort the list",
    )  # fmt: skip
    assert event.reward == answer.reward
    assert dict(event.metadata) == {"reward_inferred": True, "conclusive": True}
    assert list((await lot.learning.ListLearningEvents()).learning_events) == [event]
    preference = answer.preference
    assert (preference.category, preference.revision) == ("learned", 1)
    assert preference.key.startswith("learned.")
    assert dict(preference.value.struct_value) == {
        "feedback": "Excellent sort order!",
        "task": "Sort the list",
    }
    assert preference.namespace == lot.namespace
    assert preference.etag
    assert preference.create_time == preference.update_time


async def test_complaint_is_judged_and_not_preferred(lot):
    answer = await lot.learning.SubmitFeedback(text="This is wrong.")
    assert answer.reward < 0
    assert answer.conclusive
    assert not answer.HasField("preference")


async def test_what_cannot_be_told_is_0_and_says_so(lot):
    answer = await lot.learning.SubmitFeedback(text="I will look at it tomorrow.")
    assert (answer.reward, answer.reward_inferred, answer.conclusive) == (0.0, True, False)
    assert dict(answer.learning_event.metadata) == {"reward_inferred": True, "conclusive": False}


async def test_a_reward_that_is_given_is_not_judged(lot):
    answer = await lot.learning.SubmitFeedback(text="This is wrong.", reward=0.75)
    assert (answer.reward, answer.reward_inferred, answer.conclusive) == (0.75, False, True)
    assert answer.HasField("preference")
    answer = await lot.learning.SubmitFeedback(reward=1.0)
    assert not answer.HasField("preference")  # of what?


async def test_a_selection_learns_what_is_said_of_it(lot):
    state = {"task_type": "code"}
    chosen = await lot.learning.SelectAction(state=state, actions=[{"name": "a"}])
    target = {"selection_id": chosen.selection_id}
    for _ in range(2):
        answer = await lot.learning.SubmitFeedback(reward=-1.0, target=target, request_id="r")
        assert answer.learning_event.target.selection_id == chosen.selection_id
    [value] = (await lot.learning.ListActionValues(state=state)).action_values
    assert value.visit_count == 1
    assert value.value == pytest.approx(-0.1)


async def test_a_decision_takes_the_reward_if_it_has_none(lot):
    decision = {"context": "c", "chosen_option": "o"}
    await lot.learning.RecordDecision(decision=decision, decision_id="d")
    for reward in (0.5, -1.0):
        await lot.learning.SubmitFeedback(reward=reward, target={"decision_id": "d"})
    [found] = (await lot.learning.ListDecisions()).decisions
    assert found.reward == 0.5
    assert found.outcome == outcome_pb2.OUTCOME_UNSPECIFIED


@pytest.mark.parametrize(
    ("field", "reason"),
    [
        ("episode_id", "EPISODE_NOT_FOUND"),
        ("error_solution_id", "ERROR_SOLUTION_NOT_FOUND"),
        ("decision_id", "DECISION_NOT_FOUND"),
        ("selection_id", "SELECTION_NOT_FOUND"),
        ("memory_id", "MEMORY_NOT_FOUND"),
        ("retrieval_id", "RETRIEVAL_NOT_FOUND"),
    ],
)
async def test_an_unknown_target_keeps_nothing(lot, field, reason):
    failed = await failure(lot.learning.SubmitFeedback(text="Perfect!", target={field: "none"}))
    assert (failed.code, failed.reason) == ("NOT_FOUND", reason)
    assert await listed(lot) == []


async def test_feedback_on_a_memory_and_an_episode_that_are_there_is_kept(lot):
    await lot.memories.CreateMemory(memory={"content": "c"}, memory_id="m")
    await lot.episodes.StartEpisode(episode={"task": "t"}, episode_id="e")
    for target in ({"memory_id": "m"}, {"episode_id": "e"}):
        await lot.learning.SubmitFeedback(text="Perfect!", target=target)
        assert len(await listed(lot, target=target)) == 1


@pytest.mark.parametrize(
    "given", [{}, {"task": "t"}, {"reward": 1.5}, {"reward": math.nan}, {"text": "x" * 65537}]
)
async def test_a_judgement_that_says_nothing_or_too_much_is_refused(lot, given):
    failed = await failure(lot.learning.SubmitFeedback(**given))
    assert failed.reason == "REQUEST_INVALID"
    assert await listed(lot) == []


async def test_the_same_request_counts_once_and_answers_alike(lot):
    requested = {"text": "Perfect summary!", "task": "t", "request_id": "r"}
    first = await lot.learning.SubmitFeedback(**requested)
    assert await lot.learning.SubmitFeedback(**requested) == first
    assert first.preference.revision == 1
    failed = await failure(lot.learning.SubmitFeedback(text="Bad.", request_id="r"))
    assert failed.reason == "REQUEST_ID_REUSED"


async def test_feedback_in_words_on_a_pattern_moves_its_confidence_by_a_tenth(lot):
    await lot.patterns.SavePattern(pattern={"task": "t"}, pattern_id="p")
    answer = await lot.learning.SubmitFeedback(reward=-0.5, text="hm", target={"pattern_id": "p"})
    pattern = (await lot.patterns.GetPattern(pattern_id="p")).pattern
    assert pattern.confidence == pytest.approx(0.45)
    assert (pattern.feedback.helpful_count, pattern.feedback.unhelpful_count) == (0, 1)
    assert len(await listed(lot)) == 1
    assert answer.reward == -0.5
    missing = await failure(lot.learning.SubmitFeedback(text="Good.", target={"pattern_id": "q"}))
    assert missing.reason == "PATTERN_NOT_FOUND"
