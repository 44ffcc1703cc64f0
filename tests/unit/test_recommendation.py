"""Recommendations: the seed's numbers, and laws."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lot_grpc.domain.complexity import Complexity
from lot_grpc.domain.episode import Episode, EpisodeEnd, EpisodeStart, EpisodeStatus
from lot_grpc.domain.recommendation import (
    Agreement,
    StructuralWeights,
    TaskProfile,
    recommend,
)
from lot_grpc.domain.trends import NamedCount

LOW = Complexity.LOW
WEIGHTS = StructuralWeights()


def episode(approach: str = "", factors: tuple[str, ...] = (), tools: tuple[str, ...] = ()):
    return Episode(
        "ns",
        "e",
        EpisodeStart("t", approach=approach),
        EpisodeStatus.SUCCEEDED,
        EpisodeEnd(EpisodeStatus.SUCCEEDED, success_factors=factors, tools_used=tools),
        start_time=0,
        end_time=0,
        event_count=0,
        reused_count=0,
        writer_epoch=0,
        revision=1,
        create_time=0,
        update_time=0,
    )


@pytest.mark.parametrize(
    ("category", "task_type", "complexity", "cosine", "score"),
    [
        (True, True, True, 1.0, 1.0),
        (True, True, True, 0.0, 0.9),
        (True, False, False, 0.0, 0.4),
        (False, True, False, 0.0, 0.3),
        (False, False, True, 0.0, 0.2),
        (False, False, False, 0.5, 0.05),
        (False, False, False, -0.5, 0.0),
        (False, False, True, 1.0, 0.3),
    ],
)
def test_the_structural_score_is_the_seeds(category, task_type, complexity, cosine, score):
    agreement = Agreement(category, task_type, complexity)
    assert agreement.score(WEIGHTS, cosine) == pytest.approx(score, abs=1e-12)


def test_all_that_agrees_is_a_score_of_just_1():
    assert Agreement(True, True, True).score(WEIGHTS, 1.0) == 1.0


@given(st.booleans(), st.booleans(), st.booleans(), st.floats(-1.1, 1.1))
def test_parts_add_up_to_the_score_in_0_to_1(category, task_type, complexity, cosine):
    agreement = Agreement(category, task_type, complexity)
    score = agreement.score(WEIGHTS, cosine)
    assert 0.0 <= score <= 1.0
    parts = agreement.parts(WEIGHTS, cosine)
    assert [part.name for part in parts] == ["category", "task_type", "complexity", "text"]
    assert sum(part.value * part.weight for part in parts) == pytest.approx(score)


def test_complexity_is_given_or_derived_as_for_episodes():
    assert TaskProfile(complexity=Complexity.HIGH).assessed is Complexity.HIGH
    assert TaskProfile(task="t").assessed is LOW
    assert TaskProfile(task="x" * 201, category="backend").assessed is Complexity.MEDIUM
    assert TaskProfile(dependencies=("a",) * 4, effort=6.0).assessed is Complexity.HIGH


def test_with_nothing_similar_it_is_the_standard_approach_without_confidence():
    advised = recommend([], LOW)
    assert (advised.approach, advised.confidence, advised.similar_count) == ("standard", 0.0, 0)
    assert advised.sentences == ["No similar episode has succeeded yet; use the standard approach."]
    assert (advised.approaches, advised.success_factors, advised.tools) == ((), (), ())


@pytest.mark.parametrize(
    ("count", "boost", "confidence"),
    [(1, 1.0, 0.1), (5, 1.0, 0.5), (10, 1.0, 1.0), (30, 1.0, 1.0), (4, 1.5, 0.6), (9, 1.5, 1.0)],
)
def test_confidence_grows_with_similar_episodes_up_to_ten(count, boost, confidence):
    advised = recommend([episode("a")] * count, LOW, boost)
    assert advised.confidence == pytest.approx(confidence)
    assert advised.similar_count == min(count, 10)


def test_the_most_frequent_is_recommended_and_of_equals_the_more_similars():
    near = [episode("b"), episode("a"), episode(""), episode("a"), episode("b"), episode("c")]
    advised = recommend(near, LOW)
    assert advised.approach == "b"
    assert advised.approaches == (NamedCount("b", 2), NamedCount("a", 2), NamedCount("c", 1))


def test_top_five_factors_three_tools_three_approaches_once_an_episode():
    names = tuple("abcdefg")
    many = [episode(name, names + names, names) for name in names]
    advised = recommend(many, LOW)
    assert advised.approaches == tuple(NamedCount(name, 1) for name in "abc")
    assert advised.success_factors == tuple(NamedCount(name, 7) for name in "abcde")
    assert advised.tools == tuple(NamedCount(name, 7) for name in "abc")


def test_only_the_ten_nearest_count():
    advised = recommend([episode("near")] * 10 + [episode("far")] * 90, LOW)
    assert advised.approaches == (NamedCount("near", 10),)


def test_sentences_say_it_for_a_prompt():
    advised = recommend([episode("plan", ("tests",), ("git",)), episode("plan", ("tests",))], LOW)
    assert advised.sentences == [
        'Approach: "plan" (2 of 2 similar successful episodes used it).',
        'What helped: "tests" (2).',
        'Tools used: "git" (1).',
    ]
    nameless = recommend([episode()], LOW)
    assert nameless.approach == "standard"
    assert nameless.sentences == []
    well, badly = EpisodeStatus.SUCCEEDED, EpisodeStatus.FAILED
    assert recommend([episode()], LOW, 1.0, [well, badly, well]).sentences == [
        "2 of 3 similar tasks succeeded (67%). Consider following similar approaches."
    ]
    assert recommend([], LOW, 1.0, [badly]).sentences == [
        "0 of 1 similar task succeeded (0%).",
        "No similar episode has succeeded yet; use the standard approach.",
    ]
