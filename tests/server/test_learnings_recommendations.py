"""GetRecommendations on the wire."""

from __future__ import annotations

import pytest

from lot_grpc.pb.lot.v1 import episode_pb2, outcome_pb2
from tests.server.wire import failure

SUCCEEDED = episode_pb2.EPISODE_STATUS_SUCCEEDED
FAILED = episode_pb2.EPISODE_STATUS_FAILED


async def record(lot, episode_id, task="Rotate the signing keys", status=SUCCEEDED, **fields):
    episode = {"task": task, "status": status} | fields
    await lot.episodes.RecordEpisode(episode=episode, episode_id=episode_id)


async def test_what_worked_on_like_tasks_is_recommended_with_where_it_comes_from(lot):
    like = {"category": "security", "task_type": "rotation"}
    for n in range(4):
        await record(
            lot,
            f"plan{n}",
            **like,
            approach="plan",
            tools_used=["vault"],
            success_factors=["dry run"],
        )
    await record(lot, "dive", **like, approach="dive", tools_used=["vault", "jq"])
    await record(lot, "bad", **like, approach="guess", status=FAILED)
    await record(lot, "far", task="Paint the fence", category="garden", approach="guess")
    answer = await lot.learning.GetRecommendations(task="Rotate the signing keys", **like)
    advised = answer.recommendations
    assert (advised.approach, advised.similar_count) == ("plan", 5)
    assert advised.confidence == pytest.approx(0.5)
    assert [(one.name, one.count) for one in advised.approaches] == [("plan", 4), ("dive", 1)]
    assert [(one.name, one.count) for one in advised.success_factors] == [("dry run", 4)]
    assert [(one.name, one.count) for one in advised.tools] == [("vault", 5), ("jq", 1)]
    assert advised.complexity == outcome_pb2.COMPLEXITY_LOW
    assert list(advised.sentences) == [
        "5 of 6 similar tasks succeeded (83%). Consider following similar approaches.",
        'Approach: "plan" (4 of 5 similar successful episodes used it).',
        'What helped: "dry run" (4).',
        'Tools used: "vault" (5), "jq" (1).',
    ]
    assert not answer.notices
    hits = answer.similar_episodes
    assert [hit.episode.episode_id for hit in hits] == ["dive", "plan3", "plan2"]
    parts = {part.name: (part.value, part.weight) for part in hits[0].score_parts}
    assert parts["category"] == (1.0, 0.4)
    assert parts["task_type"] == (1.0, 0.3)
    assert parts["complexity"] == (1.0, 0.2)
    assert parts["text"] == (hits[0].similarity, 0.1)
    assert hits[0].score == pytest.approx(0.9 + 0.1 * hits[0].similarity)


async def test_where_nothing_is_similar_it_says_so(lot):
    await record(lot, "other", task="Paint the fence", category="garden")
    answer = await lot.learning.GetRecommendations(task="Rotate the signing keys")
    advised = answer.recommendations
    assert (advised.approach, advised.confidence, advised.similar_count) == ("standard", 0.0, 0)
    assert list(advised.sentences) == [
        "No similar episode has succeeded yet; use the standard approach."
    ]
    assert not answer.similar_episodes


async def test_limit_and_min_score_are_the_callers(lot):
    for n in range(12):
        await record(lot, f"e{n:02}", category="ops")
    ask = lot.learning.GetRecommendations
    assert len((await ask(category="ops")).similar_episodes) == 3
    many = await ask(category="ops", limit=100)
    assert [hit.episode.episode_id for hit in many.similar_episodes] == [
        f"e{n:02}" for n in range(11, -1, -1)
    ]
    assert many.recommendations.similar_count == 10
    assert many.recommendations.confidence == 1.0
    assert many.similar_episodes[0].score == pytest.approx(0.6)
    assert not (await ask(category="ops", min_score=0.61)).similar_episodes
    anything = await ask(category="nowhere", min_score=0.0, limit=100)
    assert len(anything.similar_episodes) == 12


async def test_complexity_is_derived_from_what_is_said(lot):
    high = outcome_pb2.COMPLEXITY_HIGH
    await record(lot, "hard", complexity=high)
    ask = {"task": "Move", "category": "backend", "dependencies": list("abcde"), "min_score": 0.2}
    answer = await lot.learning.GetRecommendations(**ask)
    assert answer.recommendations.complexity == high
    assert [hit.episode.episode_id for hit in answer.similar_episodes] == ["hard"]
    low = outcome_pb2.COMPLEXITY_LOW
    assert not (await lot.learning.GetRecommendations(complexity=low, **ask)).similar_episodes


async def test_a_task_that_is_not_read_whole_is_told(lot):
    await record(lot, "ops", category="ops")
    wordless = await lot.learning.GetRecommendations(task="\u200b \n", category="ops")
    [notice] = wordless.notices
    assert (notice.code, notice.field) == (outcome_pb2.NOTICE_CODE_QUERY_NOT_SEARCHABLE, "task")
    assert wordless.recommendations.similar_count == 1
    long = await lot.learning.GetRecommendations(task="word " * 13_000, category="ops")
    [notice] = long.notices
    assert (notice.code, notice.field) == (outcome_pb2.NOTICE_CODE_QUERY_TRUNCATED, "task")


async def test_nothing_is_learned_across_namespaces(lot):
    await record(lot.on(f"{lot.namespace}-other"), "theirs", category="ops")
    assert not (await lot.learning.GetRecommendations(category="ops")).similar_episodes


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({}, ""),
        ({"dependencies": ["a"]}, ""),
        ({"task": "t", "limit": 101}, "limit"),
        ({"task": "t", "limit": -1}, "limit"),
        ({"task": "t", "min_score": 1.5}, "min_score"),
        ({"task": "t", "min_score": float("nan")}, "min_score"),
        ({"task": "t", "effort": -1}, "effort"),
        ({"task": "t", "complexity": 9}, "complexity"),
    ],
)
async def test_bad_requests_are_refused(lot, fields, path):
    failed = await failure(lot.learning.GetRecommendations(**fields))
    assert failed.reason == "REQUEST_INVALID"
    assert path in failed.fields
