"""Judgements: what they are kept as, and what they move."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from lot_grpc.domain.errors import (
    DecisionNotFoundError,
    EpisodeNotFoundError,
    ErrorSolutionNotFoundError,
    MemoryNotFoundError,
    PatternNotFoundError,
    RequestIdReusedError,
    RetrievalNotFoundError,
    SelectionNotFoundError,
)
from lot_grpc.domain.learning_event import LearningEventFilter, TargetKind
from lot_grpc.domain.preference import learned_key
from lot_grpc.ports import VectorStore
from lot_grpc.services.learning.action_values import ActionValues
from lot_grpc.services.learning.feedback_handler import FeedbackHandler, Submitted
from lot_grpc.services.learning.targets import checks_of, moves_of
from lot_grpc.services.patterns.feedback import FeedbackDraft
from lot_grpc.services.records.collections import (
    LEARNING_EVENTS,
    PREFERENCE_REVISIONS,
    PREFERENCES,
    REQUESTS,
    TRAJECTORIES,
)
from lot_grpc.services.retention.policies import Policies
from lot_grpc.services.time_source import TimeSource
from lot_grpc.testing.faults import FaultInjectingStore, InjectedFault, When
from lot_grpc.testing.in_memory import InMemoryStore
from tests.contract.clock import FixedClock
from tests.services.world import (
    NS,
    STATE,
    World,
    decision,
    judgement,
    open_world,
    payloads,
    recall,
    save,
    select,
    start,
)

PRAISE = "Perfect summary, thanks!"
COMPLAINT = "This is wrong."


async def submit(
    world: World, kind: TargetKind | None = None, id: str = "", **named: Any
) -> Submitted:
    return await world.services.learning.feedback_handler.submit(NS, judgement(kind, id, **named))


async def test_a_judged_text_is_an_event_and_a_preference(world):
    told = await submit(world, text=PRAISE, task="Write the report")
    assert (told.reward_inferred, told.conclusive) == (True, True)
    assert told.reward > 0.5
    content = told.event.content
    assert (content.event_type, content.text, content.task) == (
        "user_feedback", PRAISE, "Write the report",
    )  # fmt: skip
    assert content.reward == told.reward
    assert content.metadata == {"reward_inferred": True, "conclusive": True}
    assert told.preference is not None
    assert told.preference.category == "learned"
    assert told.preference.value == {"feedback": PRAISE, "task": "Write the report"}
    [listed] = (
        await world.services.learning.learning_events.list_page(NS, LearningEventFilter(), 10, None)
    )[0]
    assert listed == told.event


async def test_a_given_reward_stands_whatever_the_text_says(world):
    told = await submit(world, text=COMPLAINT, reward=0.9)
    assert (told.reward, told.reward_inferred, told.conclusive) == (0.9, False, True)
    assert told.event.content.metadata == {}
    assert told.preference is not None


@pytest.mark.parametrize("reward", [0.5, 0.0, -1.0])
async def test_up_to_a_half_there_is_no_preference(world, reward):
    assert (await submit(world, text="x", reward=reward)).preference is None
    assert await payloads(world, PREFERENCES) == []


async def test_a_bare_reward_is_no_preference(world):
    assert (await submit(world, reward=1.0)).preference is None


@pytest.mark.parametrize(
    ("text", "extracted"),
    [
        ("thanks, great!", False),
        ("Perfect, thank you so much 🎉", False),
        ("Vielen Dank, super Arbeit!", False),
        ("¡Muchas gracias, excelente!", False),
        ("Great, I love the short summaries", True),
        ("Perfect table of contents", True),
    ],
)
async def test_thanks_alone_teach_nothing(world, text, extracted):
    told = await submit(world, text=text, task="Write the report")
    assert told.reward > 0.5
    assert (told.preference is not None) is extracted


async def test_what_cannot_be_told_is_nothing_and_moves_nothing(world):
    chosen = await world.services.learning.selections.select(NS, select("a"))
    told = await submit(
        world, TargetKind.SELECTION, chosen.selection_id, text="I look at it tomorrow."
    )
    assert (told.reward, told.reward_inferred, told.conclusive) == (0.0, True, False)
    assert told.event.content.metadata == {"reward_inferred": True, "conclusive": False}
    assert await payloads(world, TRAJECTORIES) == []


async def test_all_that_was_liked_about_a_task_is_kept(world):
    texts = ("Perfect summary!", "Excellent tables!", "I love the short titles")
    for text in texts:
        assert (await submit(world, text=text, task="Write the report")).preference is not None
    found = (await world.services.preferences.list_page(NS, ("learned",), 10, None)).items
    assert [one.value["feedback"] for one in found] == list(reversed(texts))
    assert {one.revision for one in found} == {1}


async def test_the_same_said_again_of_a_task_takes_the_place_of_the_earlier_one(world):
    first = await submit(world, text="Perfect summary!", task="Write  the report")
    world.clock.advance(5)
    second = await submit(world, text="perfect  SUMMARY!", task="write the REPORT")
    assert first.preference is not None
    assert second.preference is not None
    key = learned_key("write the report", "perfect summary!")
    assert first.preference.key == second.preference.key == key
    assert (second.preference.revision, second.preference.value["feedback"]) == (
        2,
        "perfect  SUMMARY!",
    )
    assert second.preference.create_time == first.preference.create_time
    assert second.preference.update_time > first.preference.update_time
    [former] = await payloads(world, PREFERENCE_REVISIONS)
    assert former["revision"] == 1
    assert "Perfect summary!" in former["value"]


async def test_a_selection_learns_its_reward(world):
    chosen = await world.services.learning.selections.select(NS, select("a"))
    await submit(world, TargetKind.SELECTION, chosen.selection_id, reward=-1.0)
    [value] = await world.services.learning.action_values.best(NS, STATE, 3)
    assert (value.action, value.visit_count) == ("a", 1)
    assert value.value == pytest.approx(-0.1)


async def test_a_decision_takes_the_reward_if_it_has_none(world):
    await world.services.learning.decisions.record(NS, decision(decision_id="d"))
    for reward in (0.25, 1.0):
        await submit(world, TargetKind.DECISION, "d", reward=reward)
    assert (await world.services.learning.decisions.get(NS, "d")).reward == 0.25


UNKNOWN = [
    (TargetKind.EPISODE, EpisodeNotFoundError),
    (TargetKind.ERROR_SOLUTION, ErrorSolutionNotFoundError),
    (TargetKind.DECISION, DecisionNotFoundError),
    (TargetKind.SELECTION, SelectionNotFoundError),
    (TargetKind.MEMORY, MemoryNotFoundError),
    (TargetKind.RETRIEVAL, RetrievalNotFoundError),
]


@pytest.mark.parametrize(("kind", "error"), UNKNOWN)
async def test_an_unknown_target_keeps_nothing(world, kind, error):
    with pytest.raises(error):
        await submit(world, kind, "none", text=PRAISE, task="t", request_id="r")
    for collection in (LEARNING_EVENTS, PREFERENCES, REQUESTS, TRAJECTORIES):
        assert await payloads(world, collection) == []


async def test_targets_that_are_there_are_named_by_the_event(world):
    await world.services.episodes.creator.start(NS, start(episode_id="e"))
    await save(world, "Log in")
    retrieval_id = (await recall(world, "Log in")).retrieval_id
    for kind, target_id in ((TargetKind.EPISODE, "e"), (TargetKind.RETRIEVAL, retrieval_id)):
        told = await submit(world, kind, target_id, text=PRAISE)
        asked = LearningEventFilter(target=told.event.content.target)
        found, _ = await world.services.learning.learning_events.list_page(NS, asked, 10, None)
        assert found == [told.event]


async def test_a_request_again_answers_alike_and_counts_once(world):
    chosen = await world.services.learning.selections.select(NS, select("a"))
    given: dict[str, Any] = {"text": PRAISE, "task": "t", "request_id": "r"}
    first = await submit(world, TargetKind.SELECTION, chosen.selection_id, **given)
    again = await submit(world, TargetKind.SELECTION, chosen.selection_id, **given)
    assert again == first
    assert len(await payloads(world, LEARNING_EVENTS)) == 1
    assert len(await payloads(world, TRAJECTORIES)) == 1
    with pytest.raises(RequestIdReusedError):
        await submit(world, text=COMPLAINT, request_id="r")


async def test_a_preference_sent_again_does_not_undo_the_one_that_came_after_it():
    clock = FixedClock()
    given: dict[str, Any] = {"text": "perfect summary!", "task": "t", "request_id": "r"}
    for write in range(2, 7):
        world = await open_world(FaultInjectingStore(InMemoryStore(clock)), clock)
        await submit(world, text="Perfect summary!", task="T")
        world.store.fail_at(write, When.AFTER)
        try:
            await submit(world, **given)
        except InjectedFault:
            world.store.revive()
        world = world.another_process()
        taken = len(await payloads(world, PREFERENCE_REVISIONS)) and (
            (await payloads(world, PREFERENCES))[0]["revision"] == 2
        )
        await submit(world, text="PERFECT SUMMARY!", task="t")
        told = await submit(world, **given)
        assert told.preference is not None
        latest = "PERFECT SUMMARY!" if taken else "perfect summary!"
        assert told.preference.value["feedback"] == latest, write
        assert told.preference.revision == 3


# --- patterns, by a double --------------------------------------------------------------------


@dataclass
class Confidences:
    """Moves confidences once for a request id, as ``services.feedback`` does."""

    store: VectorStore
    there: set[str] = field(default_factory=set)
    moved: dict[str, tuple[str, float | None, str]] = field(default_factory=dict)

    async def check(self, namespace: str, pattern_id: str) -> None:
        if pattern_id not in self.there:
            raise PatternNotFoundError(namespace, pattern_id)

    async def give(self, namespace: str, draft: FeedbackDraft) -> None:
        await self.store.check()  # dies with the process
        await self.check(namespace, draft.pattern_id)
        moved = (draft.pattern_id, draft.confidence_adjustment, draft.text)
        self.moved[draft.request_id] = moved


def on_patterns(world: World, confidences: Confidences) -> FeedbackHandler:
    """The service as it is with patterns."""
    services, time_source = world.services, TimeSource(world.clock)
    values = ActionValues(world.store, time_source, Policies(world.store, time_source))
    return FeedbackHandler(
        services.runtime,
        services.preferences,
        checks_of(
            confidences.check,
            services.episodes.episodes,
            confidences.check,
            services.learning.decisions,
            services.learning.selections,
            services.memories.memories,
            services.runtime.retrievals,
        ),
        moves_of(confidences, services.learning.decisions, services.learning.selections, values),
    )


async def test_a_pattern_moves_by_a_tenth_of_the_reward(world):
    confidences = Confidences(world.store, {"p"})
    service = on_patterns(world, confidences)
    await service.submit(NS, judgement(TargetKind.PATTERN, "p", reward=-0.5, text="hm"))
    [(pattern_id, adjustment, text)] = confidences.moved.values()
    assert (pattern_id, text) == ("p", "hm")
    assert adjustment == pytest.approx(-0.05)
    await service.submit(NS, judgement(TargetKind.PATTERN, "p", reward=0.0))
    assert len(confidences.moved) == 1


async def test_an_unknown_pattern_keeps_nothing(world):
    service = on_patterns(world, Confidences(world.store))
    with pytest.raises(PatternNotFoundError):
        await service.submit(NS, judgement(TargetKind.PATTERN, "none", text=PRAISE))
    assert await payloads(world, LEARNING_EVENTS) == []


async def test_a_pattern_that_vanished_after_the_check_is_not_moved(world):
    confidences = Confidences(world.store, {"p"})
    service = on_patterns(world, confidences)
    world.store.insert = _then(world.store.insert, confidences.there.clear)
    told = await service.submit(NS, judgement(TargetKind.PATTERN, "p", text=PRAISE))
    assert told.reward > 0
    assert confidences.moved == {}
    assert all(row["applied"] for row in await payloads(world, LEARNING_EVENTS))


def _then(call, afterwards):
    async def both(*given):
        result = await call(*given)
        afterwards()
        return result

    return both


async def test_a_pattern_is_moved_once_whenever_the_process_dies():
    clock = FixedClock()
    given = judgement(TargetKind.PATTERN, "p", text=PRAISE, task="t", request_id="r")
    for write in range(1, 7):
        for when in When:
            world = await open_world(FaultInjectingStore(InMemoryStore(clock)), clock)
            confidences = Confidences(world.store, {"p"})
            world.store.fail_at(write, when)
            try:
                await on_patterns(world, confidences).submit(NS, given)
            except InjectedFault:
                world.store.revive()
            service = on_patterns(world, confidences)
            await service.roll_forward(2**62)
            await service.submit(NS, given)
            assert len(confidences.moved) == 1, (write, when)
            [event] = await payloads(world, LEARNING_EVENTS)
            assert event["applied"]
            [preference] = await payloads(world, PREFERENCES)
            assert preference["revision"] == 1
