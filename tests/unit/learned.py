"""What is learned from, made up by hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st

from lot_grpc.domain.action_values import ActionValue, LearningState, TrajectoryStep
from lot_grpc.domain.complexity import Complexity
from lot_grpc.domain.decision import (
    Decision,
    DecisionContent,
    DecisionOption,
    DecisionOutcome,
)
from lot_grpc.domain.learning_event import (
    FeedbackTarget,
    LearningEvent,
    LearningEventContent,
    TargetKind,
)
from lot_grpc.domain.outcomes import Outcome
from lot_grpc.domain.preference import Preference
from lot_grpc.domain.selection import SelectionPolicy
from lot_grpc.services.records.actions import Selection, Trajectory
from tests.unit.made import (
    ids,
    json_objects,
    json_values,
    labels,
    shares,
    some_words,
    times,
    unique,
    words,
)

rewards = st.floats(-1, 1)
complexities = st.none() | st.sampled_from(Complexity)

targets = st.builds(FeedbackTarget, st.sampled_from(TargetKind), ids)
learning_event_contents = st.builds(
    LearningEventContent,
    event_type=some_words,
    task=words,
    outcome=st.none() | st.sampled_from(Outcome),
    text=words,
    reward=st.none() | rewards,
    target=st.none() | targets,
    agent_role=words,
    tags=unique,
    labels=labels,
    metadata=json_objects,
    event_time=st.none() | times,
)
learning_events = st.builds(LearningEvent, ids, ids, learning_event_contents, times)

options = st.builds(DecisionOption, some_words, words, st.none() | st.floats(-1e9, 1e9))
decision_contents = st.builds(
    DecisionContent,
    context=some_words,
    chosen_option=some_words,
    agent_role=words,
    options=st.lists(options, max_size=3).map(tuple),
    reasoning=words,
    confidence=st.none() | shares,
    episode_id=st.just("") | ids,
    task_id=words,
    category=words,
    tags=unique,
    labels=labels,
    metadata=json_objects,
    decision_time=st.none() | times,
)
decision_outcomes = st.builds(
    DecisionOutcome, st.sampled_from(Outcome), times, st.none() | rewards, words
)
decisions = st.builds(Decision, ids, ids, decision_contents, times)

states = st.builds(LearningState, some_words, complexities, json_objects)
steps = st.builds(TrajectoryStep, states, some_words, rewards, st.none() | states)
trajectories = st.builds(
    Trajectory,
    namespace=ids,
    trajectory_id=ids,
    steps=st.lists(steps, min_size=1, max_size=4).map(tuple),
    create_time=times,
    episode_id=st.just("") | ids,
)


@st.composite
def selections(draw: st.DrawFn) -> Selection:
    state = draw(states)
    known = st.builds(
        ActionValue,
        task_type=st.just(state.task_type),
        complexity=st.just(state.complexity),
        action=some_words,
        value=st.floats(-20, 20),
        visit_count=st.integers(1, 10**9),
        update_time=times,
    )
    return Selection(
        draw(ids),
        draw(ids),
        state,
        draw(some_words),
        draw(st.sampled_from(SelectionPolicy)),
        draw(st.booleans()),
        tuple(draw(st.lists(known, max_size=3))),
        draw(times),
    )


preferences = st.builds(
    Preference,
    namespace=ids,
    key=ids,
    value=json_values,
    category=words,
    revision=st.integers(1, 10**6),
    create_time=times,
    update_time=times,
)
